"""What a study of a latent tree fixes before any row is read: groups, latent levels, noise, rings."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Final, final

from syndic.data import Domain
from syndic.errors import InputError
from syndic.kernel import Terms, schema_of
from syndic.methods.synthesis.account import Account, RoundNoise, account_of
from syndic.methods.synthesis.vertical_layout import Cross, Names, RoundLayout
from syndic.methods.synthesis.vertical_round import PARTNERS, Round, alone
from syndic.model.latent.groups import packed
from syndic.model.latent.tree import pairs_of_latents
from syndic.model.markov import Grouping
from syndic.model.markov.curator import SCORE_STEP
from syndic.mpc.product_messages import Pair
from syndic.noise import FineGaussian
from syndic.privacy import GaussianEvent

MOST_LEVELS: Final = 64
GAP_SENSITIVITY: Final = 3
"""How far one person moves a pair's distance from independence, in rows: see `independence_gap`."""

# The noise of one count exceeds what the ring has room for with a chance below this over all counts.
_OVERFLOW: Final = 2.0**-64
_MOST_BITS: Final = 62
# A table helps if its mean count is so many standard deviations of the noise.
_USEFUL: Final = 1.6
_DEFAULT_LEVELS: Final = 16
_LEAST_CELLS: Final = 4


@final
@dataclass(frozen=True, kw_only=True)
class Settings:
    """The parameters that a plan depends on, as in the protocol."""

    group: int
    group_cells: int | None
    levels: int | None
    score_share: Fraction
    pattern_share: Fraction
    colluding: int


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Public, and the same at everybody.

    `packed` has each party's groups by size alone: as many it will have, of other columns perhaps. `scored` is the
    noise of scores, if any party has two columns, `counted` that of the groups' tables, `learning` what both cost.
    """

    domains: Mapping[str, Domain]
    packed: Mapping[str, tuple[Names, ...]]
    most_cells: int
    levels: int
    scored: RoundNoise | None
    counted: RoundNoise
    learning: GaussianEvent
    round: Round
    whole: Fraction

    def latents(self, party: str) -> tuple[str, ...]:
        """Return the names of a party's latent attributes."""
        return latents_of(party, len(self.packed[party]))

    @property
    def events(self) -> tuple[GaussianEvent, GaussianEvent]:
        """What every party is charged: learning latent attributes, and the tables of pairs of them."""
        return self.learning, self.round.across.event


def latents_of(party: str, count: int) -> tuple[str, ...]:
    """Return names for a party's latent attributes; a party's name has no space, so none is used twice."""
    return tuple(f"{party} {place}" for place in range(1, count + 1))


def plan_of(terms: Terms, settings: Settings) -> Plan:
    """Return the plan; raises `InputError` if counts and noise do not fit 64 bits."""
    domains = {party.name: schema_of(terms, party.name).domain for party in terms.parties}
    pairs = sum(len(domain) * (len(domain) - 1) // 2 for domain in domains.values())
    account = account_of(
        terms,
        lambda whole: _cut(whole, settings, scored=pairs > 0),
        (),
        colluding=settings.colluding,
        missing=0,
        shares=PARTNERS,
    )
    people, columns = terms.parties[0].people or 1, len(terms.schema.columns)
    # the last round counts latent pairs, the one before it groups of columns
    last, patterns = len(account.events), len(account.events) - 1
    each = alone(account).noise_of(patterns, columns, 2 * columns).variance(1) ** 0.5
    cells = settings.group_cells or max(_LEAST_CELLS, int(people / (_USEFUL * each)))
    groups = {name: packed(domain, settings.group, cells) for name, domain in domains.items()}
    tables = sum(len(found) for found in groups.values())
    levels = settings.levels or _levels(account, last, tables, people)
    first = account.events[:patterns]
    learning = GaussianEvent(
        mu_squared=sum((event.mu_squared for event in first), Fraction(0)),
        slack=sum((event.slack for event in first), Fraction(0)),
        what=f"Gaussian, mu {float(sum(event.mu_squared for event in first)) ** 0.5:.3g}, groups of columns",
    )
    return Plan(
        domains=domains,
        packed=groups,
        most_cells=cells,
        levels=levels,
        scored=_scored(account, pairs) if pairs else None,
        counted=alone(account).noise_of(patterns, tables, 2 * tables),
        learning=learning,
        round=_round(terms, account, groups, levels),
        whole=account.whole,
    )


def _cut(whole: Fraction, settings: Settings, *, scored: bool) -> list[Fraction]:
    """Cut the budget: scores of pairs of columns where there are any, tables of groups, tables of latent pairs."""
    learning = [settings.score_share, settings.pattern_share]
    parts = learning if scored else [sum(learning, Fraction(0))]
    return [whole * part for part in (*parts, 1 - sum(learning, Fraction(0)))]


def _scored(account: Account, pairs: int) -> RoundNoise:
    """Return the noise of all parties' scores together, in steps: rounding both neighbours adds one to a step."""
    event = account.events[0]
    noise = FineGaussian(
        sensitivity_squared=pairs * (GAP_SENSITIVITY / SCORE_STEP + 1) ** 2,
        mu_squared=event.mu_squared,
        changed=pairs,
        fraction_bits=account.fraction_bits,
    )
    return RoundNoise(noise, event)


def _levels(account: Account, number: int, tables: int, people: int) -> int:
    """Return how many latent levels a table of two of them can tell apart from noise."""
    pairs = tables * (tables - 1) // 2
    deviation = account.noise_of(number, pairs, 2 * pairs).variance(PARTNERS) ** 0.5
    return max(2, min(_DEFAULT_LEVELS, isqrt(int(people / (_USEFUL * deviation)))))


def _round(terms: Terms, account: Account, groups: Mapping[str, tuple[Names, ...]], levels: int) -> Round:
    """Lay out the tables of all pairs of latent attributes, which are counted like columns."""
    own = {name: latents_of(name, len(found)) for name, found in groups.items()}
    holder = {latent: name for name, found in own.items() for latent in found}
    domain = Domain(tuple(holder), (levels,) * len(holder))
    tables = tuple(pairs_of_latents(tuple(holder)))
    across: dict[Pair, list[Cross]] = {}
    within: dict[str, list[int]] = {name: [] for name in own}
    for place, (left, right) in enumerate(tables):
        if holder[left] == holder[right]:
            within[holder[left]].append(place)
        else:
            cross = Cross(place=place, left=(left,), right=(right,))
            across.setdefault((holder[left], holder[right]), []).append(cross)
    layout = RoundLayout(
        tables=tables,
        domain=domain,
        across={pair: tuple(found) for pair, found in across.items()},
        within={name: tuple(places) for name, places in within.items()},
        blocks={name: tuple((latent,) for latent in found) for name, found in own.items()},
    )
    dimension = levels**2 * len(tables)
    noise = account.noise_of(len(account.events), len(tables), dimension)
    sizes = layout.sizes(terms, -(-noise.tail(_OVERFLOW / dimension) // noise.scale))
    if sizes.whole.bits + noise.scale.bit_length() - 1 > _MOST_BITS:
        raise InputError("counts and their noise do not fit 64 bits: raise epsilon or delta, or set fewer levels")
    return Round(
        layout=layout,
        grouping=Grouping.none(domain),
        sizes=sizes,
        work=layout.work("latent attributes", sizes),
        across=noise,
        within=alone(account).noise_of(len(account.events), len(tables), dimension),
    )
