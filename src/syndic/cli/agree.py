"""`identity`, `agree`, `withdraw`, `studies`: what an owner does before, and instead of, answering others."""

import re
from datetime import timedelta
from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.show import JSON, PATH
from syndic.cli.study import STUDY
from syndic.errors import InputError, RefusedError
from syndic.study import PartyFolder, Study
from syndic.study import agreement as owner
from syndic.study.identity import Identity

HOME = click.option(
    "--home",
    "folder",
    required=True,
    type=PATH,
    help="The organisation's own folder, with party.toml and identity.key.",
)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@click.command(epilog="\b\nExample: syndic identity --home clinic")
@HOME
@JSON
def identity(folder: Path, as_json: bool) -> None:
    """Show the organisation's public identity; make its keys if it has none yet."""
    home = PartyFolder(folder=folder)
    keys = Identity.load(home.keys) if home.keys.exists() else Identity.make(home.keys)
    facts = {"identity": str(keys.public), "fingerprint": keys.public.fingerprint}
    if as_json:
        show.as_json(facts)
    else:
        show.as_lines(facts)


@click.command(
    epilog="\b\nExamples:\n"
    "  syndic agree study.toml --home clinic\n"
    "  syndic agree study.toml --home clinic --rehearsal 7 --yes"
)
@STUDY
@HOME
@click.option("--expires", default="90d", show_default=True, help="How long the agreement holds: 12h, 90d or 8w.")
@click.option("--rehearsal", type=int, metavar="SEED", help="Agree to the run that repeats itself from this seed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@JSON
def agree(study_file: Path, folder: Path, expires: str, rehearsal: int | None, yes: bool, as_json: bool) -> None:
    """Show what a study costs and reveals and who takes part, and sign the owner's agreement to it."""
    home, study, lasts = PartyFolder(folder=folder), Study.load(study_file), _duration(expires)
    offer = owner.consider(home, study, rehearsal=rehearsal)
    if not as_json:
        click.echo(str(offer))
    if not yes and not click.confirm(f"Does {offer.party} agree?", err=as_json):
        raise RefusedError(f"{offer.party} did not agree; nothing was signed")
    agreement = owner.agree(home, study, lasts=lasts, rehearsal=rehearsal)
    told = f"{agreement.party} agrees to {agreement.run} until {agreement.expires:%Y-%m-%d %H:%M} UTC"
    show.as_json_or(told, {"offer": offer, "agreement": agreement}, as_json=as_json)


@click.command(epilog="\b\nExample: syndic withdraw 3f9a --home clinic --why 'data protection officer'")
@click.argument("digest")
@HOME
@click.option("--why", default="", help="A reason, for the owner's own ledger.")
@JSON
def withdraw(digest: str, folder: Path, why: str, as_json: bool) -> None:
    """Take back the agreement to a study; nothing more is answered. What was spent stays spent."""
    run = owner.withdraw(PartyFolder(folder=folder), digest, why=why)
    show.as_json_or(f"withdrawn from {run}; what was spent stays spent", {"withdrawn": run}, as_json=as_json)


@click.command(epilog="\b\nExample: syndic studies --home clinic")
@HOME
@JSON
def studies(folder: Path, as_json: bool) -> None:
    """List the studies of a home: pending, agreed, withdrawn, expired or finished."""
    found = owner.studies(PartyFolder(folder=folder))
    if as_json:
        show.as_json(found)
        return
    show.as_table(
        str(folder),
        ("study", "digest", "state", "until", "rehearsal"),
        (
            (
                one.study,
                one.run[:16],
                one.state,
                f"{one.expires:%Y-%m-%d %H:%M}" if one.expires else "",
                "" if one.rehearsal is None else f"seed {one.rehearsal}",
            )
            for one in found
        ),
    )


def _duration(text: str) -> timedelta:
    found = re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", text)
    if found is None:
        raise InputError(f"--expires {text}: write a number and h, d or w, as in 90d")
    return int(found[1]) * _UNITS[found[2]]
