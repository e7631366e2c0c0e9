"""VertiGAN on a coded table whose columns are cut into parties: as published, and with parameters that suit noise."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from syndic.methods.comparison.vertigan import Vertigan
from syndic_lab.bench.model.synthesis_data import Coded, distances
from syndic_lab.bench.row import Row
from syndic_lab.bench.vertical.runs import Found, cut, made_by, study_of

EPSILONS: Final = ("0.8", "3.2")
# 8.3 minutes a party and 112 MB for Adult
PUBLISHED_SECONDS: Final = 498.0
PUBLISHED_MEGABYTES: Final = 112.0
# more rounds, larger samples and steps, and a penalty that leaves room for rows in a clipped gradient
SUITED: Final[dict[str, Any]] = {"rounds": 300, "critic_steps": 3, "batch": 300, "rate": 1e-3, "penalty": 0.1}
VARIANTS: Final[Mapping[str, Mapping[str, Any]]] = {"VertiGAN": {}, "VertiGAN, parameters suited to noise": SUITED}


def gan(data: Coded, epsilon: str, seed: int, parties: int, **options: Any) -> Found:
    """Run VertiGAN once, every party in this process; bytes are those to and from the party that has most."""
    made = made_by(data, study_of(data, epsilon, cut(data, parties), Vertigan(**options)), seed)
    sent: Counter[str] = Counter()
    for line in made.transcript:
        sent[line.party] += line.request_bytes + line.reply_bytes
    return Found(distances(data.codes(), made.codes, data.domain), made.seconds, max(sent.values()))


def gan_rows(
    data: Coded,
    seeds: Sequence[int],
    parties: int,
    epsilons: Sequence[str] = EPSILONS,
    variants: Mapping[str, Mapping[str, Any]] = VARIANTS,
) -> Iterator[Row]:
    """Yield distances, time and traffic of the published configuration and of one that suits noise better."""
    untrained = distances(data.codes(), _uniform(data), data.domain)
    for epsilon in epsilons:
        for name, options in variants.items():
            found = [gan(data, epsilon, seed, parties, **options) for seed in seeds]
            row = f"{data.name}, epsilon {epsilon}, {parties} parties, {name}"
            for ways, rough in untrained.items():
                apart = float(np.mean([one.apart[ways] for one in found]))
                # beside it what rows of no knowledge at all reach
                yield _row(row, f"tvd{ways}", apart, "distance", baseline=rough)
            plain = not options and data.name == "adult"
            seconds, sent = min(one.seconds for one in found), max(one.sent for one in found)
            published = PUBLISHED_SECONDS if plain else None
            yield _row(row, "seconds", seconds / parties, "s of processor time a party", published=published)
            traffic = PUBLISHED_MEGABYTES if plain else None
            yield _row(row, "megabytes", sent / 1e6, "MB to and from a party", published=traffic)


def _uniform(data: Coded) -> dict[str, Any]:
    draws = np.random.default_rng(0)
    count = data.table.num_rows
    return {name: draws.integers(0, data.domain[name], count) for name in data.domain.names}


def _row(
    row: str, metric: str, value: float, unit: str, baseline: float | None = None, published: float | None = None
) -> Row:
    return Row(bench="vertical", row=row, metric=metric, value=value, unit=unit, baseline=baseline, published=published)
