"""`identity`, `receive`, `agree`, `decline`, `withdraw`, `studies`: how a data owner decides about studies."""

import re
from datetime import timedelta
from pathlib import Path

import click
from msgspec.structs import replace

from syndic.advice import warning
from syndic.cli import show
from syndic.cli.groups import command
from syndic.cli.show import JSON, STUDY
from syndic.cli.study import added_lines, show_fit
from syndic.errors import InputError, RefusedError
from syndic.study import PartyFolder, Study
from syndic.study import agreement as owner
from syndic.study.fit import own_fit
from syndic.study.identity import Identity

HOME = show.home("The party folder.")
_WORST = 5
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@command("syndic identity --home clinic")
@HOME
@JSON
def identity(folder: Path, as_json: bool) -> None:
    """Show the party's public identity; create missing keys."""
    home = PartyFolder(folder=folder)
    keys = Identity.load(home.keys) if home.keys.exists() else Identity.make(home.keys)
    facts = {"identity": str(keys.public), "fingerprint": keys.public.fingerprint}
    if as_json:
        show.as_json(facts)
    else:
        show.as_lines(facts)


@command("syndic agree study.toml --home clinic", "syndic agree study.toml --home clinic --rehearsal 7 --yes")
@STUDY
@HOME
@click.option("--expires", default="90d", help="How long the agreement is valid: 12h, 90d or 8w.")
@click.option("--rehearsal", type=int, metavar="SEED", help="Agree to a seeded run. Its output is not private.")
@click.option("--yes", is_flag=True, help="Agree without being asked.")
@click.option("--despite-fit", is_flag=True, help="Agree without being asked again if your rows fit the study poorly.")
@JSON
def agree(
    study_file: Path,
    folder: Path,
    expires: str,
    rehearsal: int | None,
    yes: bool,
    despite_fit: bool,
    as_json: bool,
) -> None:
    """Show what a study costs; sign the agreement if you say yes.

    Also shows who takes part, what each party sees, and, for you only, how your rows fit. Spends nothing. A poor fit
    needs a second yes. Without a yes nothing is signed, and the command ends with status 4.
    """
    home, study, lasts = PartyFolder(folder=folder), Study.load(study_file), _duration(expires)
    with show.progress_bar("plan", shown=not as_json):
        offer = owner.consider(home, study, rehearsal=rehearsal)
    with show.progress_bar("read rows", shown=not as_json):
        fit, unread = own_fit(home, study, seed=rehearsal)
    if not as_json:
        needs = offer.plan.resources
        expected, most = needs.party_bytes or needs.likely_bytes, needs.party_bytes or needs.memory_bytes
        click.echo(f"{offer}{added_lines(expected, most, warning(study))}")
        if fit is not None:
            show_fit(fit, most=_WORST)
    if unread:
        click.echo(f"your rows were not compared with the study: {unread}", err=True)
    if not yes and not show.confirmed(f"Does {offer.party} agree?", err=as_json):
        raise RefusedError(f"{offer.party} did not agree; nothing was signed")
    if fit is not None and fit.poor and not despite_fit:
        question = "Your rows fit this study poorly, as the private lines above say. Agree all the same?"
        if yes or not show.confirmed(question, err=as_json):
            raise RefusedError(
                f"{offer.party} did not agree; nothing was signed: its rows fit the study poorly. Look at "
                "`syndic plan STUDY -s PARTY=FILE`, or agree with --despite-fit"
            )
    agreement = owner.agree(home, study, lasts=lasts, rehearsal=rehearsal)
    text = f"{agreement.party} agrees to {agreement.run} until {agreement.expires:%Y-%m-%d %H:%M} UTC"
    if fit is not None and fit.ids is not None:
        # what programs read is often kept: ids are shown on the owner's screen only
        fit = replace(fit, ids=replace(fit.ids, forms=()))
    show.as_json_or(text, {"offer": offer, "agreement": agreement, "owner_only": fit}, as_json=as_json)


@command("syndic receive study.toml --home clinic")
@STUDY
@HOME
@JSON
def receive(study_file: Path, folder: Path, as_json: bool) -> None:
    """Store a study file in the party folder as pending.

    Agrees to nothing and reads no row.
    """
    home = PartyFolder(folder=folder)
    _show(home, owner.receive(home, Study.load(study_file)), as_json)


@command("syndic decline 3f9a --home clinic --why 'not now'")
@click.argument("digest")
@HOME
@click.option("--why", default="", show_default=False, help="A reason, for the party's own record.")
@JSON
def decline(digest: str, folder: Path, why: str, as_json: bool) -> None:
    """Decline a pending study; nobody is notified.

    DIGEST is the beginning of the study's digest, as `syndic studies` shows it.
    """
    home = PartyFolder(folder=folder)
    found = [one.run for one in owner.studies(home) if digest and one.run.startswith(digest)]
    if len(found) != 1:
        raise InputError(
            f"{digest or 'an empty digest'} is not the beginning of exactly one study's digest: see `syndic studies`"
        )
    owner.decline(home, found[0], why=why)
    _show(home, found[0], as_json)


@command("syndic withdraw 3f9a --home clinic --why 'asked by the privacy officer'")
@click.argument("digest")
@HOME
@click.option("--why", default="", show_default=False, help="A reason, kept in the party's own ledger.")
@click.option(
    "--restored",
    is_flag=True,
    help="The ledger is an older copy: also charge all that the study may have charged since.",
)
@JSON
def withdraw(digest: str, folder: Path, why: str, restored: bool, as_json: bool) -> None:
    """Withdraw the agreement to a study; what was spent stays spent.

    DIGEST is the beginning of the study's digest, as `syndic studies` shows it. No further call is answered.
    """
    run = owner.withdraw(PartyFolder(folder=folder), digest, why=why, restored=restored)
    show.as_json_or(f"agreement to {run} withdrawn; what was spent stays spent", {"withdrawn": run}, as_json=as_json)


@command("syndic studies --home clinic")
@HOME
@JSON
def studies(folder: Path, as_json: bool) -> None:
    """List the studies in a party folder and the state of each.

    The states are pending, declined, agreed, withdrawn, expired, finished and damaged.
    """
    found = owner.studies(PartyFolder(folder=folder))
    if as_json:
        show.as_json(found)
        return
    show.as_table(
        str(folder),
        ("study", "digest", "state", "since (UTC)", "until", "rehearsal"),
        (
            (
                one.study,
                one.run[:16],
                one.state,
                f"{one.since:%Y-%m-%d %H:%M}" if one.since else "",
                f"{one.expires:%Y-%m-%d %H:%M}" if one.expires else "",
                "" if one.rehearsal is None else f"seed {one.rehearsal}",
            )
            for one in found
        ),
    )


def _show(home: PartyFolder, run: str, as_json: bool) -> None:
    standing = next(one for one in owner.studies(home) if one.run == run)
    show.as_json_or(f"{standing.study} is {standing.state}: {standing.run}", standing, as_json=as_json)


def _duration(text: str) -> timedelta:
    found = re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", text)
    if found is None:
        raise InputError(f"--expires {text}: expected a number followed by h, d or w, such as 90d")
    return int(found[1]) * _UNITS[found[2]]
