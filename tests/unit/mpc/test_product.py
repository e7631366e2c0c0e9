"""The secure product through a protocol's own steps: exact, bound to its place, and what a cheat gets."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from products import across, carrier_of, coordinate, counted, product_of, study_of, tables
from syndic.data import Domain
from syndic.errors import InputError, RefusedError
from syndic.kernel import Nothing
from syndic.methods import Marginals
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.methods.layout import TableLayout
from syndic.mpc.dealer import deal_products
from syndic.mpc.key import agree
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import KeptPair, ProductChallenge, ProductInbox, ProductStart, ProductTurn
from syndic.mpc.ring import Residues
from syndic.mpc.seal import Place, unseal
from syndic.mpc.triple import ProductSizes, Stock, dealt_half, product_sizes
from syndic.study import Study
from syndic_lab.bench.open_vertical import CodedTable, OpenCarrier


@pytest.mark.parametrize("options", [{}, {"adversary": "passive"}, {"cliques": []}], ids=str)
@pytest.mark.parametrize("shapes", [((3, 1, 4), (2, 5)), ((2,), (3, 3), (4,))], ids=["two", "three"])
def test_tables_are_exact_before_noise(options: dict[str, Any], shapes: tuple[tuple[int, ...], ...]) -> None:
    parts = tables(2500, *shapes)
    study = study_of(parts, **options)
    product = product_of(study)
    assert product.proven == isinstance(product.sizes.ring, Residues)
    assert product.proven == ("adversary" not in options)
    result = coordinate(study, carrier_of(study, parts))
    columns = sum(len(sizes) for sizes in shapes)
    assert len(result.tables) == (columns * (columns + 1) // 2 if "cliques" in options else len(across(parts)))
    for table in result.tables:
        assert (table.values == counted(parts, table.domain.names)).all()


@pytest.mark.parametrize("adversary", ["active", "passive"])
def test_rows_travel_in_chunks(adversary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def small_chunks(**given: Any) -> ProductSizes:
        return product_sizes(**{**given, "chunk_bytes": 700})

    monkeypatch.setattr("syndic.methods.layout.product_sizes", small_chunks)
    parts = tables(3001, (4, 3), (5,))
    # plans are kept by study: another limit, another plan
    study = study_of(parts, adversary=adversary, message_mb=499)
    carrier = carrier_of(study, parts)
    result = coordinate(study, carrier)
    turns = [each for each in carrier.seen or [] if each[0] == "product_masked"]
    assert len(turns) > 6
    for table in result.tables:
        assert (table.values == counted(parts, table.domain.names)).all()


def test_levels_that_nobody_has_and_columns_of_one_level() -> None:
    parts = [
        CodedTable(Domain.of({"a": 3, "b": 1}), {"a": np.full(40, 2), "b": np.zeros(40, dtype=np.int64)}),
        CodedTable(Domain.of({"c": 4}), {"c": np.zeros(40, dtype=np.int64)}),
    ]
    study = study_of(parts)
    result = coordinate(study, carrier_of(study, parts))
    assert result["c", "a"].values.tolist() == [[0, 0, 40], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert result["b", "c"].values.tolist() == [[40, 0, 0, 0]]
    with pytest.raises(InputError, match="no table"):
        result["a", "b"]


def test_a_thousand_in_a_row_reads_a_record_where_rows_are_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the statement says: without proofs the claim is semi-honest."""
    parts = tables(3000, (3, 2), (4,))
    study = study_of(parts, adversary="passive")
    victim = int(np.flatnonzero(parts[1].codes["p1c0"] == 1)[0])
    honest = TableLayout.rows

    def cheat(self: TableLayout, party: Any, span: tuple[int, int], recode: Any) -> NDArray[np.int64]:
        matrix: NDArray[np.int64] = honest(self, party, span, recode).astype(np.int64)
        if party.name == "p0" and span[0] == 0:
            matrix[victim, 0] += 1000
        return matrix

    monkeypatch.setattr(TableLayout, "rows", cheat)
    # a cheat does not stop itself
    monkeypatch.setattr(SecureProduct, "check_unchanged", lambda *_: None)
    found = coordinate(study, carrier_of(study, parts))["p0c0", "p1c0"].values
    surplus = found - counted(parts, ("p0c0", "p1c0"))
    assert surplus[0, :3].tolist() == [0, 1000, 0]  # level 1, many times the noise


def moved(part: CodedTable) -> CodedTable:
    """Return the same rows but for one person, who has another level of the first column."""
    name = part.domain.names[0]
    codes = part.codes[name].copy()
    codes[37] = (codes[37] + 1) % part.domain[name]
    return CodedTable(part.domain, {**part.codes, name: codes})


def changing(carrier: Any, before: str, who: str, change: Callable[[CodedTable], CodedTable]) -> Any:
    """Return the carrier, but a party's rows change before a step."""
    ask = carrier.ask

    class Live:
        def __getattr__(self, name: str) -> Any:
            return getattr(carrier, name)

        def ask(self, step: Any, message: Any, **more: Any) -> Any:
            if step.__name__ == before:
                carrier.members[who].table = change(carrier.members[who].table)
            return ask(step, message, **more)

    return Live()


@pytest.mark.parametrize("who", ["p0", "p1"])
@pytest.mark.parametrize("before", ["product_proved", "product_multiplied", "count"])
def test_rows_that_change_between_two_looks_end_the_run(who: str, before: str) -> None:
    """The difference times the partner's mask would be in the product, and the dealer knows the mask."""
    parts = tables(300, (3, 2), (4,))
    study = study_of(parts)
    carrier = carrier_of(study, parts)
    with pytest.raises(RefusedError, match=f"rows of {who} changed"):
        coordinate(study, changing(carrier, before, who, moved))
    assert carrier.members[who].drawn == []


def exchanged(part: CodedTable) -> CodedTable:
    """Return the same rows, the first of them reversed: all sums stay as they are."""
    return CodedTable(part.domain, {name: np.append(codes[39::-1], codes[40:]) for name, codes in part.codes.items()})


def test_rows_in_another_order_are_other_rows_though_all_sums_are_the_same() -> None:
    parts = tables(300, (3, 2), (4,))
    study = study_of(parts)
    carrier = carrier_of(study, parts)
    with pytest.raises(RefusedError, match="rows of p0 changed"):
        coordinate(study, changing(carrier, "product_multiplied", "p0", exchanged))


def test_there_is_no_chunk_after_the_last() -> None:
    study, carrier, seen = prepared()
    mine = [each for each in seen if each[1] == "p0"]
    replayed(study, carrier, mine[:-1], "p0")
    protocol: Any = study.protocol
    keys = next(asked.keys for step, _, asked, _ in mine if step == "product_masked")
    after = ProductTurn(chunk=product_of(study).sizes.chunks, keys=keys)
    with pytest.raises(RefusedError, match="no chunk 1"):
        protocol.product_masked(carrier.members["p0"], after)


def prepared() -> tuple[Study, OpenCarrier, list[tuple[str, str, Any, Any]]]:
    parts = tables(300, (3, 2), (4,))
    study = study_of(parts)
    carrier = carrier_of(study, parts)
    coordinate(study, carrier)
    return study, carrier_of(study, parts), carrier.seen or []


def replayed(study: Study, carrier: OpenCarrier, seen: list[tuple[str, str, Any, Any]], name: str) -> None:
    """Ask one party what it was asked before, up to the first question that `seen` does not have."""
    for step, party, asked, _ in seen:
        if party == name:
            plan = study.plan_as(MarginalsPlan)
            owners: dict[str, Any] = {"product_keys": plan.product}
            owners |= dict.fromkeys(("sum_keys", "sum_meet"), plan.masked_sum)
            getattr(owners.get(step, study.protocol), step)(carrier.members[name], asked)


@pytest.mark.parametrize("field", ["bodies", "keys"])
@pytest.mark.parametrize("place", [0, 20, -1])
def test_changed_rows_do_not_open(field: str, place: int) -> None:
    study, carrier, seen = prepared()
    index = next(i for i, each in enumerate(seen) if each[0] == "product_multiplied" and each[1] == "p1")
    step, party, asked, reply = seen[index]
    data = bytearray(getattr(asked, field)["p0"])
    data[place] ^= 1
    changed = msgspec.structs.replace(asked, **{field: {"p0": bytes(data)}})
    with pytest.raises(RefusedError, match="does not open"):
        replayed(study, carrier, [*seen[:index], (step, party, changed, reply)], "p1")


def test_steps_are_answered_once_and_in_order() -> None:
    study, carrier, seen = prepared()
    mine = [each for each in seen if each[1] == "p0"]
    for place, (step, *_) in enumerate(mine):
        if step in {"sum_keys", "product_keys"}:
            continue  # the first of the sum, and of the product
        fresh = {name: replace(member, memory={}) for name, member in carrier.members.items()}
        with pytest.raises(RefusedError):
            replayed(study, replace(carrier, members=fresh), [mine[place]], "p0")
    replayed(study, carrier, mine, "p0")
    for each in mine:
        with pytest.raises(RefusedError):
            replayed(study, carrier, [each], "p0")


def test_malformed_messages_are_refused() -> None:
    study, carrier, seen = prepared()
    protocol: Any = study.protocol
    party: Any = carrier.members["p1"]
    with pytest.raises(RefusedError, match="32 bytes"):
        product_of(study).product_keys(replace(party, memory={}), ProductStart(seed=b"short"))
    mine = [each for each in seen if each[1] == "p1"]
    assert [step for step, *_ in mine][2:] == [*product_of(study).rounds, "count"]
    replayed(study, carrier, mine[:3], "p1")
    with pytest.raises(RefusedError, match="partners"):
        protocol.product_masked(replace(party, memory=dict(party.memory)), ProductTurn(chunk=0, keys={}))
    replayed(study, carrier, mine[3:4], "p1")
    with pytest.raises(RefusedError, match="32 bytes"):
        protocol.product_proved(replace(party, memory=dict(party.memory)), ProductChallenge(chunk=0, seed=b"short"))
    replayed(study, carrier, mine[4:5], "p1")
    inbox: ProductInbox = mine[5][2]
    for field in ("bodies", "keys", "halves", "proofs"):
        changed = msgspec.structs.replace(inbox, **{field: {}})
        with pytest.raises(RefusedError, match="has no entry for"):
            protocol.product_multiplied(replace(party, memory=dict(party.memory)), changed)
    short = msgspec.structs.replace(inbox, halves={"p0": b"123"})
    with pytest.raises(RefusedError, match="found 3"):
        protocol.product_multiplied(replace(party, memory=dict(party.memory)), short)
    with pytest.raises(RefusedError, match="each is answered once, in order"):
        protocol.count(replace(party, memory=dict(party.memory)), Nothing())


def test_everything_that_passes_the_coordinator_looks_uniform() -> None:
    parts = tables(20_000, (3, 2), (4,))
    constant = [
        CodedTable(part.domain, {name: np.zeros_like(codes) for name, codes in part.codes.items()}) for part in parts
    ]
    study = study_of(constant)  # the least random rows there are
    carrier = carrier_of(study, constant)
    coordinate(study, carrier)
    sent: dict[str, bytes] = {}
    for step, _, _, reply in carrier.seen or []:
        if step == "product_masked":
            sent[step] = sent.get(step, b"") + reply.body
        elif step == "product_proved":
            sent[step] = b"".join([sent.get(step, b""), reply.body, reply.seed])
    for step, data in sent.items():
        counts = np.bincount(np.frombuffer(data, dtype=np.uint8), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-6, step
    assert set(sent) == {"product_masked", "product_proved"}


@pytest.mark.slow
def test_opened_shares_are_uniform_to_the_dealer() -> None:
    """Without the masks of the sum, the dealer could subtract what it dealt: shares of equal runs would agree."""
    parts = tables(300, (3,), (4,))
    study = study_of(parts)
    plan, product = study.plan_as(MarginalsPlan), product_of(study)
    field, shares = product.sizes.ring, []
    assert isinstance(field, Residues)
    for seed in range(400):
        carrier = carrier_of(study, parts, seed=seed)
        plan.masked_sum.start(carrier)  # type: ignore[arg-type]
        deal_products(carrier, Marginals(), product)  # type: ignore[arg-type]
        reply: Any = Marginals().count(carrier.members["p0"], Nothing())  # type: ignore[arg-type]
        shares.append(field.unpack(reply.values, 12))
    values = np.array(shares) / field.modulus
    assert stats.kstest(values.ravel(), "uniform").pvalue > 1e-6


def test_dealer_and_one_party_together_read_the_other_as_the_statement_says() -> None:
    study, _, seen = prepared()
    parts = tables(300, (3, 2), (4,))
    carrier = carrier_of(study, parts)
    coordinate(study, carrier)
    sizes = product_of(study).sizes
    # the dealer knows p0's seed, p1 can open what p0 sealed for it
    own = carrier.members["p1"].recall("product own", KeptPair)
    public = next(reply.public for step, name, _, reply in seen if step == "product_keys" and name == "p0")
    sealed = next(reply for step, name, _, reply in seen if step == "product_masked" and name == "p0")
    place = Place(study=study.digest, label="product rows 0", sender="p0", receiver="p1")
    key = unseal(agree(own.pair.private, public), sealed.keys["p1"], place)
    packed = unseal(key, sealed.body, replace(place, receiver="every partner"))
    opened = sizes.ring.unpack(packed, 300 * 3).reshape(300, 3)
    seed = next(asked.seed for step, name, asked, _ in seen if step == "product_keys" and name == "p0")
    mask = Stock(seed=seed, study=study.digest, party="p0", sizes=sizes).mask(0, 3)
    codes = parts[0].codes["p0c0"]
    assert (sizes.ring.add(opened, mask)[:, :2] == (codes[:, None] == np.arange(2))).all()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_dishonest_dealer_only_shifts_counts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the rows are, wrong halves add a number that the dealer knows beforehand."""

    def wrong(*given: Any) -> NDArray[Any]:
        changed: NDArray[Any] = given[3].add(dealt_half(*given), np.full_like(given[2], 5))
        return changed

    monkeypatch.setattr("syndic.mpc.dealer.dealt_half", wrong)
    parts = tables(300, (3,), (4,), seed=seed)
    study = study_of(parts)
    shift = coordinate(study, carrier_of(study, parts))["p0c0", "p1c0"].values - counted(parts, ("p0c0", "p1c0"))
    assert shift.tolist() == [[5, 5, 5, -15], [5, 5, 5, -15], [-10, -10, -10, 30]]
