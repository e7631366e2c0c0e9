"""Secure products of coded tables whose messages a test sees and may change: the study, its parties and a carrier."""

from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain, Schema
from syndic.document import from_builtins, to_builtins
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.mpc.product import SecureProduct
from syndic.random import SimulationRandomness
from syndic.study import Study
from syndic_lab.bench.open_vertical import CodedTable, OpenCarrier, OpenVertical


def tables(rows: int, *shapes: tuple[int, ...], seed: int = 1) -> list[CodedTable]:
    generator = np.random.default_rng(seed)
    return [
        CodedTable(
            Domain.of({f"p{party}c{place}": size for place, size in enumerate(sizes)}),
            {f"p{party}c{place}": generator.integers(0, size, rows) for place, size in enumerate(sizes)},
        )
        for party, sizes in enumerate(shapes)
    ]


def across(parts: list[CodedTable]) -> list[tuple[str, str]]:
    """Return all pairs of columns at different parties."""
    return [pair for one, other in combinations(parts, 2) for pair in product(one.domain.names, other.domain.names)]


def study_of(parts: list[CodedTable], *, message_mb: int = 500, **options: Any) -> Study:
    """Return a study of all pairs across parties, or of another method."""
    sizes = {name: part.domain[name] for part in parts for name in part.domain.names}
    content = {
        "name": "test",
        "unit": {"neighbours": "replace"},
        "budget": {"epsilon": 1, "delta": 1e-9},
        "limits": {"message_mb": message_mb},
        "protocol": options if "method" in options else {"method": "marginals", "cliques": across(parts)} | options,
        "parties": [
            {"name": f"p{place}", "people": part.rows, "columns": list(part.domain.names)}
            for place, part in enumerate(parts)
        ],
        "schema": to_builtins(Schema.from_domain(sizes)),
    }
    return from_builtins(content, Study, where="test")


def product_of(study: Study) -> SecureProduct:
    made = study.plan_as(MarginalsPlan).product
    assert made is not None
    return made


def carrier_of(study: Study, parts: list[CodedTable], *, noisy: bool = False, seed: int = 5) -> OpenCarrier:
    members = {
        f"p{place}": OpenVertical(
            name=f"p{place}",
            plan=study.plan,
            study=study.digest,
            table=part,
            randomness=SimulationRandomness(seed, f"p{place}"),
            noisy=noisy,
        )
        for place, part in enumerate(parts)
    }
    return OpenCarrier(
        plan=study.plan, study=study.digest, members=members, randomness=SimulationRandomness(seed, "dealer"), seen=[]
    )


def coordinate(study: Study, carrier: Any) -> Any:
    return study.protocol.coordinate(carrier)


def counted(parts: list[CodedTable], names: tuple[str, ...]) -> NDArray[np.int64]:
    """Count with a loop over rows."""
    codes = {name: part.codes[name] for part in parts for name in part.domain.names}
    sizes = {name: part.domain[name] for part in parts for name in part.domain.names}
    table = np.zeros([sizes[name] for name in names], dtype=np.int64)
    for row in zip(*(codes[name] for name in names), strict=True):
        table[row] += 1
    return table
