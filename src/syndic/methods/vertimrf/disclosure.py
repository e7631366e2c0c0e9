"""What VertiMRF checks and says about itself before any row is read."""

from math import sqrt
from typing import Literal

from syndic.errors import InputError
from syndic.kernel import Disclosure, Resources, Terms
from syndic.methods.refusals import check_fits
from syndic.methods.synthesis.size import BASE_BYTES, CELL_BYTES, VALUE_BYTES
from syndic.methods.synthesis.vertical_requirements import budgets_of, check_all_held, check_columns_apart
from syndic.methods.vertimrf.account import Account, strictest
from syndic.methods.vertimrf.layout import Layout
from syndic.methods.vertimrf.model import OracleTables
from syndic.methods.vertimrf.published import claim_of, true_delta
from syndic.methods.vertimrf.requirements import VertiMRFTerms
from syndic.methods.vertimrf.sketch import cell_error
from syndic.privacy import Cost

# Of one hash of one person, on one core, and of one randomised response.
_HASH_SECONDS, _RESPONSE_SECONDS = 3.5e-9, 1e-7


def check_study(protocol: VertiMRFTerms, terms: Terms) -> None:
    """Raise `InputError` for what cannot work, with what to change."""
    _check_terms(terms, "add_remove" if protocol.as_printed and protocol.way == "sketch" else "replace")
    if not protocol.layout(terms).pairs:
        raise InputError(
            "no two columns of different parties have two values or more: there is nothing to learn across"
        )
    _check_cells(protocol, terms)
    try:
        estimate = protocol.estimate(terms)
    except ValueError as error:
        raise InputError(f"the noise cannot be made: {error}") from None
    check_fits(terms, estimate, "lower model_cells, bins or repetitions, or set larger limits")


def _check_terms(terms: Terms, neighbours: Literal["add_remove", "replace"]) -> None:
    unit = terms.unit
    if unit.neighbours != neighbours or unit.rows != 1 or unit.parties != 1:
        raise InputError(
            f'the unit must be neighbours = "{neighbours}" with one row'
            + (", as the printed sketches claim" if neighbours == "add_remove" else ": aligned rows show who is in")
            + "; as every party is charged for the whole release, unit.parties stays 1"
        )
    check_columns_apart(terms)
    check_all_held(terms)
    if any(budget.delta == 0 for budget in budgets_of(terms)):
        raise InputError("Gaussian noise and sketches need delta above 0: set it in every budget")


def _check_cells(protocol: VertiMRFTerms, terms: Terms) -> None:
    """Refuse columns that do not fit into a model."""
    for party in terms.parties:
        sizes = {name: terms.schema.domain[name] for name in party.columns or ()}
        widest = max(sizes, key=lambda name: sizes[name])
        if sizes[widest] > protocol.clique_cells or sum(sizes.values()) > protocol.local_cells:
            raise InputError(
                f"party '{party.name}': its columns have {sum(sizes.values()):,} values ('{widest}' {sizes[widest]:,}) "
                f"and its model at most {protocol.local_cells:,} cells, a clique {protocol.clique_cells:,}: set fewer "
                "bins in the schema, or larger local_cells and clique_cells"
            )
    if sum(terms.schema.domain.sizes) > protocol.model_cells:
        raise InputError(f"all columns together have more values than model_cells ({protocol.model_cells:,}) allows")


def cell_deviation(protocol: VertiMRFTerms, terms: Terms) -> float:
    """Return the standard deviation of a cell of the widest table across parties, before it is made consistent."""
    layout, account = protocol.layout(terms), protocol.account_of(terms)
    if account.plan is not None:
        return cell_error(account.plan, people=layout.people, sketches=layout.sketches)
    widest = max(layout.pairs, key=lambda names: sum(layout.bins[name] for name in names))
    return sqrt(layout.people * OracleTables(responses=account.responses, codes={}).factor(widest))


def estimate_of(protocol: VertiMRFTerms, terms: Terms) -> Resources:
    """Return memory at the busiest role, bytes of the largest reply, and about how long it takes."""
    layout, account = protocol.layout(terms), protocol.account_of(terms)
    people, columns = layout.people, len(terms.schema.columns)
    encoded = max(_reply(layout, account, party, one_key=protocol.as_printed) for party in layout.held)
    hashes = 0 if account.plan is None else people * account.plan.repetitions
    keys = 1 if protocol.as_printed else len(layout.pairs)
    seconds = 2.0 + 2 * keys * hashes * _HASH_SECONDS + columns * people * _RESPONSE_SECONDS
    rows = people if protocol.rows is None else protocol.rows
    spread = cell_deviation(protocol, terms)
    notes = [
        f"standard deviation about {spread:,.0f} on a cell of a table across parties, {protocol.bins} bins a column, "
        f"where a mean cell has {people / protocol.bins**2:,.0f}",
        'the method "vertical" reaches the same tables by secure products with far less noise, also against parties',
    ]
    if account.plan is not None:
        plan = account.plan
        notes.insert(0, f"{keys} key(s), {plan.repetitions:,} repetitions, {plan.phantoms:,} phantoms, cap {plan.top}")
    return Resources(
        memory_bytes=BASE_BYTES + CELL_BYTES * protocol.model_cells + VALUE_BYTES * rows * columns + 4 * encoded,
        reply_bytes=encoded + 8 * protocol.local_cells,
        rounds=(4 if protocol.way == "sketch" else 1) + int(protocol.learns(terms)),
        seconds=round(seconds + 1e-5 * protocol.model_cells, 1),
        notes=tuple(notes),
    )


def _reply(layout: Layout, account: Account, party: str, *, one_key: bool) -> int:
    if account.plan is None:
        return layout.people * len(layout.coded_of(party))
    parts = [layout.coded_of(party)] if one_key else [part for _, part in layout.sketched_of(party)]
    return 2 * account.plan.repetitions * sum(layout.bins[name] for part in parts for name in part)


def disclosure_of(protocol: VertiMRFTerms, terms: Terms) -> Disclosure:
    """State what every role sees."""
    sketched = protocol.way == "sketch"
    encodings = "sketches of every encoded column" if sketched else "every person's randomised codes"
    release = "the model fitted to the parties' models and encodings, the tables read from them, and the rows"
    keys = (
        "sketches promise nothing against the parties: each has the keys, with which the absence of a person from a "
        "value can often be proven, and sees what was made of the others' sketches",
        "a party that hands the keys to the coordinator, or to anybody with the sketches",
    )
    return Disclosure(
        sees={
            "coordinator": f"{_learned(protocol, terms)}{encodings}, and {release}"
            + ("; it has none of the keys" if sketched else ""),
            "other parties": release + ("; they have the keys of the sketches" if sketched else ""),
            "anyone with the release": release,
        },
        sensitivity=_sensitivity(protocol, terms),
        not_protected=(
            *(keys if sketched else ()),
            "who the people are and how many, and which rows belong together: aligned rows show it to every party",
            "what is true of groups: a pattern that many people share shows, as it should",
            "the columns, bounds, labels, bins and people: they are public",
        ),
        departures=_departures(protocol, terms) if protocol.as_printed else (),
    )


def _learned(protocol: VertiMRFTerms, terms: Terms) -> str:
    """Return what a coordinator sees beside encodings."""
    account = protocol.account_of(terms)
    parts = (
        ("each party's own noisy model, ", bool(account.local)),
        ("noisy counts of the values of large columns, ", account.counts is not None),
        ("the first party's noisy number of people, ", account.number is not None),
    )
    return "".join(words for words, there in parts if there)


def _sensitivity(protocol: VertiMRFTerms, terms: Terms) -> str:
    layout = protocol.layout(terms)
    local = (
        "replacing one person's values at all parties at once moves two counts by one in every table that a local "
        "model is fitted to, R-scores by at most 3 and distances by at most 2; "
        if protocol.local_models
        else ""
    )
    if protocol.account_of(terms).counts is not None:
        local += f"it moves two counts by one in each of {len(layout.large)} columns whose values are counted; "
    if protocol.way == "oracle":
        encoded = f"it changes one code in each of {len(layout.coded)} columns, each of which is answered once"
    elif protocol.as_printed:
        encoded = f"a person has one rank under the one key, in one value of each of {len(layout.coded)} columns"
    else:
        encoded = (
            f"under each of {len(layout.pairs)} keys, one for each pair of columns, a person has one rank, in one "
            "value of each of the two columns, and no sketch shows a rank above the cap"
        )
    return f"{local}{encoded}; every party is charged for all parties together"


def _departures(protocol: VertiMRFTerms, terms: Terms) -> tuple[str, ...]:
    layout, account, budget = protocol.layout(terms), protocol.account_of(terms), strictest(terms)
    claim = claim_of(budget, protocol.shares_of(layout))
    whole = Cost.of(account.events).epsilon(budget.delta)
    words = ["parties' own models are fitted with the noise that their part buys; the authors' program adds less"]
    if account.plan is not None:
        true = true_delta(account.plan, len(layout.coded), claim.epsilon)
        words.append(
            f"the sketches claim epsilon {float(claim.epsilon):.4g} with delta {float(claim.delta):.3g}: one key for "
            f"{len(layout.coded)} columns makes the true delta {true.lower:.3g} to {true.upper:.3g} at that epsilon"
        )
        words.append(
            "the printed decoder takes the harmonic mean of ranks, which makes every cell 0: the likeliest number of "
            "people is used instead"
        )
    else:
        each = next(iter(account.responses.values())).epsilon
        words.append(
            f"the responses claim epsilon {float(claim.epsilon):.4g}; {len(layout.coded)} codes a person at "
            f"{float(each):.4g} each cost {float(len(layout.coded) * each):.4g}, and the whole release epsilon "
            f"{float(whole):.4g}"
        )
    return tuple(words)
