"""Chen and Sung: the theorems on estimates from distributed sources, as formulas beside simulated errors."""

from functools import partial
from typing import Final

from syndic_lab.bench.estimate import run as estimate
from syndic_lab.reproduce.item import Claim, Found, Item, Paper, Rule

PAPER: Final = Paper("chen-sung", "Chen and Sung: private parameter estimates from distributed sources")
_METRIC: Final = "MSE x M x N x I"


def _efficient(found: Found) -> tuple[bool, str]:
    few, many = found.one("dssa, N = 100", _METRIC), found.one("dssa, N = 6400", _METRIC)
    # what is printed falls by 8 from 100 to 6,400, the corrected formula by 64
    seen = f"DSSA at {few:.3g} times the bound with 100 people a party, at {many:.3g} with 6,400"
    return many - 1 < (few - 1) / 8, seen


def _better(found: Found) -> tuple[bool, str]:
    pairs = [(found.one(f"dssa, N = {n}", _METRIC), found.one(f"dsaa, N = {n}", _METRIC)) for n in (400, 1600, 6400)]
    return all(one < other for one, other in pairs), ", ".join(f"{one:.3g} and {other:.3g}" for one, other in pairs)


def _any_number(found: Found) -> tuple[bool, str]:
    one, many = found.one("dssa, M = 1", _METRIC), found.one("dssa, M = 64", _METRIC)
    return many < 1.25 * one, f"DSSA at {one:.3g} times the bound with 1 party, at {many:.3g} with 64"


def _blocks_degrade(found: Found) -> tuple[bool, str]:
    one, many = found.one("dsaa, M = 1", _METRIC), found.one("dsaa, M = 64", _METRIC)
    return many > one, f"DSaA at {one:.3g} times the bound with 1 party, at {many:.3g} with 64"


def _small_epsilon(found: Found) -> tuple[bool, str]:
    # 1 / N = 1 / 1600 is far below 0.03
    at = found.one("dssa, epsilon = 0.03", _METRIC)
    return at < 1.5, f"DSSA at {at:.3g} times the bound at epsilon 0.03, which is 48 / N"


_CLAIMS: Final[dict[str, tuple[Claim, ...]]] = {
    "people": (
        Claim(text="DSSA comes to the bound as N grows, by the root of N at least (Theorem 3.3)", holds=_efficient),
        Claim(text="DSSA is better than DSaA where both apply", holds=_better),
    ),
    "parties": (
        Claim(text="DSSA needs no bound on the number of parties", holds=_any_number),
        Claim(text="DSaA loses efficiency as parties grow in number (Theorem 3.2)", holds=_blocks_degrade),
    ),
    "epsilon": (
        Claim(text="DSSA is efficient for epsilon of order 1 / N and more (abstract, Corollary 3.2)",
              holds=_small_epsilon),
    ),
}  # fmt: skip
_WHERE: Final = {
    "people": "Theorems 3.1, 3.2 and 3.3 over N",
    "parties": "Theorems 3.2 and 3.3 over M, Corollary 3.1",
    "epsilon": "Theorems 3.2 and 3.3 over epsilon, Corollary 3.2",
}

ITEMS: Final = (
    *(
        Item(
            name=f"estimation-{word}",
            paper=PAPER,
            where=_WHERE[word],
            what="mean squared error over the Cramer-Rao bound; published is the printed formula",
            measure=partial(estimate.sweep, word),
            rules=(("", Rule(within=0.15)),),
            claims=_CLAIMS[word],
            notes=(
                "The baseline is the corrected formula. As published, the noise's deviation stands where its variance "
                "belongs (DSSA), and a squared bias has the wrong power and constant (DSaA).",
            ),
            seconds=seconds,
            benches=("estimate.run",),
        )
        for word, seconds in (("people", (5.0, 50.0)), ("parties", (5.0, 50.0)), ("epsilon", (6.0, 60.0)))
    ),
    Item(
        name="estimation-figure-1",
        paper=PAPER,
        where="Figure 1",
        what="how blocks are averaged",
        reason="A drawing of the scheme: it has no numbers, and the paper has no experiments.",
    ),
)
