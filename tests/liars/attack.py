"""One attack: a liar in a world and in the world of the neighbouring table, what it got, and what it saw."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Any, Final, NamedTuple, final

from scipy.stats import chi2

from liars.checks import ROUNDING, Opening, charged, opened, openings, violations
from liars.coordinator import LyingCoordinator
from liars.party import LyingParty
from liars.prefix import Mark, Prefix
from liars.targets import Target
from liars.world import Inside, World
from syndic.model.markov import optimise

TOGETHER: Final = 24
"""So many attacks of one role begin with the same honest run."""
_PASSES: Final = 4
Liar = LyingCoordinator | LyingParty


@contextmanager
def quick_models() -> Iterator[None]:
    """Fit models in a few passes: what they are is nobody's secret, and most of the time."""
    descend: Any = optimise._descend

    def quickly(search: Any, scale: Any, history: Any, zeros: Any, limits: Any, least: float) -> None:
        descend(search, scale, history, zeros, replace(limits, iterations=min(limits.iterations, _PASSES)), least)

    owner: Any = optimise
    owner._descend = quickly
    try:
        yield
    finally:
        owner._descend = descend


@final
@dataclass(frozen=True, kw_only=True)
class Attack:
    """What a liar did and got; `fresh` is what opened with noise from after its first lie."""

    liar: Liar
    one: World
    other: World
    violations: list[str]
    fresh: "Fresh"
    mu_squared: float
    opened: frozenset[tuple[int, tuple[str, ...]]]

    @property
    def refusals(self) -> list[str]:
        """What honest parties, and a coordinator that follows the steps, refused."""
        asked = [each for each in self.one.asked if each.to in self.one.honest]
        said = [each.reply.text for each in asked if each.reply.code != "ok"]
        return [*said, self.liar.ended]


@quick_models()
def attack(
    target: Target,
    seed: int,
    *,
    party: str = "",
    act: Any = None,
    lies: float = 0.0,
    twice: bool = True,
    coins: int | None = None,
) -> Attack:
    """Run a study under a liar, a party by name or else the coordinator, on two neighbouring tables.

    Without `twice` on one only: what needs a comparison is not looked at. Until the first lie the coins of all follow
    from `coins`: attacks with the same ones share what was recorded of the honest run.

    Where no party's rows travel to another, the second world is asked exactly what the first was: its questions do not
    follow from other noise. Elsewhere the liar runs twice, with the same coins.
    """
    coins = seed if coins is None else coins
    first = recorded(target, coins, party, other=False)
    second = recorded(target, coins, party, other=True) if twice else first
    # anywhere in the run with the same chance
    start = Random(seed).randrange(len(first.replies)) if lies else 0
    liar = _run(first, seed, coins=coins, act=act, lies=lies, start=start)
    if twice and target.horizontal:
        second.begin(seed)
        second.go_to(first.request)
        _repeat(first.world, first.since, second.world)
    elif twice:
        _run(second, seed, coins=coins, act=act, lies=lies, start=start)
    one, other = first.world, second.world
    sums = frozenset(opened(one))
    seen = tuple(openings(one, other, sums))
    return Attack(
        liar=liar,
        one=one,
        other=other,
        violations=violations(one, other, sums, seen),
        fresh=Fresh.of([each for each in seen if each.at >= first.since]),
        mu_squared=sum(each.mu_squared for each in seen),
        opened=sums,
    )


@lru_cache(maxsize=48)
@quick_models()
def recorded(target: Target, coins: int, party: str, *, other: bool) -> Prefix:
    """Return the honest run of a target, recorded before each request."""
    inside = Inside(party) if party else None
    prefix = Prefix(World(target, other=other, seed=coins, inside=inside))
    if other and target.horizontal:
        first = recorded(target, coins, party, other=False)
        first.begin(coins)
        for request in range(len(first.marks)):
            first.go_to(request)
            _repeat(first.world, len(prefix.world.asked), prefix.world)
            prefix.marks.append(Mark.of(prefix.world))
    else:
        kind: Any = LyingParty if party else LyingCoordinator
        kind(prefix, coins, coins=coins)
        prefix.marks.append(Mark.of(prefix.world))
    prefix.recording = False
    return prefix


def _run(prefix: Prefix, seed: int, *, coins: int, act: Any, lies: float, start: int) -> Liar:
    prefix.begin(seed)
    kind: Any = LyingCoordinator if prefix.world.inside is None else LyingParty
    liar: Liar = kind(prefix, seed, coins=coins, lies=lies, start=start, act=act)
    prefix.end()
    return liar


def _repeat(one: World, since: int, other: World) -> None:
    """Ask the attacked parties of a world what those of another were asked.

    The other parties have the same rows, the same coins and the same questions, so the same answers: they are copied.
    """
    for each in one.asked[since:]:
        if each.to in one.target.victims and each.to in other.honest:
            other.ask(each.call, each.to)
        else:
            other.asked.append(each)
    kept: tuple[tuple[Any, Any], ...] = (one.hidden, other.hidden), (one.answered, other.answered)
    for mine, theirs in kept:
        theirs.update({key: list(mine[key]) for key in mine if key[1] not in one.target.victims})
    other.split |= {name: values for name, values in one.split.items() if name not in one.target.victims}
    other.released += [each for each in one.released if each.party not in one.target.victims and each.at >= since]


@final
class Fresh(NamedTuple):
    """The mu^2 of what opened, and the squares of its noise in units of the stated variance, in so many cells."""

    mu_squared: float
    squares: float
    cells: int

    @classmethod
    def of(cls, seen: Sequence[Opening]) -> "Fresh":
        """Add up openings."""
        squares = sum(float((each.noise**2 / each.variance).sum()) for each in seen)
        return cls(sum(each.mu_squared for each in seen), squares, sum(each.noise.size for each in seen))


@final
@dataclass(frozen=True, kw_only=True)
class Shown:
    """What all openings show of the largest mu^2: an estimate, and a bound that is too large with a small chance only.

    The mu^2 of a run follows from what opened and the stated noise. The noise itself is measured, in all cells.
    """

    cells: int
    mu_squared: float
    least: float
    charged: float

    @classmethod
    def of(cls, seen: Sequence[Fresh], charged: float, miss: float) -> "Shown":
        """Hold openings against the charge; squares of normal noise add up to chi-square."""
        cells, squares = sum(one.cells for one in seen), sum(one.squares for one in seen)
        most = max(one.mu_squared for one in seen)
        least = most * float(chi2.ppf(miss, cells)) / squares
        return cls(cells=cells, mu_squared=most * cells / squares, least=least, charged=charged)

    @property
    def holds(self) -> bool:
        """Whether the charge, with room for variances from draws, is not below what is shown."""
        return self.least <= self.charged * ROUNDING


@final
@dataclass
class Tally:
    """What many random attacks on one target came to: deviations by kind, violations, what opened."""

    target: Target
    role: str
    deviations: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    seen: list[Fresh] = field(default_factory=list)
    seed: int = 0
    seconds: float = 0.0

    @property
    def count(self) -> int:
        """How many deviations there were."""
        return sum(self.deviations.values())

    def go_on(self) -> None:
        """Attack once more, with the next seed."""
        party = "" if self.role == "coordinator" else self.target.liars[self.seed % len(self.target.liars)]
        began = time.process_time()
        # one or two lies that change a request: more would end the run early
        lies = 0.3 if self.role == "coordinator" else 0.7
        found = attack(self.target, self.seed, party=party, lies=lies, coins=self.seed // TOGETHER)
        self.deviations += found.liar.deviations
        self.violations += [f"seed {self.seed}: {each}" for each in found.violations]
        if found.fresh.mu_squared:
            self.seen.append(found.fresh)
        self.seed += 1
        self.seconds += time.process_time() - began

    def shown(self, miss: float) -> Shown | None:
        """Hold what opened against the charge; None where nothing is claimed or opened, or the noise is not normal.

        Other noise is compared in every run, by its largest likelihood ratio.
        """
        most, _ = charged(self.target.cost)
        if self.role not in self.target.claimed or not self.seen or not most:
            return None
        return Shown.of(self.seen, most, miss)
