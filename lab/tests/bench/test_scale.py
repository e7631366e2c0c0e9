"""The bench of scale: its sum is that of the parties present, and a wrong one is an error."""

import pyarrow as pa
import pytest

from syndic_lab.bench import scale


def test_parties_that_are_lost_do_not_spoil_the_sum() -> None:
    found = {row.metric: row.value for row in scale.parties(40)}
    assert found["masks shared with"] > 2
    assert found["cpu seconds, all parties and coordinator"] > 0


def test_a_sum_without_some_parties_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(name: str) -> pa.Table:
        return pa.table({"a": ["7"] * 500, "b": ["3"] * 500})

    check = scale._check
    monkeypatch.setattr(scale, "_check", lambda study, result, present: check(study, result, [*present, other("")]))
    with pytest.raises(RuntimeError, match="away from"):
        list(scale.parties(40))
