"""The requirements of a method on the terms of a study. Methods declare them; the kernel checks them."""

import json
from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec.structs import replace

from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel.cut import MOST_PARTS, Group, check_held, groups_of, parts_of, shared_people
from syndic.kernel.terms import Member, Terms


class Requires(Document):
    """Declared by every method.

    `people`: whether every party must give a public number of people: never, if sizes are public (`replace`), always
    (`bound`), or always and the same number, because the people are the same (`same`). `columns`: every party holds
    all columns (`all`), each column is at exactly one party (`apart`), or the method checks it itself (`any`). `delta`:
    what needs a delta above 0, in words, or "". `neighbours`, `rows` and `parties`: the required unit, or None if the
    study may choose; `because` says why. `least_parties`: the least number of parties. `free_columns`: names of
    columns that the method adds. `weights`: whether it counts rows with weights (`choose = "weighted"`). `any_cut`:
    whether it takes groups of people with several parties each; it then requires of these what `SHARED` says.
    `averages`: whether it averages a column over several parties of a group.
    """

    people: Literal["none", "replace", "bound", "same"] = "none"
    columns: Literal["all", "apart", "any"] = "all"
    delta: str = ""
    neighbours: Literal["add_remove", "replace"] | None = None
    rows: int | None = None
    parties: int | None = None
    because: str = ""
    least_parties: int = 1
    free_columns: tuple[str, ...] = ()
    weights: bool = False
    any_cut: bool = False
    averages: bool = False

    def check(self, terms: Terms) -> None:
        """Raise `InputError` for the first requirement that is not met; the text says what to set."""
        if self.any_cut:
            _check_named(terms)
            groups = groups_of(terms)
            check_held(groups, terms.schema.names)
            _check_read_from(terms, groups, averages=self.averages)
            if terms.unit.parties > len(groups):
                raise InputError(
                    f"a person is in at most {len(groups)} group(s): set parties = {len(groups)} in [unit]"
                )
            replace(self, any_cut=False, **(SHARED if shared_people(terms) else {"columns": "any"})).check_cut(terms)
            return
        named = [party.name for party in terms.parties if party.group is not None]
        if named:
            raise InputError(f"party '{named[0]}': this method takes no groups of people. {_OTHERS}. Or remove `group`")
        if terms.read_from:
            raise InputError(
                "read_from: with this method no column is at several parties of the same people: remove it. "
                f"For columns that are: {_OTHERS}"
            )
        self.check_cut(terms)

    def check_cut(self, terms: Terms) -> None:
        """Check everything but which cuts the method takes."""
        self._check_unit(terms)
        if len(terms.parties) < self.least_parties:
            raise InputError(f"this method needs at least {self.least_parties} parties, not {len(terms.parties)}")
        for party in terms.parties:
            self._check_party(terms, party)
        if self.delta and terms.budget.delta == 0:
            raise InputError(
                f"{self.delta} needs delta above 0: set delta in [budget] of the study file, at most 0.01 / people"
            )
        if self.people == "same":
            _check_same(terms)
        if self.people == "same" and terms.unit.person is not None:
            raise InputError(
                "rows of the same people are matched by their places, so none may be left out: remove `person` from "
                "[unit], and align the people by their ids"
            )
        if self.columns == "apart":
            _check_apart(terms)
        for name in self.free_columns:
            if name in terms.schema.names:
                raise InputError(f"this method adds a column '{name}', which the schema has too: rename that one")

    def _check_unit(self, terms: Terms) -> None:
        unit = terms.unit
        needs = {"neighbours": self.neighbours, "rows": self.rows, "parties": self.parties}
        wanted = [
            f"{key} = {json.dumps(need)}" for key, need in needs.items() if need not in (None, getattr(unit, key))
        ]
        if wanted:
            raise InputError(f"{self.because or 'this method needs it'}: set {' and '.join(wanted)} in [unit]")
        if unit.scale > 1 and not self.weights:
            raise InputError(
                'choose = "weighted" is for `synthesis`, and `marginals` with Gaussian or Laplace noise: use one of '
                'them, or set choose = "first", "last" or "random" in [unit]'
            )

    def _check_party(self, terms: Terms, party: Member) -> None:
        where = f"party '{party.name}'"
        replace = self.people == "replace" and terms.unit.neighbours == "replace"
        if party.people is None and (replace or self.people in {"bound", "same"}):
            why = 'neighbours = "replace"' if replace else "this method"
            raise InputError(f"{where}: {why} needs the public number of its people: set `people`")
        if self.delta and party.budget is not None and party.budget.delta == 0:
            raise InputError(f"{where}: {self.delta} needs delta above 0: set delta in its `budget` in the study file")
        if self.columns == "all" and party.columns is not None:
            raise InputError(
                f"{where}: with this method every party holds all columns: remove `columns`. For different columns: "
                f"{_OTHERS}"
            )
        if self.columns == "apart" and party.columns is None:
            raise InputError(f"{where}: with this method the parties hold different columns: set `columns` to its own")


_OTHERS: Final = (
    "`gram` fits regressions, `synthesis` with `target` makes a table to train a classifier on, and `describe`, "
    "`estimate`, `marginals` and `survival` publish figures: they take any cut"
)

SAME_PEOPLE = Requires(
    people="same",
    columns="apart",
    delta="Gaussian noise",
    neighbours="replace",
    rows=1,
    parties=1,
    because="aligned rows show which people are in the data, and every party is charged for the whole release",
    least_parties=2,
)
"""Requirements of a method on aligned rows with Gaussian noise: the same people, different columns at each party."""


SHARED: dict[str, Any] = {
    "people": "same",
    "columns": "any",
    "neighbours": "replace",
    "rows": 1,
    "weights": False,
    "because": "parties that hold columns of the same people know who is in the data",
}
"""What a method that takes any cut requires where several parties hold columns of the same people."""


def _check_read_from(terms: Terms, groups: Sequence[Group], *, averages: bool) -> None:
    """Refuse a rule that says nothing, and columns that are averaged where the method cannot, or in too many parts."""
    for column in terms.read_from or ():
        if not any(column in group.also or len(group.read_from.get(column, ())) > 1 for group in groups):
            raise InputError(f"read_from: no two parties of a group of people hold '{column}': remove it from there")
    for group in groups:
        for column, parties in group.read_from.items():
            if len(parties) > 1 and not averages:
                raise InputError(
                    f"read_from: '{column}' is averaged over {' and '.join(parties)}, and this method reads a column "
                    "from one party: name one of them. `describe`, `marginals`, `survival` and `synthesis` average"
                )
    if parts_of(groups) > MOST_PARTS:
        raise InputError(
            f"read_from cuts a person into {parts_of(groups):,} equal parts, one for each choice of parties to read "
            f"from, and at most {MOST_PARTS} are counted: name the same parties for more columns, or fewer parties"
        )


def _check_named(terms: Terms) -> None:
    """Refuse to guess whether a party that lists no columns has the people of those that list some."""
    without = [party.name for party in terms.parties if party.columns is None]
    if 0 < len(without) < len(terms.parties) and not any(party.group for party in terms.parties):
        raise InputError(
            f"party '{without[0]}' lists no `columns`, but others do: set `group` for each party, the same for parties "
            "with the same people"
        )


def _check_same(terms: Terms) -> None:
    known = {party.name: party.people for party in terms.parties}
    if not any(party.group for party in terms.parties):
        if len(set(known.values())) > 1:
            raise InputError("all parties hold the same people: set the same number `people` for each party")
        return
    for group in groups_of(terms):
        if len({known[name] for name in group.parties}) > 1:
            raise InputError(
                f"the parties of group '{group.name}' hold the same people: set the same `people` for each"
            )


def _check_apart(terms: Terms) -> None:
    held = [name for party in terms.parties for name in party.columns or ()]
    for name in terms.schema.names:
        if held.count(name) != 1:
            where = "no party" if held.count(name) == 0 else "several parties"
            raise InputError(f"column '{name}' is held by {where}: each column must be held by exactly one")
