"""How much a round may ask, how large the model may be, and how much memory that takes at the busiest role.

The announced number is a bound made of public sizes: of the model's cells, of the counts that rounds open, of the rows.
Where the study does not say how large the model may be, it is as large as the study's memory allows, up to what helps.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import sqrt
from typing import Final, Literal, final

from msgspec.structs import replace

from syndic.data import Categorical, Domain, Ordinal, Schema
from syndic.data.bins import FINE_BINS
from syndic.data.counting import covered_cells
from syndic.data.ranged import Ranged
from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel import Group, Terms, most_people, strictest_mu_squared
from syndic.methods.synthesis.account import Account
from syndic.methods.synthesis.measure import RoundLimits
from syndic.methods.synthesis.zeros import check_possible
from syndic.model.markov import Impossible, plan_tree
from syndic.model.selection import Adaptive
from syndic.model.selection.levels import least_released
from syndic.model.selection.parity import SIZES, most_sets, share_to_find

# As a share of the rows, noise on all open bins of a column together from which the plan says so.
_TOO_NOISY: Final = 0.5

LEAST_TABLE_CELLS: Final = 4096
"""A pair of columns has at most so many cells once rare values are grouped."""

LEVELS: Final = (Adaptive().most_levels, 32, 16)
"""Groups of levels of a column, at most: fewer where all pairs of many columns would not fit into the memory."""

MOST_ROUNDS: Final = 100
"""More rounds of chosen tables only cut the budget into parts too small to say anything."""

FEW_TARGET_LEVELS: Final = 8
"""A target of at most so many levels is counted with every column in the first round."""

LEVELS_SHARE: Final = Fraction(3, 20)
"""Share of the budget for the first round where it counts many levels or the target; 1/20 otherwise."""

PARITY_SHARE: Final = Fraction(1, 100)
"""Share of the budget for parities of sets of columns, at least: what is found at it is strong."""

MOST_PARITY_SHARE: Final = Fraction(1, 20)
"""Up to this share, as far as it takes to find what is strong; more would cost other tables too much."""

# Where it would take more than so many times that, most would be missed whatever is spent.
_HOPELESS: Final = 2

# The variance of noise on parities from coins, at most, in that of Gaussian noise.
_OF_COINS: Final = 1.2

# Interpreter, libraries and compiled kernels.
BASE_BYTES: Final = 350 * 10**6
# Of one cell of the model: while it is fitted, with tables of pairs outside its cliques beside it; while it is kept.
CELL_BYTES: Final = 128
_KEPT_BYTES: Final = 24
# Of one column of rows while they are read.
COLUMN_BYTES: Final = 1 << 18
# Of one count that the model is fitted to: the engine's own bound, with what its optimiser remembers.
FITTED_BYTES: Final = 424
# Of one count of the largest round: as integer, under masks and in a message, at both ends.
COUNT_BYTES: Final = 64
# Of one count of any round, as it was opened.
OPENED_BYTES: Final = 24
# Of one value of one synthetic row: its code, its value and the room to draw it.
VALUE_BYTES: Final = 32

# What runs use of these bounds as a rule (`syndic bench growth`): a base, bytes of a cell, shares of what may be built.
_USUAL_BASE: Final = 285 * 10**6
_PARTY_BASE: Final = 2 * 10**8
_USUAL_CELL: Final = 48
_USUAL_MODEL: Final = 0.6
_USUAL_PAIRS: Final = 0.2
_USUAL_CHOSEN: Final = 0.4
_USUAL_COUNTED: Final = 0.5

MOST_VALUES: Final = 10_000_000
"""Values of all rows that are drawn where the study does not say how many rows: more say nothing more."""

# The pairs of columns inside a clique have at most so many times its cells: three or four columns of two values.
_PAIRS: Final = 1.5
# A table is measured if its mean count is a few mean absolute noises; a little room, for a total that noise raised.
_MEAN_ABSOLUTE: Final = 0.8
_ROOM: Final = 1.25
_STEPS: Final = 16
# A round of chosen tables may take one part in so many of the memory.
_ROUNDS_PART: Final = 4


@final
class Size(Document):
    """What every round may ask, the cells of the model, and bytes: at most, as a rule, and as a rule at a party."""

    rooms: tuple[RoundLimits, ...]
    model_cells: int
    memory_bytes: int
    expected_bytes: int
    party_bytes: int

    @property
    def round_cells(self) -> int:
        """Cells of the largest round."""
        return max(one.cells for one in self.rooms)


def check_choices(
    *,
    selector: str,
    rounds: int | None,
    model_cells: int | None,
    rows: int | None,
    keep: Sequence[Sequence[str]] = (),
) -> None:
    """Raise `ValueError` for parameters of a synthesis that make no sense together, whatever the study is."""
    for names in keep:
        if len(names) < 2 or len(set(names)) != len(names):
            raise ValueError(f"keep ({', '.join(names)}): each set has at least two columns, each once")
    for name, value in (("rounds", rounds), ("model_cells", model_cells)):
        if value is not None and value < 1:
            raise ValueError(f"{name} ({value}) must be at least 1")
    if rows is not None and rows < 0:
        raise ValueError(f"rows ({rows}) must not be negative")
    if selector == "one_shot" and rounds is not None:
        raise ValueError("rounds is for the adaptive selector: leave it out")


def choosing(
    selector: Literal["adaptive", "one_shot"],
    rounds: int | None,
    cells: int,
    *,
    schema: Schema | None = None,
    target: str | None = None,
    keep: tuple[tuple[str, ...], ...] = (),
    with_target: bool = False,
    parity_share: Fraction = Fraction(0),
) -> Adaptive:
    """Return what chooses the tables of a model of so many cells.

    `schema`: where fine levels and rare values may be merged. `with_target`: whether the parties can count every column
    together with the target in the first round. `parity_share`: of the round of parities that follows the pairs.
    """
    # a small model has no use for large tables, and all tables of a round are in memory at once
    table = min(Adaptive().most_table_cells, max(LEAST_TABLE_CELLS, cells // 16))
    if rounds is not None and rounds > MOST_ROUNDS:
        raise InputError(f"rounds ({rounds}) must be at most {MOST_ROUNDS}: each of them gets a part of the budget")
    ordered: tuple[tuple[str, int], ...] = ()
    branches: tuple[tuple[str, tuple[int, ...]], ...] = ()
    adjacent: tuple[tuple[str, int], ...] = ()
    together = False
    if schema is not None:
        _check_known(schema, target, keep)
        ordered, branches = ordered_columns(schema), long_lists(schema)
        few = [
            one for one in schema.columns if isinstance(one, Ranged | Ordinal) and one.size <= Adaptive().most_levels
        ]
        adjacent = tuple((one.name, one.levels) for one in few if one.name not in dict(ordered))
        together = with_target and target is not None and schema[target].size <= FEW_TARGET_LEVELS
    return Adaptive(
        cells=cells,
        most_table_cells=table,
        rounds=1 if selector == "one_shot" else rounds or Adaptive().rounds,
        one_way_share=LEVELS_SHARE if ordered or branches or together else Adaptive().one_way_share,
        ordered=ordered,
        adjacent=adjacent,
        branches=branches,
        target=target,
        keep=keep,
        with_target=together,
        parity_share=parity_share,
    )


def share_of_parities(
    terms: Terms, groups: Sequence[Group], *, colluding: int, apart: bool, coins: bool = False
) -> Fraction:
    """Return the share of the budget for parities: what it takes to find strong ones. Only public numbers decide.

    Where parties hold different columns, no set is asked of too many of a group, and there may be none. `coins`:
    whether two parties toss coins for the noise.
    """
    columns = len(terms.schema.names)
    if not (any(map(_counts_sets, groups)) if apart else columns >= min(SIZES)):
        return Fraction(0)
    whole = float(strictest_mu_squared(terms))
    sets, change = most_sets(columns), terms.unit.parties * terms.unit.l1_of_counts()
    shares = _OF_COINS if coins else len(terms.parties) / max(1, len(terms.parties) - colluding)
    needed = share_to_find(sets, sets * shares * change**2 / whole, most_rows(terms))
    if needed > _HOPELESS * MOST_PARITY_SHARE:
        return PARITY_SHARE
    return min(MOST_PARITY_SHARE, max(PARITY_SHARE, Fraction(round(1000 * needed), 1000)))


def _counts_sets(group: Group) -> bool:
    """Return whether a group can count a table of three columns, wherever they are read from."""
    held, partners = Counter(parties for parties in group.read_from.values() if parties), group.partners
    # three columns are never read from more than three parties
    if sum(count for _, count in held.most_common(None if partners >= min(SIZES) else partners)) >= min(SIZES):
        return True
    # one column at each of two parties, and a third that is read from both
    return any(len(parties) == partners and all((one,) in held for one in parties) for parties in held)


def ordered_columns(schema: Schema) -> tuple[tuple[str, int], ...]:
    """Return the columns whose bins are left open and many, with how many they are: neighbours are merged."""
    return tuple(
        (column.name, column.levels)
        for column in schema.columns
        if isinstance(column, Ranged) and column.fine and column.levels > Adaptive().ordered_groups
    )


def long_lists(schema: Schema) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the columns with more values than a model has groups, or with a tree, and the branch of every level."""
    return tuple(
        (column.name, column.branches())
        for column in schema.columns
        if isinstance(column, Categorical) and (column.tree or column.levels > Adaptive().most_levels)
    )


def level_notes(
    account: Account, selector: Adaptive, noisier: Callable[[Domain], float | None], rows: int
) -> tuple[str, ...]:
    """Return what is said of long lists and of too many open bins; `noisier` as in `CutReach`. Reads no row."""
    tables = len(selector.first(account.domain))
    variance = account.variance(selector.budgets(account.whole)[0] / tables)
    notes = []
    for name, levels in selector.ordered:
        times = noisier(account.domain.project((name,))) or 1.0
        if levels > FINE_BINS and (times * variance * levels) ** 0.5 > _TOO_NOISY * rows:
            notes.append(
                f"'{name}' has {levels:,} open bins, and noise hides where in them most of the {rows:,} rows are: set "
                f'about {FINE_BINS} bins, or scale = "log" or "symlog", which has no more'
            )
    for name, branches in selector.branches:
        times = noisier(account.domain.project((name,))) or 1.0
        notes.append(
            f"'{name}' has {len(branches):,} levels: a value with a noisy count below "
            f'{least_released(len(branches), times * variance):,.0f} is released as its branch or as "other"'
        )
    return tuple(notes)


def _check_known(schema: Schema, target: str | None, keep: Sequence[tuple[str, ...]]) -> None:
    for where, names in (("target", () if target is None else (target,)), *(("keep", names) for names in keep)):
        unknown = [name for name in names if name not in schema.names]
        if unknown:
            raise InputError(f"{where}: '{unknown[0]}' is not a column of the schema ({', '.join(schema.names)})")
    for names in keep:
        merged = Adaptive(ordered=ordered_columns(schema), branches=long_lists(schema)).merged(schema.domain)
        cells = merged.project(names).size
        if cells > Adaptive().most_table_cells:
            raise InputError(
                f"keep: the table of {', '.join(names)} has {cells:,} cells, and at most "
                f"{Adaptive().most_table_cells:,} can be measured: keep fewer columns together or set fewer bins"
            )


def most_rows(terms: Terms) -> int:
    """Return the public bound on the rows of all groups of people."""
    return most_people(terms) * terms.unit.whole_rows


def most_drawn(terms: Terms) -> int:
    """Return how many rows are drawn at most where the study does not say: never twice what there can be."""
    return min(2 * most_rows(terms), max(1, MOST_VALUES // len(terms.schema.columns)))


def size_of(
    terms: Terms,
    account: Account,
    selector: Callable[[int], Adaptive],
    zeros: Sequence[Impossible],
    *,
    model_cells: int | None,
    rows: int | None,
    beside: int = 0,
) -> tuple[Adaptive, Size]:
    """Return what chooses the tables, and the sizes that the study's limits allow with `beside` bytes for other things.

    Raises:
        InputError: if what is needed at least, or what the study asks for, does not fit; with the number.
    """
    limit, domain = terms.limits.memory_mb * 10**6 - beside, terms.schema.domain
    # every column by itself, but for what is declared impossible; levels may be grouped, but need not be
    chosen = selector(1)
    least = plan_tree(chosen.merged(domain, zeros), [*(zero.names for zero in zeros), *chosen.held(domain)]).cells
    # one clique of all columns holds everything there is to know
    most = model_cells or max(least, min(Adaptive().cells, domain.size))
    # the largest of some sizes that fits; a size that the study gives is not changed
    choices = [most] if model_cells else [max(least, most * step // _STEPS) for step in range(_STEPS, 0, -1)]
    for levels, cells in product(LEVELS, choices):
        chosen = replace(selector(cells), most_levels=levels)
        size = _size(terms, _rooms(terms, account, chosen, zeros), cells, rows)
        if size.memory_bytes <= limit and cells >= least:
            break
    else:
        raise _too_large(terms, _size(terms, size.rooms, max(cells, least), rows), least)
    reply = 8 * size.round_cells
    if reply > terms.limits.message_mb * 10**6:
        raise InputError(
            f"a round may ask for {size.round_cells:,} cells, replies of {reply / 1e6:,.0f} MB (limit "
            f"{terms.limits.message_mb}): set fewer bins or a larger limits.message_mb"
        )
    check_possible(domain, zeros)
    return chosen, size


def _too_large(terms: Terms, size: Size, least: int) -> InputError:
    widest = max(terms.schema.columns, key=lambda column: column.size)
    return InputError(
        f"a model of {size.model_cells:,} cells, the fewest being {least:,} for these columns (the widest is "
        f"'{widest.name}' with {widest.size:,}), needs about {size.memory_bytes / 1e6:,.0f} MB of memory (limit "
        f"{terms.limits.memory_mb}): set fewer bins, fewer rows, another model_cells or a larger limits.memory_mb"
    )


def _rooms(terms: Terms, account: Account, selector: Adaptive, zeros: Sequence[Impossible]) -> tuple[RoundLimits, ...]:
    """Return what the selector says it asks at most, less what no number of rows could make useful."""
    columns = sum(terms.schema.domain.sizes)
    total = most_rows(terms)
    held = terms.limits.memory_mb * 10**6 // (_ROUNDS_PART * _count_bytes(terms))
    rooms = []
    for place, (limit, budget) in enumerate(
        zip(selector.limits(terms.schema.domain, zeros), selector.budgets(account.whole), strict=True)
    ):
        if limit.parity:
            rooms.append(RoundLimits(tables=limit.tables, cells=limit.cells, parity=True))
            continue
        # k tables of useful size, each with k times the variance of one
        one = selector.usefulness * _MEAN_ABSOLUTE * sqrt(account.variance(budget))
        useful = int(_ROOM * sqrt(limit.tables) * total / one)
        # where no table helps or can be counted, a round asks for the columns once more
        cells = max(columns, limit.cells if place < 2 else min(limit.cells, useful, held))
        rooms.append(RoundLimits(tables=max(limit.tables, len(terms.schema.columns)), cells=cells))
    return tuple(rooms)


def _count_bytes(terms: Terms) -> int:
    """Return the bytes of one count of a round at the coordinator, which holds the answers of all parties."""
    return COUNT_BYTES + 8 * len(terms.parties)


def _size(terms: Terms, rooms: Sequence[RoundLimits], cells: int, rows: int | None) -> Size:
    single, pairs, *chosen = (one.cells for one in rooms)
    within, later = min(pairs, int(_PAIRS * cells)), sum(chosen)
    opened, largest = single + pairs + later, max(one.cells for one in rooms)
    drawn = most_drawn(terms) if rows is None else rows
    most = _memory(terms, CELL_BYTES * cells, single + within + later, drawn, opened, largest)
    # people are upper bounds, of which as many rows are drawn as there are
    counted = int(_USUAL_COUNTED * max(single, pairs))
    model, fitted = _USUAL_CELL * _USUAL_MODEL * cells, single + _USUAL_PAIRS * within + _USUAL_CHOSEN * later
    usual = _memory(terms, model, fitted, min(drawn, rows or most_rows(terms)), opened, counted)
    return Size(
        rooms=tuple(rooms),
        model_cells=cells,
        memory_bytes=BASE_BYTES + int(most),
        expected_bytes=min(_USUAL_BASE + int(usual), BASE_BYTES + int(most)),
        party_bytes=_PARTY_BASE + COLUMN_BYTES * len(terms.schema.columns) + COUNT_BYTES * max(single, pairs),
    )


def _memory(terms: Terms, model: float, fitted: float, drawn: int, opened: int, largest: int) -> float:
    """Return the bytes of what grows with a study: a round is counted, then the model fitted; at the end rows drawn."""
    columns, kept = len(terms.schema.columns), model * _KEPT_BYTES / CELL_BYTES
    counting = kept + _count_bytes(terms) * largest + 8 * covered_cells(largest)
    drawing = kept + VALUE_BYTES * drawn * columns
    fitting = model + FITTED_BYTES * fitted
    return COLUMN_BYTES * columns + OPENED_BYTES * opened + max(counting, fitting, drawing)
