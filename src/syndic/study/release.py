"""Hold what is published: the result, the statement of what it protects, and a transcript of the messages."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self, final

import pyarrow as pa

from syndic.data import ReleasedTable
from syndic.document import from_file, to_readable_json
from syndic.errors import InputError
from syndic.kernel import Exchange, Method, Result, covered, groups_of
from syndic.kernel.cut import partners_with
from syndic.methods.comparison.glued import GluedNote, reliability_of_glued
from syndic.methods.histogram.homm import HommPlan, MergedTable
from syndic.methods.histogram.homm_expected import reliability_of_grid
from syndic.methods.histogram.tables import MarginalTables, measured_by_tables
from syndic.methods.learning.result import LearnResult, LinearPredictor
from syndic.methods.regression.gram_result import GramResult
from syndic.methods.synthesis.measured import measured_by_model
from syndic.methods.synthesis.result import PublishedRows, SyntheticTable
from syndic.methods.synthesis.trust import Reliability
from syndic.model.describe import ChiSquared, tested
from syndic.model.interval import Interval, Measured, interval_of
from syndic.study.document import Study
from syndic.study.statement import Statement, summary

_LETTERS: Final = 16
UNKNOWN_RELIABILITY: Final = "Which relations of its columns can be relied on is not known"


@final
@dataclass(frozen=True, kw_only=True)
class Release:
    """A release: the result, its statement and a transcript. All of it may be published."""

    study: Study
    result: Result
    statement: Statement
    transcript: tuple[Exchange, ...]

    @property
    def table(self) -> ReleasedTable:
        """The synthetic table, for methods that publish one."""
        if self.known_table is None:
            raise InputError(f"{self.statement.method} publishes no table: see release.result")
        return self.known_table

    @property
    def known_table(self) -> ReleasedTable | None:
        """The same, or None if the method publishes none."""
        table = getattr(self.result, "table", None)
        return table if isinstance(table, ReleasedTable) else None

    @property
    def model(self) -> Any:
        """The fitted model, for methods that publish one; it may be used as often as you like, at no cost.

        A synthesis: `ReleasedModel`, which answers tables and samples rows. `learn`: `LinearPredictor`, with `predict`,
        `predict_proba` and `coefficients`. `gram`: `GramModels`, which fits any label.
        """
        if isinstance(self.result, LearnResult):
            return LinearPredictor(self.result.model, self.result.design)
        if isinstance(self.result, GramResult):
            from syndic.sklearn.regression import GramModels  # noqa: PLC0415  # it is fitted to a release

            return GramModels(self)
        model = getattr(self.result, "model", None)
        if model is None:
            raise InputError(f"{self.statement.method} publishes no model: see release.result")
        return model

    @property
    def reliability(self) -> Reliability:
        """The expected error of every column and pair of the table, for methods that publish what it takes."""
        if self.known_reliability is None:
            raise InputError(f"{UNKNOWN_RELIABILITY}: {self.statement.method} does not publish what it takes")
        return self.known_reliability

    @cached_property
    def known_reliability(self) -> Reliability | None:
        """The same, or None if it is not known."""
        result, study = self.result, self.study
        if isinstance(result, MergedTable):
            plan = study.plan_as(HommPlan)
            return reliability_of_grid(plan, result) if plan.one_grid else None
        if isinstance(result, PublishedRows) and isinstance(result.note, GluedNote):
            return reliability_of_glued(study.schema, study.parties[0].people or 0, result)
        return result.reliability if isinstance(result, SyntheticTable) else None

    def interval(self, question: str, *, confidence: float = 0.95) -> Interval:
        """Return an interval for a question about the people behind the rows, at no cost; or why there is none.

        It accounts for sampling and for noise, from the noisy tables; see `syndic.model.interval.question` for what may
        be asked: `mean(age, given=sex == "f")`, `odds(ill, given=smoker) / odds(ill, given=not smoker)`,
        `linear(weight, age, sex)`, `logistic(ill, age, sex)`, `quantile(age, 0.5)`.
        """
        return interval_of(self.measured, question, confidence)

    def chi_squared(self, one: str, other: str, *, linear: bool = False) -> ChiSquared | None:
        """Test that two columns are independent, from noisy tables, at no cost; None if noise leaves nothing to test.

        The noise is in the p-value. `linear`: against a trend in their numbers or in the order of their values.
        """
        return tested(self.measured, one, other, linear=linear)

    @cached_property
    def measured(self) -> Measured:
        """What noisy tables say, for methods that publish them."""
        study, result, unit = self.study, self.result, self.study.unit
        repeated = unit.whole_rows * unit.parties
        rows = study.people if unit.sizes_are_public else None
        if isinstance(result, SyntheticTable):
            # nobody knows whose rows are missing
            public = rows is not None and getattr(study.protocol, "missing", 0) == 0
            found = measured_by_model(result, public=public, repeated=repeated)
            servers, colluding = getattr(study.protocol, "servers", ()), getattr(study.protocol, "colluding", 1)
            groups = groups_of(study, partners_with(servers, colluding))
            everybody = sum(group.people for group in groups)
            # a table of a part of the people, scaled up, says less than its counts, and nothing of the rest
            tables = tuple(one for one in found.tables if covered(groups, one.names) == everybody)
            return replace(found, tables=tables)
        if isinstance(result, MarginalTables):
            note, count = result.note, len(result.tables)
            rows = rows if len(note.present) == len(study.parties) else None
            deviations = note.deviations or (note.standard_deviation,) * count
            # a table of a part of the people says nothing of the rest
            known = [place for place in range(count) if not note.covers or note.covers[place] == 1]
            counted, variances = [result.tables[one] for one in known], [deviations[one] ** 2 for one in known]
            return measured_by_tables(study.schema, counted, variances, rows=rows, repeated=repeated)
        raise InputError(f"{self.statement.method} publishes no noisy tables that intervals follow from")

    def write(self, folder: str | Path) -> list[Path]:
        """Write the result, `study.json`, `statement.json`, `transcript.json` and, where known, `reliability.json`.

        The release of another run in the folder is moved to `earlier/`, into a folder by its digest.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._move_earlier(folder)
        return self._write(folder)

    def _write(self, folder: Path) -> list[Path]:
        paths = self.result.write(folder)
        documents: dict[str, Any] = {
            "study": self.study,
            "statement": self.statement,
            "transcript": self.transcript,
        }
        if self.known_reliability is not None:
            documents["reliability"] = self.known_reliability
        for name, content in documents.items():
            path = folder / f"{name}.json"
            path.write_bytes(to_readable_json(content))
            paths.append(path)
        return paths

    def _move_earlier(self, folder: Path) -> None:
        """Move the release of another run out of the way: neither may overwrite a part of the other.

        Of a release that cannot be read, what would be overwritten is moved, unless it is a part of this one.
        """
        try:
            earlier = Release.load(folder)
            name, stays = earlier.study.digest[:_LETTERS], self._is_in(folder)
        except InputError:
            study, earlier, name = folder / "study.json", self, "unread"
            stays = not study.is_file() or study.read_bytes() == to_readable_json(self.study)
        if stays:
            return
        places = (folder / "earlier" / (name if number == 1 else f"{name}-{number}") for number in count(1))
        kept = next(place for place in places if not place.exists())
        with TemporaryDirectory() as draft:
            files = [path.relative_to(draft) for path in earlier._write(Path(draft))]
        for path in (*files, Path("report.html")):
            if (folder / path).exists():
                (kept / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).replace(kept / path)

    def _is_in(self, folder: Path) -> bool:
        """Return whether the folder has this release already, byte by byte: two seeds have the same statement."""
        with TemporaryDirectory() as draft:
            files = [(path, folder / path.relative_to(draft)) for path in self._write(Path(draft))]
            return all(old.is_file() and old.read_bytes() == new.read_bytes() for new, old in files)

    def report(self, path: str | Path) -> Path:
        """Write a report with figures, as one self-contained HTML file, and return its path."""
        from syndic.report import report  # noqa: PLC0415  # a report is made of a release

        return report(self, path)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read back what `write` wrote."""
        folder = Path(folder)
        study = from_file(folder / "study.json", Study)
        try:
            method: Method = study.protocol
            result = method.read(study.plan, folder)
        except (ArithmeticError, LookupError, TypeError, ValueError, OSError, pa.ArrowException) as error:
            # every method has its own files, and damage to them raises various errors
            raise InputError(f"{folder.name}: its release cannot be read: {type(error).__name__}") from error
        return cls(
            study=study,
            result=result,
            statement=from_file(folder / "statement.json", Statement),
            transcript=from_file(folder / "transcript.json", tuple[Exchange, ...]),
        )

    def summary(self) -> Mapping[str, Any]:
        """Return the most important facts of the release, by name."""
        known = self.known_reliability
        relied = {} if known is None else {"reliability": known.sentence}
        return {**summary(self.statement), **self.result.summary(), **relied}

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.summary().items())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(str(name))}</th><td>{escape(str(value))}</td></tr>"
            for name, value in self.summary().items()
        )
        preview = "" if self.known_table is None else self.known_table._repr_html_()
        return f"<table>{rows}</table>{preview}"
