"""Documents for a privacy officer from plan, statement, audit and log: templates are data, in dossier.toml.

Every figure follows from public documents. What a person must decide is an empty form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from math import ceil, exp
from pathlib import Path
from typing import Final, Self, final

import msgspec

from syndic.document import Document, from_toml
from syndic.errors import InputError, RefusedError
from syndic.privacy import at_delta, shown
from syndic.privacy.audit import AuditLog, Record
from syndic.report.catalogues import About, refuse_unprotected
from syndic.report.page import Grid, Page, Section
from syndic.report.promise import charges, percent
from syndic.report.record import COLUMN_HEAD, sentence
from syndic.report.svg import HARD
from syndic.study import Release, Study
from syndic.study.document import alignment_of
from syndic.study.statement import Statement, best_guess, meaning_of, overstates, plan

_NOT_GIVEN: Final = "(not given)"
_FIRST_LINES: Final = 500


@final
class Part(Document):
    """One section: texts with {fields}, names of lists and tables, and what a person must decide."""

    title: str
    paragraphs: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    blanks: tuple[str, ...] = ()


@final
class Template(Document):
    """One document: a file name, a title, what it is for, its sections."""

    name: str
    title: str
    lead: str
    sections: tuple[Part, ...]


class Attack(msgspec.Struct, frozen=True, kw_only=True):
    """What one attack of `syndic audit` showed: at least `shown` of the claimed `epsilon`."""

    audit: str
    view: str
    holds: bool
    runs: int
    confidence: float
    epsilon: float | None = None
    delta: float | None = None
    shown: float | None = None
    part_shown: float | None = None

    @property
    def reached(self) -> float:
        """The privacy loss that the attack showed, at `delta`."""
        return max(self.shown or 0.0, self.part_shown or 0.0)

    @property
    def share(self) -> float:
        """The same, as a share of the claim."""
        return self.reached / self.epsilon if self.epsilon else 0.0


class Attacks(msgspec.Struct, frozen=True, kw_only=True):
    """The report of `syndic audit --out FILE.json`."""

    effort: str
    seed: int
    findings: tuple[Attack, ...]
    left: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, msgspec.DecodeError) as error:
            raise InputError(f"{path.name}: not a report of `syndic audit --out FILE.json`: {error}") from None


@final
@dataclass(frozen=True, kw_only=True)
class Case:
    """What a dossier is written from: a study, its statement, and what was given beside it. `date` is YYYY-MM-DD."""

    study: Study
    statement: Statement
    date: str
    released: bool = False
    about: About | None = None
    attacks: Attacks | None = None
    log: tuple[Record, ...] | None = None

    def __post_init__(self) -> None:
        refuse_unprotected(self.study, self.statement)
        if self.statement.digest != self.study.digest:
            raise RefusedError(f"{self.statement.study}: statement and study do not match; nothing was written")
        if overstates(self.statement, self.study):
            raise RefusedError(f"{self.statement.study}: the statement promises more than the study gives")

    @classmethod
    def load(
        cls, path: Path, *, about: About | None = None, attacks: Attacks | None = None, log_of: Path | None = None
    ) -> Self:
        """Read a release's folder, or a study file before its run, and the verified log of a folder."""
        release = Release.load(path) if path.is_dir() else None
        study = Study.load(path) if release is None else release.study
        return cls(
            study=study,
            statement=plan(study).statement if release is None else release.statement,
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            released=release is not None,
            about=about,
            attacks=attacks,
            log=None if log_of is None else _log(log_of, study.digest),
        )

    @property
    def own_attacks(self) -> tuple[Attack, ...]:
        """The attacks on this study's method."""
        tag = str(type(self.study.protocol).__struct_config__.tag)
        found = () if self.attacks is None else self.attacks.findings
        return tuple(one for one in found if one.audit.split(",")[0].split(" ")[0] == tag)

    @property
    def bounds(self) -> tuple[Attack, ...]:
        """Those that bound an epsilon."""
        return tuple(one for one in self.own_attacks if one.epsilon is not None)


def _log(folder: Path, digest: str) -> tuple[Record, ...]:
    book = AuditLog(folder)
    if not book.path.is_file():
        raise InputError(f"{folder}: there is no audit log here: give the party folder or the coordinator's")
    return tuple(one for one in book.verify() if one.study == digest)


def templates() -> tuple[Template, ...]:
    """Return the templates."""
    text = (files("syndic.report") / "dossier.toml").read_text(encoding="utf-8")
    return from_toml(text, dict[str, tuple[Template, ...]], where="dossier.toml")["documents"]


def write_dossier(case: Case, folder: str | Path) -> list[Path]:
    """Write every document as HTML and as Markdown; return the paths."""
    folder, written = Path(folder), []
    folder.mkdir(parents=True, exist_ok=True)
    fields, tables = _fields(case), _tables(case)
    for template in templates():
        page = _page(case, template, fields, tables)
        for suffix, text in ((".html", page.to_html()), (".md", page.to_markdown())):
            written.append(folder / f"{template.name}{suffix}")
            written[-1].write_text(text, encoding="utf-8")
    return written


def _page(case: Case, template: Template, fields: Mapping[str, str], tables: Mapping[str, Grid]) -> Page:
    statement = case.statement
    warnings = [Section(title="Disclosed exactly, outside any epsilon", points=statement.discloses)]
    broken = tuple(f"{one.audit}, {one.view}" for one in case.own_attacks if not one.holds)
    warnings.append(Section(title="The audit broke a claim: do not publish", points=broken))
    return Page(
        title=template.title,
        subtitle=f"{statement.study}, {case.date}",
        lead=template.lead,
        warnings=tuple(one for one in warnings if one.points),
        facts=(
            ("Study digest", statement.digest, f"edition {statement.edition}"),
            ("State", "released" if case.released else "planned", case.date),
            ("One person", at_delta(statement.epsilon, statement.delta), meaning_of(statement)),
        ),
        sections=tuple(_section(one, statement, fields, tables) for one in template.sections),
        footer=f"Written by Syndic {statement.syndic} on {case.date} for study {statement.digest}. A basis for "
        "decisions of people, not legal advice.",
    )


def _section(one: Part, statement: Statement, fields: Mapping[str, str], tables: Mapping[str, Grid]) -> Section:
    listed = {"not_protected": statement.not_protected}
    blanks = tuple((text, "", "") for text in one.blanks)
    form = Grid("To be completed by a person", ("question", "answer", "by whom, when"), blanks)
    return Section(
        title=one.title,
        paragraphs=tuple(text.format_map(fields) for text in one.paragraphs),
        points=(*one.points, *(sentence(text) for name in one.lists for text in listed[name])),
        tables=tuple(table for table in (*(tables[name] for name in one.tables), form) if table.rows),
    )


def _fields(case: Case) -> dict[str, str]:
    statement, about = case.statement, case.about
    names = ", ".join(party.name for party in case.study.parties)
    lines = case.log or ()
    cut = f" ({_FIRST_LINES} listed)" if len(lines) > _FIRST_LINES else ""
    return {
        "purpose": case.study.purpose or (about.intended_use if about else "") or _NOT_GIVEN,
        "parties": f"{len(case.study.parties)} organisation(s): {names}",
        "status": "The release was made." if case.released else "This is the plan; no row was read for it.",
        "released": (about.description if about else "") or "What the study publishes: see the method.",
        "meaning": meaning_of(statement),
        "plainly": f"is right at most {percent(best_guess(statement.epsilon, statement.delta))} of the time. "
        "Without the result it would be 50 %",
        "epsilon": shown(statement.epsilon),
        "delta": f"{statement.delta:g}",
        "attacked": _attacked(case),
        "logged": "No log was given: syndic export --log FOLDER."
        if case.log is None
        else f"{len(lines)} records about this study{cut}, from a verified log; accounts are those of the machine.",
        **{
            name: getattr(statement, name)
            for name in ("method", "paper", "trust", "sensitivity", "accountant", "randomness")
        },
        "unit": statement.unit_in_words,
    }


def _attacked(case: Case) -> str:
    if case.attacks is None:
        return "No audit was given: syndic audit METHOD --out audit.json, then syndic export --audit audit.json."
    seed = f"syndic audit, {case.attacks.effort}, seed {case.attacks.seed}"
    if not case.own_attacks:
        return f"{seed}: no attack on this study's method is in it."
    return (
        f"{seed}: attacks ran this method on made-up tables with a budget of their own. 'Reached' is the privacy loss "
        "that they demonstrated; a small figure can also mean too few runs. The last column of the risks applies the "
        "largest share of a claim that was reached to this study's epsilon."
    )


def _tables(case: Case) -> dict[str, Grid]:
    study, statement, names = case.study, case.statement, case.study.schema.names
    steps = tuple((one.step, one.reveals, one.means) for one in plan(study).steps)
    aligned = any(alignment_of(study, party.name) for party in study.parties)
    identifying = filter(None, (study.unit.person, "each party's ids of the alignment" if aligned else None))
    columns = (
        *((one.name, str(type(one).__struct_config__.tag), str(one.size)) for one in study.schema.columns),
        *((one, "read at the party only, for other columns", "") for one in study.schema.inputs if one not in names),
        *((one, "read at the party only, to tell people apart", "") for one in identifying),
    )
    log = tuple(
        (one.time[:19], one.who, one.what, "yes" if one.allowed else "no", one.why)
        for one in (case.log or ())[-_FIRST_LINES:]
    )
    return {
        "steps": Grid("Every question that a party answers", ("step", "reveals", "what"), steps),
        "columns": Grid("Columns; bounds and lists were declared before any row was read", COLUMN_HEAD, columns),
        "costs": charges(statement, "Charged to each party's ledger for one person"),
        "risks": _risks(case),
        "attacks": _attacks(case),
        "recipients": _recipients(statement),
        "duties": _duties(study),
        "log": Grid("Log of the organisation about this study", ("time (UTC)", "who", "what", "allowed", "why"), log),
    }


def _risks(case: Case) -> Grid:
    epsilon, delta = case.statement.epsilon, case.statement.delta
    strongest = max(case.bounds, key=lambda one: one.share, default=None)
    inside = case.statement.unit.neighbours == "add_remove"
    rows = (
        ("singling out", "is this person in the data?" if inside else "which of two records is this person's?", 0.5),
        ("linkability", "which of 1,000 people does something in the release belong to?", 0.001),
        ("inference, unlikely value", "a value that a guess hits once in 1,000", 0.001),
        ("inference, likely value", "a value that a guess hits in 90 %", 0.9),
    )
    reached = "" if strongest is None else f": {strongest.reached:.2f} of epsilon {strongest.epsilon:.2f}"
    return Grid(
        "Chance of a right guess about one person",
        ("criterion", "question", "without the person's data", "with them, at most", f"as attacks reach{reached}"),
        tuple(
            (
                *texts,
                _chance(chance),
                _chance(_most(chance, epsilon, delta)),
                "no audit given" if strongest is None else _chance(_most(chance, strongest.share * epsilon, 0.0)),
            )
            for *texts, chance in rows
        ),
    )


def _most(chance: float, epsilon: float, delta: float) -> float:
    """Return the largest chance of success against a release, if it is `chance` against one without the person.

    An even chance is one of two equally likely tables, as everywhere else (`best_guess`).
    """
    if chance == 0.5:
        return best_guess(epsilon, delta)
    grown = exp(min(epsilon, 700.0))
    return min(1.0, grown * chance + delta, 1 - (1 - chance - delta) / grown)


def _chance(share: float) -> str:
    """Return a share rounded up; less than 1 is never shown as 100 %."""
    return percent(share) if share >= 0.01 else f"{ceil(round(1e4 * share, 9)) / 100:g}{HARD}%"


def _attacks(case: Case) -> Grid:
    rows = []
    for one in case.bounds:
        figures = f"{one.epsilon:.3f}", f"{one.delta or 0:g}", f"{one.reached:.3f}", str(one.runs)
        rows.append((one.audit, one.view, *figures, "yes" if one.holds else "BROKEN"))
    head = ("attack", "seen by", "claimed epsilon", "delta", "reached, at least", "runs", "claim holds")
    return Grid("Attacks of the audit on this method, with budgets of their own", head, tuple(rows))


def _recipients(statement: Statement) -> Grid:
    whole = percent(best_guess(statement.epsilon, statement.delta))
    public = statement.sees.get("anyone with the release", "the release")
    others = [(role, seen) for role, seen in statement.sees.items() if role != "anyone with the release"]
    rows = [(role, seen, whole) for role, seen in (*others, ("analyst", public), ("public, if published", public))]
    rows += [
        (f"against {who}", "the same, and what it knows itself", percent(best_guess(epsilon, statement.delta)))
        for who, epsilon in statement.other_adversaries.items()
    ]
    own = ("each party, of its own people", "its own rows", "not protected")
    return Grid("Recipients", ("recipient", "sees", "best guess about one person, at most"), (own, *rows))


def _duties(study: Study) -> Grid:
    each = "own rows, cap and ledger; agrees to the study's digest or refuses; can withdraw; keeps keys, log and copies"
    coordinator = (
        "runs the server and the study; sees what 'recipients' lists; publishes; holds the root of certificates"
    )
    rows = (*((party.name, each) for party in study.parties), ("coordinator", coordinator))
    return Grid("Who does what", ("organisation", "does"), rows)
