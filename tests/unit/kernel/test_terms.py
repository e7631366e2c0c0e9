"""The public terms: what a study may say of its parties and limits."""

from fractions import Fraction
from typing import Any

import pytest
from msgspec.structs import replace

from support import study_text
from syndic import Study
from syndic.errors import InputError
from syndic.kernel import Limits, Member, budget_of, identified, member, people_of, schema_of
from syndic.privacy import Budget

STUDY = Study.loads(study_text())


@pytest.mark.parametrize("name", ["", "a" * 65, "nörd", "a b", "../up", "a/b", "a.b"])
def test_a_name_is_good_for_a_folder(name: str) -> None:
    with pytest.raises(ValueError, match="must be 1 to 64 ASCII letters"):
        Member(name=name)


@pytest.mark.parametrize("name", ["a", "A-b_9", "a" * 64])
def test_good_names_pass(name: str) -> None:
    assert Member(name=name).name == name


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"people": 0}, r"people \(0\) must be at least 1"),
        ({"identity": "sy1-nonsense"}, "identity must be the line that `syndic identity` prints"),
    ],
)
def test_impossible_members_are_refused(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Member(name="north", **fields)
    assert Member(name="north", people=1).people == 1


@pytest.mark.parametrize("field", ["memory_mb", "message_mb"])
def test_limits_leave_something_to_work_with(field: str) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        Limits(**{field: 0})
    assert getattr(Limits(**{field: 1}), field) == 1


def test_a_party_is_found_by_its_name_or_the_names_are_told() -> None:
    assert member(STUDY, "south").people == 40
    with pytest.raises(InputError, match="'east' is not a party of this study; its parties are north, south"):
        member(STUDY, "east")


def test_a_partys_own_budget_counts_for_it_alone() -> None:
    own = Budget(epsilon=Fraction(1, 2))
    north, south = STUDY.parties
    study = replace(STUDY, parties=(replace(north, budget=own), south))
    assert budget_of(study, "north") == own
    assert budget_of(study, "south") == study.budget


def test_the_number_of_people_is_known_if_every_party_gives_one() -> None:
    north, south = STUDY.parties
    assert people_of(STUDY) == 100
    assert people_of(replace(STUDY, parties=(north, replace(south, people=None)))) is None
    assert not identified(STUDY)
    assert schema_of(STUDY, "north") == STUDY.schema
