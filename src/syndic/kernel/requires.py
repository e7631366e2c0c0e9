"""What a method requires of the terms, declared; the kernel checks it and has the sentences."""

from typing import Literal

from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel.terms import Member, Terms, budget_of


class Requires(Document):
    """Declared by every method.

    `people`: whether every party gives a public number of people: never, where sizes are public (`replace`), always,
    or always and the same, because the people are the same. `columns`: whether every party holds all columns, each
    column is at exactly one party (`apart`), or the method checks that itself (`any`). `delta`: what needs a delta
    above 0, in words, or "". `neighbours`, `rows` and `parties`: what the unit must be, if not as the study likes;
    `because` says why. `least_parties`: how many parties there must be. `free_columns`: names that the method adds.
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

    def check(self, terms: Terms) -> None:
        """Raise `InputError` for the first requirement that is not met, with what to set."""
        self._check_unit(terms)
        if len(terms.parties) < self.least_parties:
            raise InputError(f"this method needs {self.least_parties} or more parties: the study has fewer")
        for party in terms.parties:
            self._check_party(terms, party)
        if self.delta and terms.budget.delta == 0:
            raise InputError(f"{self.delta} needs delta above 0: set delta in the study's budget")
        if self.people == "same" and len({party.people for party in terms.parties}) > 1:
            raise InputError("the parties hold the same people: set the same number, people, for each of them")
        if self.columns == "apart":
            _check_apart(terms)
        for name in self.free_columns:
            if name in terms.schema.names:
                raise InputError(f"this method adds a column '{name}', which the schema already has: rename it")

    def _check_unit(self, terms: Terms) -> None:
        unit, wanted = terms.unit, []
        if self.neighbours is not None and unit.neighbours != self.neighbours:
            wanted.append(f'neighbours = "{self.neighbours}"')
        if self.rows is not None and unit.rows != self.rows:
            wanted.append(f"rows = {self.rows}")
        if self.parties is not None and unit.parties != self.parties:
            wanted.append(f"parties = {self.parties}")
        if wanted:
            raise InputError(f"{self.because or 'this method needs it'}: set {' and '.join(wanted)} in [unit]")

    def _check_party(self, terms: Terms, party: Member) -> None:
        where = f"party '{party.name}'"
        replace = self.people == "replace" and terms.unit.neighbours == "replace"
        if party.people is None and (replace or self.people in {"bound", "same"}):
            why = 'neighbours = "replace"' if replace else "this method"
            raise InputError(f"{where}: {why} needs the public number of its people: set people")
        if self.delta and budget_of(terms, party.name).delta == 0:
            raise InputError(f"{where}: {self.delta} needs delta above 0: set delta in its budget")
        if self.columns == "all" and party.columns is not None:
            raise InputError(f"{where}: every party holds all columns here: leave columns out")
        if self.columns == "apart" and party.columns is None:
            raise InputError(f"{where}: the parties hold different columns here: set columns, those that it holds")


def _check_apart(terms: Terms) -> None:
    held = [name for party in terms.parties for name in party.columns or ()]
    for name in terms.schema.names:
        if held.count(name) != 1:
            where = "no party" if held.count(name) == 0 else "several parties"
            raise InputError(f"column '{name}' is at {where}: each column must be at exactly one")
