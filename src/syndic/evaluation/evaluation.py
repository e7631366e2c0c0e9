"""Hold and print the result of an evaluation. It is computed from real rows, so it is for their owner only."""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final, Self, final

from syndic.document import Document, from_file, to_readable_json
from syndic.errors import InputError, RefusedError
from syndic.evaluation.baselines import INDEPENDENT, REAL
from syndic.evaluation.distance import ColumnScore, Distance, GroupScore, PairScore, WayDistance
from syndic.evaluation.prediction import Prediction
from syndic.evaluation.regression import Overlap
from syndic.report.page import Grid, Page, Section, grid_html

BANNER: Final = "OWNER ONLY: computed from real rows"
RELEASE: Final = "release"
_SHOWN_COLUMNS: Final = 20


class Scores(Document, frozen=True, kw_only=True):
    """The scores of one table, the release or a baseline. Exact functions of real rows: for the owner only.

    `tvd` is from 0 (identical) to 1. `k_marginal` is from 0 to 1000 (identical). `pmse_logistic` and `pmse_tree` are
    ratios, 1 for indistinguishable rows. None if a score cannot be computed; the evaluation's notes say why.
    """

    name: str
    what: str
    rows: int
    tvd: tuple[WayDistance, ...]
    k_marginal: float | None = None
    pmse_logistic: float | None = None
    pmse_tree: float | None = None
    predictions: tuple[Prediction, ...] = ()
    overlap: Overlap | None = None


@final
class Evaluation(Document, frozen=True, kw_only=True):
    """Scores of a release and of baselines, the release first.

    For the owner only: it has no noise. `write` refuses a release's folder; `private_scores` makes scores that may be
    published. `parties` are those whose real rows were read; `full` says whether slow scores were made too. `pairs` and
    `relied_on` set the distances of pairs beside what the release expects of itself.
    """

    owner_only: bool = True
    warning: str = BANNER
    study: str
    digest: str | None
    parties: tuple[str, ...]
    rows: int
    seed: int
    full: bool
    target: str | None
    scores: tuple[Scores, ...]
    columns: tuple[ColumnScore, ...]
    groups: tuple[GroupScore, ...]
    sets: tuple[Distance, ...]
    notes: tuple[str, ...]
    pairs: tuple[PairScore, ...] = ()
    relied_on: str = ""

    def __post_init__(self) -> None:
        if self.owner_only is not True or self.warning != BANNER:
            raise ValueError(f"an evaluation is always marked owner_only = true, '{BANNER}'")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `write` wrote as `.json`."""
        return from_file(path, cls)

    def __getitem__(self, name: str) -> Scores:
        """Return the scores of the release or of a baseline, by name."""
        for one in self.scores:
            if one.name == name:
                return one
        raise InputError(f"no scores of '{name}': there are {', '.join(one.name for one in self.scores)}")

    @property
    def verdict(self) -> str:
        """Which parties gained, by the mean distance of pairs of columns, or of the only column."""
        distance = {one.name: one.tvd[min(1, len(one.tvd) - 1)].mean for one in self.scores}
        apart = f"two halves of which are {distance['two halves']:.3f} apart"
        words = f"the release is {distance[RELEASE]:.3f} from the real rows, {apart}"
        alone = {party: distance[name] for party in self.parties if (name := f"{party} alone") in distance}
        gained = [f"{party} ({value:.3f})" for party, value in alone.items() if value > distance[RELEASE]]
        lost = [f"{party} ({value:.3f})" for party, value in alone.items() if value <= distance[RELEASE]]
        words += f"; closer than a release of one party alone: {', '.join(gained)}" if gained else ""
        words += f"; not closer than a release of one party alone: {', '.join(lost)}" if lost else ""
        return words + self._boosted()

    def _boosted(self) -> str:
        """What boosting reaches when it is trained on the release, and on its baselines."""
        reached = [(one.name, one.predictions[0]) for one in self.scores if one.predictions]
        if not reached or reached[0][0] != RELEASE:
            return ""
        kept = {REAL, INDEPENDENT, *(f"{party}'s own rows" for party in self.parties)}
        each = [f"{_main_score(one)[1]} on {name}" for name, one in reached[1:] if name in kept]
        model, (metric, value) = reached[0][1].model, _main_score(reached[0][1])
        return f"; {model} of {self.target} has {metric} {value} if trained on the release, {', '.join(each)}"

    def write(self, path: str | Path) -> Path:
        """Write `.json`, `.txt` or `.html`. Refused inside the folder of a release, which is public."""
        path = Path(path)
        check_target(path)
        if path.suffix == ".json":
            content = to_readable_json(self)
        elif path.suffix == ".txt":
            content = f"{self}\n".encode()
        else:
            content = self._page().encode()
        try:
            path.write_bytes(content)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None
        return path

    def __repr__(self) -> str:
        return f"<Evaluation of {self.study!r}, {BANNER}>"

    def __str__(self) -> str:
        parts = [
            BANNER,
            f"{self.study}: the release compared with {self.rows:,} real rows of {', '.join(self.parties)}",
            self.verdict,
            *([self.relied_on] if self.relied_on else []),
            *map(_text, self._tables()),
            "\n".join(f"{one.name}: {one.what}" for one in self.scores),
            *(f"note: {note}" for note in self.notes),
            BANNER,
        ]
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        body = "".join(map(grid_html, self._tables()))
        notes = "".join(f"<p>{escape(note)}</p>" for note in (self.verdict, self.relied_on, *self.notes) if note)
        banner = f"<p><strong>{BANNER}</strong></p>"
        return f"{banner}<p>{escape(self.study)}</p>{notes}{body}{banner}"

    def _page(self) -> str:
        """Return the evaluation as one self-contained HTML page, marked in every section."""
        sections = [Section(title=grid.caption, tables=(grid,), owner=True) for grid in self._tables()]
        tables = tuple(f"{one.name}: {one.what}" for one in self.scores)
        sections.append(Section(title="What was compared", points=tables, notes=self.notes, owner=True))
        return Page(
            title=self.study,
            subtitle="Evaluation",
            lead=f"{BANNER}. {self.verdict[0].upper()}{self.verdict[1:]}."
            + (f" {self.relied_on}." if self.relied_on else ""),
            warnings=(),
            facts=(("Real rows", f"{self.rows:,}", ", ".join(self.parties)),),
            sections=tuple(sections),
            footer=f"{BANNER}. This file is self-contained: it loads nothing and runs no script.",
            owner="the owners of the rows",
        ).to_html()

    def _tables(self) -> list[Grid]:
        """Return every table that has rows."""
        columns = [
            (one.column, f"{one.tvd:.4f}", _number(one.pairs, ".4f"), f"{one.halves:.4f}")
            for one in self.columns[:_SHOWN_COLUMNS]
        ]
        pairs = [(" x ".join(one.columns), f"{one.tvd:.4f}", _number(one.expected, ".4f")) for one in self.pairs]
        groups = []
        for one in self.groups:
            shares, distances = (one.share, one.released_share), (one.tvd, one.halves)
            figures = [f"{value:.3f}" for value in shares] + [f"{value:.4f}" for value in distances]
            groups.append((f"{one.column} = {one.level}", *figures))
        heads = (
            ("column, worst first", "distance", "mean over its pairs", "two halves"),
            ("pair, worst first", "distance", "expected by the release"),
            ("group, worst first", "share", "in the release", "distance", "two halves"),
        )
        every = [
            self._main(),
            *([self._predicted()] if self.target else []),
            Grid("Columns, worst first", heads[0], tuple(columns)),
            Grid("Pairs, worst first", heads[1], tuple(pairs)),
            Grid("Groups, worst first", heads[2], tuple(groups)),
        ]
        return [grid for grid in every if grid.rows]

    def _main(self) -> Grid:
        ways = [f"{way.columns}-way" for way in self.scores[0].tvd]
        rows = []
        for one in self.scores:
            pair = next((f"{way.worst:.3f}" for way in one.tvd if way.columns == 2), "-")
            means = [f"{way.mean:.4f}" for way in one.tvd]
            ratios = [_number(value, ".3g") for value in (one.pmse_logistic, one.pmse_tree)]
            rows.append((one.name, f"{one.rows:,}", *means, pair, _number(one.k_marginal, ".0f"), *ratios))
        head = ("", "rows", *ways, "worst pair", "k-marginal", "pMSE logistic", "pMSE tree")
        return Grid("Distances", head, tuple(rows))

    def _predicted(self) -> Grid:
        models = next((one.predictions for one in self.scores if one.predictions), ())
        more = [f"{each.model}, {_main_score(each)[0]}" for each in models[1:]]
        first = list(_details(models[0])) if models else []
        name = f"{models[0].model if models else 'predict'}: {self.target}"
        rows = []
        for one in self.scores:
            reached = ["-"] * (len(first) + len(more))
            if one.predictions:
                reached = [*_details(one.predictions[0]).values()]
                reached += [_main_score(each)[1] for each in one.predictions[1:]]
            overlap = [one.overlap.mean, one.overlap.difference] if one.overlap else [None, None]
            rows.append((one.name, *reached, *(_number(value, ".2f") for value in overlap)))
        head = (name, *first, *more, "interval overlap", "difference (standard errors)")
        return Grid(f"Predicting {self.target}", head, tuple(rows))


def check_target(path: Path) -> None:
    """Raise `InputError` for an unknown suffix, `RefusedError` for a file in or below the folder of a release."""
    if path.suffix not in {".json", ".txt", ".html"}:
        raise InputError(f"{path.name}: unknown file type; an evaluation is written as .json, .txt or .html")
    for folder in path.resolve().parents:
        if (folder / "statement.json").exists():
            raise RefusedError(
                f"{path.name}: {folder.name} is the folder of a release, which is public, and an evaluation comes from "
                "real rows: write it elsewhere, or make noisy scores that may be published, with "
                "syndic.evaluation.private_scores"
            )


def _main_score(one: Prediction) -> tuple[str, str]:
    """Return the name and the value of a model's main score: AUC, or R squared."""
    if one.chances is None:
        return one.metric, f"{one.score:.3f}"
    return "AUC", _number(one.chances.auc, ".3f")


def _details(one: Prediction) -> dict[str, str]:
    """Return all scores of a model, by name."""
    found = one.chances
    if found is None:
        return {one.metric: f"{one.score:.3f}", "root mean squared error": f"{one.second:.4g}"}
    named = {
        "AUC": found.auc,
        "log loss": found.log_loss,
        "Brier": found.brier,
        "calibration error": found.calibration_error,
        "accuracy": found.accuracy,
    }
    return {name: _number(value, ".3f") for name, value in named.items()}


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def _text(grid: Grid) -> str:
    lines = [grid.head, *grid.rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(grid.head))]

    def padded(line: Sequence[str]) -> Iterator[str]:
        for place, (cell, width) in enumerate(zip(line, widths, strict=True)):
            yield cell.rjust(width) if place else cell.ljust(width)

    return "\n".join("  ".join(padded(line)).rstrip() for line in lines)
