"""The owner's side of an agreement: look at the plan, sign, withdraw, and see where every study stands.

An owner agrees to one run of one study: to its digest, with this version of Syndic, until a day of its choice. The
agreement is signed with the organisation's identity and goes to every other party before the first step. It is an
entry of the owner's ledger, like a withdrawal, and like every call that is answered or refused.
"""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, final

from msgspec.structs import replace

from syndic.document import Document, to_readable_json
from syndic.errors import InputError, RefusedError
from syndic.kernel import Agreement, PublicIdentity, identified
from syndic.privacy import Ledger, Spending
from syndic.study.document import Study
from syndic.study.party_folder import PartyFile, PartyFolder, run_digest
from syndic.study.statement import PlanSummary, plan
from syndic.study.study_folder import StudyFolder, write_whole
from syndic.version import __version__

__all__ = ["Agreement", "Offer", "Standing", "agree", "consider", "decline", "receive", "studies", "withdraw"]

DEFAULT_DAYS: Final = 90
_DECLINED: Final = "declined.json"
State = Literal["pending", "declined", "agreed", "withdrawn", "expired", "finished"]


@final
class Offer(Document):
    """What an owner decides about: the plan, who else takes part, and what its own cap leaves. For the owner only."""

    run: str
    party: str
    plan: PlanSummary
    peers: dict[str, str]
    syndic: str
    charge: float
    spending: Spending
    rehearsal: int | None = None

    def __str__(self) -> str:
        """Return the plan and what the owner alone knows, for reading."""
        left, cap = float(self.spending.left), float(self.spending.cap.epsilon)
        lines = [
            str(self.plan),
            *(f"  peer       {name}: {fingerprint}" for name, fingerprint in self.peers.items()),
            f"  code       Syndic {self.syndic}, the same at every party",
            f"  your cap   data set '{self.spending.dataset}': epsilon {left:g} is left of {cap:g}, "
            f"and this study charges {self.charge:g}",
        ]
        if self.rehearsal is not None:
            lines.append(
                f"  REHEARSAL  the noise repeats from the seed {self.rehearsal}: the run protects nobody, and is "
                "charged all the same. Use rows that are made up"
            )
        return "\n".join(lines)


@final
class Declined(Document):
    """The owner's no to a study, kept in its folder."""

    why: str
    at: datetime


@final
class Standing(Document):
    """Where one study stands with this owner."""

    study: str
    run: str
    state: State
    rehearsal: int | None = None
    expires: datetime | None = None


def consider(home: PartyFolder, study: Study, *, rehearsal: int | None = None) -> Offer:
    """Return what the owner would agree to. Reads no row, signs nothing, spends nothing.

    Raises:
        InputError: if the study cannot run, has no identities, or not this organisation's under its name.
    """
    party = home.owner()
    if not identified(study):
        raise InputError(f"{study.name}: a study between organisations gives the identity of every party")
    home.identity(study, party.name)
    if study.protocol.simulation_only and rehearsal is None:
        raise InputError(f"{study.protocol.title} as published does not keep its promise: it can only be rehearsed")
    planned = plan(study)
    with _ledger(home, party) as ledger:
        spending = ledger.spent(party.dataset)
    return Offer(
        run=run_digest(study, rehearsal),
        party=party.name,
        plan=planned,
        peers={one.name: PublicIdentity.read(one.identity or "").fingerprint for one in study.parties},
        syndic=__version__,
        charge=float(study.costs[party.name].epsilon(spending.delta)),
        spending=spending,
        rehearsal=rehearsal,
    )


def agree(
    home: PartyFolder,
    study: Study,
    *,
    lasts: timedelta = timedelta(days=DEFAULT_DAYS),
    rehearsal: int | None = None,
) -> Agreement:
    """Sign the owner's agreement to a run, keep it in the home, and write it into the ledger.

    Agreeing again replaces the agreement: with another expiry, another version, or after a withdrawal.
    """
    offer, party = consider(home, study, rehearsal=rehearsal), home.owner()
    now = datetime.now(UTC)
    unsigned = Agreement(
        run=offer.run, party=party.name, syndic=__version__, signed_at=now, expires=now + lasts, rehearsal=rehearsal
    )
    identity = home.identity(study, party.name)
    agreement = replace(unsigned, signature=identity.sign(unsigned.text()).hex())
    stored = StudyFolder.of(home.folder, offer.run)
    stored.put_study(study)
    digest = stored.put_agreement(agreement)
    (stored.folder / _DECLINED).unlink(missing_ok=True)
    with _ledger(home, party) as ledger:
        why = f"until {agreement.expires:%Y-%m-%d %H:%M} UTC, Syndic {__version__}"
        ledger.log_agreement(dataset=party.dataset, study=offer.run, agreement=digest, why=why)
    return agreement


def receive(home: PartyFolder, study: Study) -> str:
    """Keep a study that the owner is asked about, so that `studies` lists it as pending; return its digest."""
    if not any(party.identity for party in study.parties):
        raise InputError(f"{study.name}: a study between organisations gives the identity of every party")
    StudyFolder.of(home.folder, study.digest).put_study(study)
    return study.digest


def decline(home: PartyFolder, run: str, *, why: str = "") -> None:
    """Keep the owner's no to a study that was never agreed to. Nobody is told; nothing is answered anyway."""
    for one in studies(home):
        if one.run == run:
            if one.state not in {"pending", "declined"}:
                raise RefusedError(f"{one.study} is {one.state}: withdraw instead")
            declined = Declined(why=why[:1000], at=datetime.now(UTC))
            write_whole(StudyFolder.of(home.folder, run).folder / _DECLINED, to_readable_json(declined))
            return
    raise InputError(f"there is no study {run[:12]} here")


def withdraw(home: PartyFolder, digest: str, *, why: str = "") -> str:
    """Take back the agreement to a run, found by the first letters of its digest; return the whole digest.

    From the next call on nothing is answered, not even what was answered before. What was spent stays spent.
    """
    party = home.owner()
    with _ledger(home, party) as ledger:
        # the ledger decides what is answered: a study whose files were damaged can be withdrawn from all the same
        agreed = ledger.agreed()
        found = [run for run in agreed if digest and run.startswith(digest)]
        if len(found) != 1:
            known = ", ".join(run[:12] for run in agreed) or "none"
            told = digest or "an empty digest"
            raise InputError(f"{told} is not the beginning of one run's digest; here are {known}")
        ledger.log_withdrawal(dataset=party.dataset, study=found[0], why=why)
    return found[0]


def studies(home: PartyFolder) -> tuple[Standing, ...]:
    """Return where every study in the home stands, by folder."""
    party = home.owner()
    folders = sorted(path.parent for path in home.folder.glob("studies/*/study.json"))
    with _ledger(home, party) as ledger:
        return tuple(_standing(StudyFolder.of(home.folder, folder.name), party, ledger) for folder in folders)


def _standing(stored: StudyFolder, party: PartyFile, ledger: Ledger) -> Standing:
    try:
        study, agreement = stored.study(), stored.agreement(party.name)
    except (InputError, RefusedError) as error:
        # nothing is answered for it, and it must not stand in the way of the others
        return Standing(study=f"damaged: {error}", run=stored.digest, state="pending")
    if agreement is None:
        declined = (stored.folder / _DECLINED).exists()
        return Standing(study=study.name, run=study.digest, state="declined" if declined else "pending")
    last = ledger.standing(agreement.run)
    if last is None:
        state: State = "pending"
    elif last.kind == "withdraw":
        state = "withdrawn"
    elif _charged_in_full(study, party.name, agreement.run, ledger):
        state = "finished"
    else:
        state = "expired" if datetime.now(UTC) >= agreement.expires else "agreed"
    return Standing(
        study=study.name, run=agreement.run, state=state, rehearsal=agreement.rehearsal, expires=agreement.expires
    )


def _charged_in_full(study: Study, party: str, run: str, ledger: Ledger) -> bool:
    """Return whether all that the study may charge here was charged: nothing more can be asked that costs."""
    spends = Counter(study.plan.events(party))
    return bool(spends) and not spends - Counter(ledger.charged(run))


def _ledger(home: PartyFolder, party: PartyFile) -> Ledger:
    """Open the ledger with the cap that the owner's file says now."""
    home.folder.chmod(0o700)
    ledger = home.open_ledger()
    ledger.declare(party.dataset, party.cap, why="the owner's party file")
    return ledger
