"""Plans of wide studies and of studies with many parties: made, within limits, and without repeated work."""

from collections.abc import Iterable

import numpy as np
import pytest
from msgspec.structs import replace

import syndic as sy
from syndic.data import Domain
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.synthesis.size import MOST_VALUES, most_drawn
from syndic.model.selection import Adaptive
from syndic.privacy import Cost, Event
from syndic.study.statement import plan


def study(*, columns: int, parties: int, levels: int = 3) -> sy.Study:
    return sy.Study(
        name="large",
        unit=sy.Unit(neighbours="add_remove"),
        budget=sy.Budget.of(1, "1e-12"),
        protocol=sy.Synthesis(),
        parties=tuple(sy.Member(name=f"p{place}", people=10_000) for place in range(parties)),
        schema=sy.Schema.from_domain({f"c{place}": levels for place in range(columns)}),
    )


@pytest.mark.parametrize(("columns", "parties"), [(1000, 5), (10, 10_000)])
def test_a_large_study_is_planned_within_the_default_limits(columns: int, parties: int) -> None:
    large = study(columns=columns, parties=parties)
    assert plan(large).resources.memory_bytes <= large.limits.memory_mb * 10**6


def test_parties_with_the_same_events_are_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    priced = []
    of = Cost.of

    def counted(events: Iterable[Event]) -> Cost:
        priced.append(1)
        return of(events)

    monkeypatch.setattr(Cost, "of", counted)
    summary = plan(study(columns=5, parties=200))
    assert len(summary.statement.parties) == 200
    assert len(priced) <= 3
    assert "p18 and 181 more" in str(summary)


def test_no_more_rows_are_drawn_than_ten_million_values() -> None:
    large = study(columns=10, parties=10_000)
    assert most_drawn(large) == MOST_VALUES // 10
    assert most_drawn(study(columns=10, parties=2)) == 40_000


@pytest.mark.parametrize("seed", range(5))
def test_the_pairs_of_a_round_are_counted_as_they_are_listed(seed: int) -> None:
    draws = np.random.default_rng(seed)
    sizes = draws.integers(2, 90, 12).tolist()
    domain = Domain.of({f"c{place}": size for place, size in enumerate(sizes)})
    chosen = Adaptive(most_table_cells=int(draws.integers(4, 2000)))
    listed = chosen.pairs(Domain(domain.names, tuple(min(size, chosen.most_levels) for size in sizes)))
    limit = chosen.limits(domain)[1]
    assert limit.tables == len(listed)
    cut = {name: min(size, chosen.most_levels) for name, size in zip(domain.names, sizes, strict=True)}
    assert limit.cells == sum(int(np.prod([cut[name] for name in names])) for names in listed)


def test_a_plan_names_every_column_that_is_read() -> None:
    """Also what is behind a harmless name: an owner agrees to what is read, not to what it is called."""
    few = study(columns=2, parties=2)
    hidden = replace(few.schema.columns[0], name="colour", derive="log(c0)")
    asked = replace(few, schema=sy.Schema(columns=(hidden, *few.schema.columns)))
    assert plan(asked).reads == ("colour = log(c0)", "c0", "c1")
    assert "  reads        colour = log(c0), c0, c1\n" in str(plan(asked))


def test_columns_of_many_levels_are_planned_with_fewer_groups_where_all_pairs_would_not_fit() -> None:
    sizes = {f"c{place}": (2, 3, 5, 10, 20, 50)[place % 6] for place in range(500)}
    many = replace(study(columns=1, parties=2), schema=sy.Schema.from_domain(sizes))
    few = replace(many, schema=many.schema.select(tuple(sizes)[:50]))
    assert few.plan_as(SynthesisPlan).selector.most_levels == Adaptive().most_levels
    assert not any("groups" in note for note in plan(few).resources.notes)
    planned = many.plan_as(SynthesisPlan)
    assert planned.selector.most_levels == 16
    assert plan(many).resources.memory_bytes <= many.limits.memory_mb * 10**6
    assert any("at most 16 groups" in note for note in plan(many).resources.notes)
    assert planned.size.rooms[1].cells == planned.selector.limits(many.schema.domain)[1].cells
    # more memory, more groups
    larger = replace(many, limits=sy.Limits(memory_mb=6000))
    assert larger.plan_as(SynthesisPlan).selector.most_levels == Adaptive().most_levels
