"""The public report of a release, and the version that only an owner may see."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from syndic.errors import InputError, RefusedError
from syndic.kernel import Result, member
from syndic.methods.describe.result import DescribeResult
from syndic.methods.histogram.homm import MergedTable
from syndic.methods.learning.result import LearnResult
from syndic.methods.regression.gram_result import GramResult
from syndic.methods.survival.result import SurvivalResult
from syndic.methods.synthesis.result import SyntheticTable
from syndic.privacy import at_delta
from syndic.report.coefficients import gram_section, learn_section
from syndic.report.estimates import describe_section, survival_section
from syndic.report.owner import ledger_section, own_columns_section
from syndic.report.page import Grid, Page, Section
from syndic.report.pictures import Coded, coded, columns_section, pairs_section
from syndic.report.promise import cost_section, percent, promise_section
from syndic.report.record import (
    assumptions_section,
    messages_section,
    released_section,
    reproduce_section,
    roles_section,
    sentence,
    unprotected_section,
)
from syndic.report.svg import HARD, number
from syndic.report.synthetic import homm_section, reliability_section, synthesis_section
from syndic.study.release import UNKNOWN_RELIABILITY, Release
from syndic.study.statement import WHOLE_RELEASE, best_guess, costs_of

# A method adds its own section here, under the class of its result.
METHOD_SECTION: Final[Mapping[type[Result], Callable[[Release, Any], Section | None]]] = {
    DescribeResult: describe_section,
    MergedTable: homm_section,
    GramResult: gram_section,
    LearnResult: learn_section,
    SurvivalResult: survival_section,
    SyntheticTable: synthesis_section,
}


def report(release: Release, path: str | Path) -> Path:
    """Write the release's report as one HTML file; return its path. Everything in it follows from the release."""
    path = Path(path)
    page = _page(release, coded(release), "", ())
    _write(path, page.to_html())
    return path


def coefficient_tables(release: Release) -> tuple[Grid, ...]:
    """Return the tables of coefficients of a learnt model or of a Gram matrix; other releases have none."""
    section = method_section(release) if isinstance(release.result, GramResult | LearnResult) else None
    return () if section is None else section.tables


def owner_report(
    release: Release, path: str | Path, *, party: str, source: Any = None, ledger: str | Path | None = None
) -> Path:
    """Write the report with the party's exact shares (`source`) and its ledger. Private: for this party only.

    Raises:
        RefusedError: if the file would be in a release's folder, where it could be passed on by mistake.
    """
    path = Path(path)
    member(release.study, party)
    _refuse_release_folder(path)
    table = coded(release)
    private = []
    if source is not None:
        private.append(own_columns_section(release, table, party, source))
    if ledger is not None:
        private.append(ledger_section(release, party, ledger))
    page = _page(release, table, party, tuple(private))
    _write(path, page.to_html(), private=True)
    return path


def method_section(release: Release) -> Section | None:
    """Return the section that the release's method adds, if any."""
    kind = next((kind for kind in type(release.result).__mro__ if kind in METHOD_SECTION), None)
    return None if kind is None else METHOD_SECTION[kind](release, release.result)


def _page(release: Release, table: Coded | None, owner: str, private: tuple[Section, ...]) -> Page:
    reliability = release.known_reliability
    shown = table if table is not None and table.groupings else None
    sections: tuple[Section | None, ...] = (
        *private,
        released_section(release),
        cost_section(release.statement),
        promise_section(release.statement),
        unprotected_section(release),
        assumptions_section(release),
        roles_section(release),
        messages_section(release),
        None if reliability is None else reliability_section(reliability),
        method_section(release),
        None if shown is None else columns_section(shown, release),
        None if shown is None else pairs_section(shown),
        reproduce_section(release),
    )
    unknown = f"{UNKNOWN_RELIABILITY}: this method does not publish what it takes." if table is not None else ""
    relied_on = unknown if reliability is None else reliability.sentence
    statement = release.statement
    return Page(
        title=statement.study,
        subtitle=f"Owner's report for {owner}" if owner else "Report of a joint release",
        lead=f"{_lead(release)} {relied_on}" if relied_on else _lead(release),
        warnings=_warnings(release),
        facts=_facts(release),
        sections=tuple(one for one in sections if one is not None),
        footer=f"Written by Syndic {statement.syndic} from the release itself. Study digest {statement.digest}. "
        "This file is self-contained: it loads nothing and runs no script.",
        owner=owner,
    )


def _lead(release: Release) -> str:
    statement, names = release.statement, [party.name for party in release.study.parties]
    who = f"{len(names)} organisations" + (f" ({', '.join(names)})" if len(names) <= 6 else "")
    what = "one result" if release.known_table is None else "one synthetic table"
    released = f"{who if len(names) > 1 else names[0]} released {what} by a method that does not pool rows."
    if not statement.protects:
        return f"{released} This run is a rehearsal: it protects nobody and must not be published."
    if statement.discloses:
        return f"{released} It disclosed something exactly, outside any epsilon: {'; '.join(statement.discloses)}."
    chance = percent(best_guess(statement.epsilon, statement.delta))
    return (
        f"{released} Whoever studies it, the best possible guess about any one person is right at most {chance} of "
        f"the time, where a coin would be right 50{HARD}%. This page says what that covers, what it does not, and "
        "how to check it."
    )


def _warnings(release: Release) -> tuple[Section, ...]:
    statement = release.statement
    found = []
    if not statement.protects:
        reasons = [sentence(statement.randomness)] if statement.randomness.startswith("simulated") else []
        if release.study.protocol.simulation_only:
            reasons.append("The method runs as published, which does not satisfy the guarantee it states.")
        reasons.append("Do not publish this run and do not use it with data about real people.")
        found.append(Section(title="This run protects nobody", points=tuple(reasons)))
    if statement.discloses:
        points = tuple(sentence(text) for text in statement.discloses)
        found.append(Section(title="Disclosed exactly, outside any epsilon", points=points))
    if statement.departures:
        found.append(Section(title="Claims of the paper that are not met", points=statement.departures))
    if statement.digest != release.study.digest:
        text = f"The statement belongs to study {statement.digest[:12]}, the study file is {release.study.digest[:12]}."
        found.append(Section(title="Statement and study do not match", points=(text, "Do not rely on this report.")))
    return tuple(found)


def _facts(release: Release) -> tuple[tuple[str, str, str], ...]:
    statement, table = release.statement, release.known_table
    names = [party.name for party in release.study.parties]
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    facts = [("Parties", str(len(names)), shown)]
    if table is not None:
        facts.append(("Released", f"{number(len(table))} rows", f"{len(table.names)} columns, all synthetic"))
    first, *more = costs_of(statement)
    if not statement.protects:
        facts.append(("Protection of one person", "none", "see the warning above"))
        facts.append(_cost("Would cost, with fresh noise", first, *more))
        return tuple(facts)
    facts.append(_cost("Cost for one person", first, *more))
    if not statement.discloses:
        chance = percent(best_guess(statement.epsilon, statement.delta))
        facts.append(
            ("Protection of one person", f"50{HARD}% → {chance}", "a right guess, without and with the release")
        )
    if not statement.one_number:
        facts.append(_cost(WHOLE_RELEASE, f"{at_delta(statement.epsilon, statement.delta)} for one person"))
    return tuple(facts)


def _cost(title: str, text: str, *more: str) -> tuple[str, str, str]:
    """Return a fact whose value is the epsilon alone; what it is of follows."""
    word, value, rest = text.split(" ", 2)
    return title, f"{word} {value}", "; ".join((rest, *more))


def _refuse_release_folder(path: Path) -> None:
    """Refuse a release's folder and everything in it, except a party folder."""
    for folder in path.resolve().parents:
        if (folder / "party.json").exists():
            return
        if (folder / "statement.json").exists():
            raise RefusedError(
                f"{path.name}: an owner's report must not be written into a release's folder, where it could be passed "
                "on by mistake: write it to the party folder"
            )


def _write(path: Path, text: str, *, private: bool = False) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.touch(mode=0o600 if private else 0o666)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
