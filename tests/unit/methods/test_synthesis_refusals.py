"""Synthesis before any row is read: what is refused, with a way out, and what the plan says."""

from typing import Any

import pytest

from support import ONE, study_text
from syndic import Study, plan
from syndic.errors import InputError
from unit.methods.synthesising import FLAGS, planned, study

WIDE_NAMES = '["w0", "w1", "w2", "w3", "w4"]'
WIDE = "".join(
    f'[[schema.columns]]\nname = "w{place}"\nkind = "integer"\nlower = 0\nupper = 99\nmissing = {{ value = 0 }}\n'
    for place in range(5)
)


@pytest.mark.parametrize(
    ("options", "parts", "text"),
    [
        ("", {"budget": "epsilon = 1.0"}, "delta above 0"),
        ("model_cells = 5", {}, "the fewest being 14"),
        ("model_cells = 500000000", {}, r"64,\d\d\d MB of memory \(limit 2000\)"),
        ("missing = 1", {"parties": 3}, "missing"),
        ('zeros = [{ columns = ["age"], cells = [["17"]] }]', {}, "'age' has no value '17'; its labels are 0-19"),
        ('zeros = [{ columns = ["age"], cells = [["0-19", "red"]] }]', {}, "a value for each column"),
        ("colluding = -1", {}, "colluding"),
        ("rounds = 0", {}, "rounds"),
        ('selector = "adaptive"\nrounds = 1000000000000', {}, "rounds .* at most 100"),
        ('zeros = [{ columns = ["flag"], cells = [["no"], ["yes"]] }]', {"columns": FLAGS}, "no combination"),
        (
            'zeros = [{ columns = ["flag"], cells = [["no"]] }, '
            '{ columns = ["mark", "flag"], cells = [["no", "yes"], ["yes", "yes"]] }]',
            {"columns": FLAGS},
            "no combination",
        ),
        (
            f'zeros = [{{ columns = {WIDE_NAMES}, cells = [["0", "0", "0", "0", "0"]] }}]',
            {"columns": WIDE},
            "10,000,000,000 combinations",
        ),
        ('selector = "one_shot"\nrounds = 3', {}, "rounds is for"),
        ("rows = -1", {}, "rows"),
    ],
)
def test_what_cannot_work_is_refused_with_a_way_out(options: str, parts: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        study(options, **parts).check()


def test_a_column_that_does_not_fit_is_refused_with_the_number_it_would_need() -> None:
    wide = '[[schema.columns]]\nname = "wide"\nkind = "integer"\nlower = 1\nupper = 100000000\n'
    with pytest.raises(
        InputError, match=r"'wide' with 100,000,001\), needs about \d+,\d\d\d MB of memory \(limit 2000\)"
    ):
        plan(study(columns=wide))


def test_people_are_needed_and_public_where_columns_are_split() -> None:
    without = study_text(protocol='method = "synthesis"', budget=ONE, parties='[[parties]]\nname = "a"\n')
    with pytest.raises(InputError, match="people"):
        Study.loads(without).check()
    split = study_text(
        protocol='method = "synthesis"',
        budget=ONE,
        parties='[[parties]]\nname = "a"\npeople = 9\ncolumns = ["age"]\n'
        '[[parties]]\nname = "b"\npeople = 9\ncolumns = ["colour", "score"]\n',
    )
    with pytest.raises(InputError, match="know who is in the data: set neighbours"):
        Study.loads(split).check()


def test_the_plan_says_what_is_asked_and_needed() -> None:
    shown = str(plan(study(parties=3)))
    assert "count: masked" in shown
    assert "measure" not in shown
    assert "sum_open" not in shown
    assert "sum_open" in str(plan(study("missing = 1", parties=5)))
    alone = str(plan(study(parties=1)))
    assert "measure: noisy" in alone
    assert "masks" not in alone.partition("trust")[0]
    small = plan(study("model_cells = 1000")).resources.memory_bytes
    assert plan(study("model_cells = 1001000")).resources.memory_bytes - small >= 96 * 1_000_000
    # by default no more than a model of all combinations, of which there are 100
    assert planned(study()).size.model_cells == 100
