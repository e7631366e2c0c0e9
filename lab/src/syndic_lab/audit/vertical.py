"""Audits of sums of products and noisy columns, whose parties hold different columns of the same people."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from syndic.kernel import decode
from syndic.methods import Gram, Marginals, Mixing
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.methods.regression.mixing import signs_of
from syndic.model.gram.mixing import Mixer
from syndic.mpc.product_messages import ProductStart
from syndic.mpc.triple import Stock
from syndic.privacy import Unit
from syndic_lab.audit.horizontal import APPROXIMATE, REPLACE
from syndic_lab.audit.masked import MaskedSum, masked_gram
from syndic_lab.audit.rehearsal import Run
from syndic_lab.audit.setting import RELEASE, Setting, rows_of, study_of

PEOPLE: Final = 3
TWO: Final = {"a": (PEOPLE, ("x",)), "b": (PEOPLE, ("y",))}
COLUMNS: Final = (("x", 2), ("y", 2))
ONE: Final = {"a": rows_of(x=[1, 0, 1]), "b": rows_of(y=[1, 0, 1])}
OTHER: Final = {"a": rows_of(x=[0, 0, 1]), "b": rows_of(y=[0, 0, 1])}


def vertical() -> Iterator[Setting]:
    """Yield a setting for every sound variant."""
    yield from _tables()
    yield _dealer()
    yield from _gram()
    yield _gram_of_groups()
    yield from _mixing()


def _tables() -> Iterator[Setting]:
    for name, protocol in (
        ("marginals across", Marginals(cliques=(("x", "y"),))),
        ("marginals across, passive", Marginals(cliques=(("x", "y"),), adversary="passive")),
    ):
        study = study_of(protocol, columns=COLUMNS, parties=TWO, unit=REPLACE, budget=APPROXIMATE)
        masked = MaskedSum(
            study=study,
            tables=(ONE, OTHER),
            opened=lambda run: run.result.tables[0].values.ravel(),
            share=study.plan_as(MarginalsPlan).noise,
            colluding=("b",),
        )
        yield Setting(name=name, study=study, one=ONE, other=OTHER, gaussian=masked.gaussian)


def _dealer() -> Setting:
    """Return the view of the coordinator, who dealt the triples and knows what is in a share but for the mask."""
    protocol = Marginals(cliques=(("x", "y"),))
    study = study_of(protocol, columns=COLUMNS, parties=TWO, unit=REPLACE, budget=APPROXIMATE)
    return Setting(
        name="marginals across, dealer",
        study=study,
        one=ONE,
        other=OTHER,
        views={"coordinator, with all that it dealt": _explained},
        quick=60,
    )


def _explained(run: Run) -> float:
    """Return how much better the first table explains one party's masked share than the second does."""
    product = run.study.plan_as(MarginalsPlan).product
    assert product is not None  # noqa: S101 (the study has a table across two parties)
    sizes = product.sizes
    seeds = {each.party: decode(each.asked, ProductStart).seed for each in run.seen if each.step == "product_keys"}
    stocks = {name: Stock(seed=seed, study=run.study.digest, party=name, sizes=sizes) for name, seed in seeds.items()}
    share = sizes.ring.unpack(run.replies("count")["a"].values, 4)
    misses = []
    for table in (ONE, OTHER):
        # the first level of each column is sent
        left, right = (1 - np.array(table[name][0].to_pylist())[:, None] for name in ("a", "b"))
        own = left.T @ (right - stocks["b"].mask(0, 1).astype(np.int64)) + stocks["a"].half("b", 0, (1, 1))
        expected = sizes.ring.reduce(own)[0, 0]
        misses.append(abs(int(sizes.ring.lift(sizes.ring.subtract(share[:1], np.array([expected])))[0])))
    return float(misses[1] - misses[0])


def _gram() -> Iterator[Setting]:
    three = {"a": (PEOPLE, ("x",)), "b": (PEOPLE, ("y",)), "c": (PEOPLE, ("z",))}
    for name, parties, options in (
        ("gram", TWO, {}),
        ("gram of three", three, {"colluding": 2}),
        ("gram overlap", TWO, {"overlap": True}),
    ):
        protocol = Gram(bits=4, scaling=0.0, **options)
        columns = [(column, 3) for _, held in parties.values() for column in held]
        study = study_of(
            protocol,
            columns=columns,
            parties=parties,
            unit=REPLACE,
            budget=APPROXIMATE,
            missing="level" if protocol.overlap else "value",
        )
        # every value of one person goes from one bound to the other
        one, other = (
            {party: rows_of(**{held[0]: [value, 0, 1]}) for party, (_, held) in parties.items()} for value in (2, 0)
        )
        masked = masked_gram(study, one, other, *tuple(parties)[1 : 1 + protocol.colluding])
        yield Setting(name=name, study=study, one=one, other=other, gaussian=masked.gaussian)


def _gram_of_groups() -> Setting:
    """Return a person of the smaller of two groups, each with two parties, as a partner sees the sums."""
    parties = {"a": (2, ("x",)), "b": (2, ("y",)), "c": (PEOPLE, ("y",)), "d": (PEOPLE, ("x",))}
    study = study_of(
        Gram(bits=4, scaling=0.0),
        columns=[("x", 3), ("y", 3)],
        parties=parties,
        unit=REPLACE,
        budget=APPROXIMATE,
        groups={"a": "first", "b": "first", "c": "second", "d": "second"},
    )
    beside = {"c": rows_of(y=[2, 0, 1]), "d": rows_of(x=[1, 0, 1])}
    one, other = ({"a": rows_of(x=[value, 0]), "b": rows_of(y=[value, 1]), **beside} for value in (2, 0))
    masked = masked_gram(study, one, other, "b")
    return Setting(name="gram of groups", study=study, one=one, other=other, gaussian=masked.gaussian)


def _mixing() -> Iterator[Setting]:
    unit = Unit(neighbours="replace", parties=2)
    for name, protocol, sees in (
        ("mixing dgm", Mixing(scheme="dgm", bits=4), _first_row),
        ("mixing bgm", Mixing(scheme="bgm", bits=4), _first_row),
        ("mixing rmgm", Mixing(mixes=4, bits=4), _along_signs),
    ):
        yield Setting(
            name=name,
            study=study_of(protocol, columns=COLUMNS, parties=TWO, unit=unit, budget=APPROXIMATE),
            one=ONE,
            other=OTHER,
            views={RELEASE: sees},
            quick=200,
            full=2000,
        )


def _first_row(run: Run) -> float:
    return float(run.result.numbers[0].sum())


def _along_signs(run: Run) -> float:
    """Return the mixed rows along the person's signs, which are public, less what the others add: they are known."""
    note = run.result.note
    mixer = Mixer(mixes=note.mixes or 1, width=PEOPLE, bits=4, stream=signs_of(bytes.fromhex(note.seed)))
    mixer.add(np.eye(PEOPLE, dtype=np.int32))
    signs = mixer.total()
    others = (signs[:, 2] - signs[:, 1]) * 2**note.fraction_bits
    return float(signs[:, 0] @ (run.result.numbers.sum(axis=1) - 2 * others))
