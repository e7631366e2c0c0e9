"""The owner's side of an agreement: read the plan, sign, decline, withdraw, and list the state of every study.

An owner agrees to one run of one study: to its digest, with this version of Syndic, until a day that the owner chooses.
The agreement is signed with the organisation's identity and sent to every other party before the first step. The
owner's ledger records it, and also every withdrawal and every call that is answered or refused.
"""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, final

from msgspec.structs import replace

from syndic.document import Document, to_readable_json
from syndic.errors import BudgetError, InputError, RefusedError
from syndic.kernel import Agreement, PublicIdentity, identified
from syndic.privacy import Cost, Ledger, Price, Spending, cost_sentence
from syndic.privacy.audit import actor
from syndic.study.document import Study, coordinator_of, price_of
from syndic.study.party_folder import PartyFile, PartyFolder, booking, check_owner, run_digest
from syndic.study.statement import PlanSummary, plan
from syndic.study.study_folder import StudyFolder, write_whole
from syndic.version import __version__

DEFAULT_DAYS: Final = 90
_DECLINED: Final = "declined.json"
State = Literal[
    "pending", "declined", "agreed", "running", "withdrawn", "expired", "finished", "failed", "stopped", "damaged"
]


@final
class Offer(Document):
    """What an owner decides about: the plan, who else takes part, and the cost. For the owner only.

    `price` is what the study costs one person here, at the study's delta. `spending` is what was spent on the owner's
    data set before the study, and `after` what will be spent after it, both at the cap's delta.
    """

    run: str
    party: str
    plan: PlanSummary
    coordinator: str
    peers: dict[str, str]
    syndic: str
    price: Price
    spending: Spending
    after: Spending
    rehearsal: int | None = None

    @property
    def cost(self) -> str:
        """The sentence "this study costs X; after it Y of your cap Z is spent"."""
        return cost_sentence(self.price, self.after)

    def __str__(self) -> str:
        """Return the plan and what only the owner knows, for reading."""
        lines = [
            str(self.plan),
            f"  coordinator  {self.coordinator}",
            *(f"  peer         {name}: {fingerprint}" for name, fingerprint in self.peers.items()),
            f"  code         Syndic {self.syndic}, the same at every party",
            f"  YOUR COST    data set '{self.spending.dataset}': {self.cost}",
            *(f"  DISCLOSES    {text}" for text in self.price.discloses),
        ]
        if self.rehearsal is not None:
            lines.append(
                f"  REHEARSAL    the noise is reproducible from the seed {self.rehearsal}: the run protects nobody, "
                "and is charged all the same. Use made-up rows"
            )
        return "\n".join(lines)


@final
class Standing(Document):
    """The state of one study in a folder; `run` is the digest of the run, another than the study's in a rehearsal.

    `since` is when it was received, declined, agreed to or withdrawn, `by` who agreed.
    """

    study: str
    run: str
    state: State
    edition: int = 1
    method: str = ""
    rehearsal: int | None = None
    expires: datetime | None = None
    since: datetime | None = None
    by: str = ""


def consider(home: PartyFolder, study: Study, *, rehearsal: int | None = None) -> Offer:
    """Return what the owner would agree to. Reads no row, signs nothing, spends nothing.

    Raises:
        InputError: if the study cannot run, if a party has no identity in it, or if this party's is not ours.
        RefusedError: if the owner withdrew from it after restoring an older copy.
    """
    party = home.owner()
    if not identified(study):
        raise InputError(f"{study.name}: a study between organisations must have the identity of every party")
    home.identity(study, party.name)
    coordinator = coordinator_of(study)
    if study.protocol.simulation_only and rehearsal is None:
        raise InputError(f"{study.protocol.title} as published does not keep its guarantee: it can only be rehearsed")
    planned, run = plan(study), run_digest(study, rehearsal)
    with _ledger(home, party) as ledger:
        account = booking(study, party, run)
        ledger.check_open(account.name)
        check_owner(study, party, account, ledger)
        spending = ledger.spent(party.dataset)
        after = ledger.spent_after(
            dataset=party.dataset, study=account.name, events=study.plan.events(party.name), account=account
        )
    return Offer(
        run=run,
        party=party.name,
        plan=planned,
        coordinator=coordinator.fingerprint,
        peers={one.name: PublicIdentity.read(one.identity or "").fingerprint for one in study.parties},
        syndic=__version__,
        price=price_of(study, party.name),
        spending=spending,
        after=after,
        rehearsal=rehearsal,
    )


def agree(
    home: PartyFolder,
    study: Study,
    *,
    lasts: timedelta = timedelta(days=DEFAULT_DAYS),
    rehearsal: int | None = None,
) -> Agreement:
    """Sign the owner's agreement to a run, store it in the party folder, and record it in the ledger.

    Agreeing again replaces the agreement, for another expiry or version, or after a withdrawal.

    Raises:
        BudgetError: if the study does not fit under the owner's cap; nothing was signed.
    """
    with home.audit.attempt("agree", study=run_digest(study, rehearsal)):
        offer, party = consider(home, study, rehearsal=rehearsal), home.owner()
        account, events = booking(study, party, offer.run), study.plan.events(party.name)
        try:
            with _ledger(home, party) as ledger:
                ledger.check(dataset=party.dataset, study=account.name, events=events, account=account)
        except BudgetError as error:
            raise BudgetError(f"{error}. Nothing was signed: raise cap in party.toml, or decline the study") from None
        now = datetime.now(UTC)
        unsigned = Agreement(
            run=offer.run,
            party=party.name,
            syndic=__version__,
            signed_at=now,
            expires=now + lasts,
            rehearsal=rehearsal,
            person=actor(),
        )
        identity = home.identity(study, party.name)
        agreement = replace(unsigned, signature=identity.sign(unsigned.text()).hex())
        stored = StudyFolder.of(home.folder, offer.run)
        stored.put_study(study)
        digest = stored.put_agreement(agreement)
        (stored.folder / _DECLINED).unlink(missing_ok=True)
        with _ledger(home, party) as ledger:
            why = f"by {agreement.person}, until {agreement.expires:%Y-%m-%d %H:%M} UTC, Syndic {__version__}"
            booked = {"dataset": party.dataset, "study": account.name}
            ledger.log_agreement(**booked, agreement=digest, why=why, stated=offer.price)
        return agreement


def receive(home: PartyFolder, study: Study) -> str:
    """Store a study that the owner is asked about, so that `studies` lists it as pending; return its digest."""
    if not any(party.identity for party in study.parties):
        raise InputError(f"{study.name}: a study between organisations must have the identity of every party")
    with home.audit.attempt("receive", study=study.digest):
        StudyFolder.of(home.folder, study.digest).put_study(study)
    return study.digest


def decline(home: PartyFolder, run: str, *, why: str = "") -> None:
    """Store the owner's refusal of a study that was never agreed to. Nobody else learns of it."""
    for one in studies(home):
        if one.run == run:
            if one.state not in {"pending", "declined", "damaged"}:
                raise RefusedError(f"{one.study} is {one.state}: withdraw instead")
            declined = {"why": why[:1000], "at": datetime.now(UTC)}
            with home.audit.attempt("decline", study=run, why=why):
                write_whole(StudyFolder.of(home.folder, run).folder / _DECLINED, to_readable_json(declined))
            return
    raise InputError(f"there is no study {run[:12]} in this party folder")


def withdraw(home: PartyFolder, digest: str, *, why: str = "", restored: bool = False) -> str:
    """Withdraw the agreement to a run, named by the first letters of its digest; return the whole digest.

    From the next call on, nothing is answered, not even stored answers. What was spent stays spent. If the ledger was
    `restored` from an older copy, everything that the study may have charged since is charged, also beyond the cap, and
    the owner cannot agree to this run again: lost answers would get new noise on an old charge.
    """
    party = home.owner()
    with _ledger(home, party) as ledger:
        # the ledger decides what is answered, so the owner can also withdraw from a study whose files are damaged
        booked = {name.partition(" ")[0]: name for name in ledger.agreed() if name.partition(" ")[2] == party.booked_as}
        agreed = tuple(booked)
        found = [run for run in agreed if digest and run.startswith(digest)]
        if len(found) != 1:
            known = ", ".join(run[:12] for run in agreed) or "none"
            asked = f"'{digest}'" if digest else "an empty digest"
            raise InputError(f"{asked} does not begin the digest of exactly one agreed run; agreed runs: {known}")
        reason = why or "restored from an older copy" * restored
        with home.audit.attempt("withdraw", study=found[0], why=reason):
            if restored:
                _charge_rest(StudyFolder.of(home.folder, found[0]).study(), party, booked[found[0]], ledger)
            ledger.log_withdrawal(dataset=party.dataset, study=booked[found[0]], why=reason, restored=restored)
    return found[0]


def _charge_rest(study: Study, party: PartyFile, run: str, ledger: Ledger) -> None:
    """Charge what a study may charge here and has not: an older copy of the ledger may lack it."""
    planned = study.plan.events(party.name)
    rest = tuple((Counter(planned) - Counter(ledger.charged(run))).elements())
    if rest:
        ledger.reserve(
            dataset=party.dataset,
            study=run,
            call="restored",
            door="1",
            events=rest,
            why="the ledger was restored from an older copy",
            limit=Cost.of(planned),
            stated=price_of(study, party.name),
            beyond_cap=True,
        )


def studies(home: PartyFolder) -> tuple[Standing, ...]:
    """Return the state of every study in the party folder."""
    party = home.owner()
    folders = sorted(path.parent for path in home.folder.glob("studies/*/study.json"))
    with _ledger(home, party) as ledger:
        return tuple(_standing(StudyFolder.of(home.folder, folder.name), party, ledger) for folder in folders)


def _standing(stored: StudyFolder, party: PartyFile, ledger: Ledger) -> Standing:
    try:
        study, agreement = stored.study(), stored.agreement(party.name)
    except (InputError, RefusedError) as error:
        # nothing is answered for it, and the other studies are still listed
        return Standing(study=f"damaged: {error}", run=stored.digest, state="damaged")
    received = Standing(
        study=study.name,
        run=study.digest,
        state="pending",
        edition=study.edition,
        method=study.protocol.title,
        since=stored.time_of("study.json"),
    )
    if agreement is None:
        declined = (stored.folder / _DECLINED).exists()
        return replace(received, state="declined", since=stored.time_of(_DECLINED)) if declined else received
    booked = booking(study, party, agreement.run).name
    last = ledger.standing(booked)
    if last is None:
        state: State = "pending"
    elif last.kind == "withdraw":
        state = "withdrawn"
    elif (spends := Counter(study.plan.events(party.name))) and not spends - Counter(ledger.charged(booked)):
        state = "finished"
    else:
        state = "expired" if datetime.now(UTC) >= agreement.expires else "agreed"
    return replace(
        received,
        run=agreement.run,
        state=state,
        rehearsal=agreement.rehearsal,
        expires=agreement.expires,
        since=received.since if last is None else datetime.fromisoformat(last.time),
        by=agreement.person,
    )


def _ledger(home: PartyFolder, party: PartyFile) -> Ledger:
    """Open the ledger and put the cap of the owner's party file in force."""
    home.folder.chmod(0o700)
    ledger = home.open_ledger()
    ledger.declare(party.dataset, party.cap, why="the owner's party file")
    return ledger
