"""`coordinator`, `party`, `join`, `run`, `doctor`: studies between organisations."""

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from syndic.cli import show
from syndic.cli.groups import Listed, command, example
from syndic.cli.init import numbers, text_of
from syndic.cli.show import FOLDER, JSON, PATH, STUDY
from syndic.cli.study import named, show_release, write_release
from syndic.document import from_file, to_readable_json
from syndic.errors import InputError, IntegrityError, PublicError, RefusedError
from syndic.federation import certificate as certificates
from syndic.federation import coordinator as coordinators
from syndic.federation import party as parties
from syndic.federation.authority import PASSPHRASE, TokenKey
from syndic.federation.doctor import examine
from syndic.federation.requests import Approval, Request
from syndic.federation.run import run as run_study
from syndic.kernel import PublicIdentity
from syndic.study import PartyFolder, Study
from syndic.study.agreement import studies
from syndic.study.study_folder import write_new

DAYS = click.option("--days", metavar="DAYS", type=click.IntRange(1), default=365, help="Validity of the certificate.")
_PASSPHRASE = f"Encrypt the new key; asks, or takes the passphrase from {PASSPHRASE}."
HOME = show.home("The coordinator's folder.")


@click.group(cls=Listed, epilog=example("syndic coordinator init federation --name health --host study.example.org"))
def coordinator() -> None:
    """Set up and start the server that the parties connect to."""


@command("syndic coordinator init federation --name health --host study.example.org", of=coordinator, name="init")
@FOLDER
@click.option("--name", required=True, help="The federation's name: letters, digits, '-' and '_'.")
@click.option("--host", required=True, help="Name or address at which the parties reach this machine.")
@click.option(
    "--port", metavar="PORT", type=click.IntRange(1, 65535), default=8002, help="The port that parties connect to."
)
@DAYS
@click.option("--passphrase", is_flag=True, help=_PASSPHRASE)
@click.option("--pkcs11", "token", nargs=2, metavar="MODULE TOKEN", help="Make the root's key in a PKCS#11 token.")
def coordinator_init(
    folder: Path, name: str, host: str, port: int, days: int, passphrase: bool, token: tuple[str, str] | None
) -> None:
    """Create a federation: its root certificate, and the server's key and certificate.

    FOLDER is the coordinator's new folder. An existing one is never overwritten.
    """
    place = TokenKey(module=token[0], token=token[1]) if token else None
    made = coordinators.Coordinator.create(
        folder, name=name, host=host, port=port, days=days, passphrase=_new(passphrase), token=place, ask=_asked
    )
    root = certificates.read_certificate(made.root.read_bytes(), "root.crt")
    click.echo(f"created {folder}: parties connect to {host}:{port}")
    click.echo(f"root fingerprint {certificates.fingerprint(root)}")


@command("syndic coordinator approve request.json --home federation", of=coordinator)
@click.argument("requests", metavar="REQUEST...", type=PATH, nargs=-1, required=True)
@HOME
@click.option("--out", "target", type=PATH, help="File for the approval of one request.  [default: beside REQUEST]")
@click.option("--yes", is_flag=True, help="Admit the parties without being asked.")
@DAYS
def approve(requests: tuple[Path, ...], folder: Path, target: Path | None, yes: bool, days: int) -> None:
    """Admit parties: sign their certificates, and write the approvals to send back.

    REQUEST is a party's request.json. Compare the two fingerprints with the party by telephone first.
    """
    if target is not None and len(requests) > 1:
        raise InputError("--out names one approval: leave it out for several requests")
    opened = coordinators.Coordinator.open(folder, ask=_asked)
    for one in requests:
        _approve(opened, one, target, yes, days)


def _approve(opened: coordinators.Coordinator, request_file: Path, target: Path | None, yes: bool, days: int) -> None:
    request = from_file(request_file, Request)
    key = certificates.read_request(request.certificate_request, name=request.party)
    click.echo(f"party        {request.party}")
    click.echo(f"key          {certificates.key_fingerprint(key)}")
    click.echo(f"identity     {PublicIdentity.read(request.identity).fingerprint}")
    if not yes and not show.confirmed("Did the party read out the same fingerprints to you?"):
        raise RefusedError(f"{request.party} was not admitted; nothing was signed")
    approval = opened.approve(request, days=days)
    if target is None:
        target = request_file.with_name(f"approval-{request.party}.json")
        # others may write there: a link would lead to a file of this account
        target.unlink(missing_ok=True)
        with target.open("xb") as file:
            file.write(to_readable_json(approval))
    else:
        target.write_bytes(to_readable_json(approval))
    click.echo(f"wrote {target}: send it to {request.party}, which is now admitted")


@command("syndic coordinator parties --home federation", of=coordinator, name="parties")
@HOME
@JSON
def list_parties(folder: Path, as_json: bool) -> None:
    """Print the admitted parties and this coordinator, as a study file lists them."""
    opened = coordinators.Coordinator.open(folder)
    admitted = opened.admitted()
    if as_json:
        show.as_json(admitted)
        return
    for one in admitted:
        click.echo(f'\n[[parties]]\nname = "{one.party}"\nidentity = "{one.identity}"')
    click.echo(f'\n[coordinator]\nidentity = "{opened.identity.public}"')


@command(
    "syndic coordinator fill draft.toml --home federation --out study.toml",
    "syndic coordinator fill draft.toml --home federation --columns north=age,sex",
    of=coordinator,
)
@click.argument("draft_file", metavar="DRAFT", type=PATH)
@HOME
@click.option("--people", multiple=True, metavar="PARTY=NUMBER", help="Public number of a party's people.")
@click.option("--columns", multiple=True, metavar="PARTY=A,B", help="Columns that a party holds, if not all.")
@click.option("--out", "target", type=PATH, default=Path("study.toml"), help="The new study file.")
def fill(draft_file: Path, folder: Path, people: tuple[str, ...], columns: tuple[str, ...], target: Path) -> None:
    """Add the admitted parties and this coordinator to a study.

    DRAFT is a study file, with or without parties: those it names, or else all admitted ones, get their identities.
    """
    held = {name: one.split(",") for name, one in named(columns, "--columns", "A,B").items()}
    opened = coordinators.Coordinator.open(folder)
    text = opened.fill(text_of(draft_file), people=numbers(people), columns=held)
    study = Study.loads(text, draft_file.parent)
    study.check()
    with opened.audit.attempt(f"fill {study.name}", study=study.digest):
        write_new(target, text)
    click.echo(f"wrote {target}: {study.name}, {len(study.parties)} parties, digest {study.digest[:12]}")


@command("syndic coordinator remove north --home federation", of=coordinator)
@click.argument("party")
@HOME
def remove(party: str, folder: Path) -> None:
    """Remove a party; the server refuses its certificate from now on."""
    coordinators.Coordinator.open(folder).remove(party)
    click.echo(f"{party} is no longer admitted")


@command("syndic coordinator renew federation", of=coordinator)
@FOLDER
@DAYS
def renew(folder: Path, days: int) -> None:
    """Create a new key and certificate for the server.

    Restart the server afterwards. The parties need nothing new.
    """
    coordinators.Coordinator.open(folder, ask=_asked).renew(days=days)
    click.echo("the server has a new certificate; restart it")


@command(
    "syndic coordinator authority federation",
    "syndic coordinator authority federation --request",
    "syndic coordinator authority federation --chain chain.pem",
    of=coordinator,
)
@FOLDER
@click.option("--request", is_flag=True, help="Write a request that another certificate authority signs.")
@click.option("--chain", type=PATH, help="Install what it signed: the new certificate first, its root last.")
@click.option("--passphrase", is_flag=True, help=_PASSPHRASE)
@DAYS
def authority(folder: Path, request: bool, chain: Path | None, passphrase: bool, days: int) -> None:
    """Create an issuing authority, so that the root's key can be kept elsewhere.

    Parties need nothing new unless the root is another one, which is refused once a party is admitted.
    """
    opened = coordinators.Coordinator.open(folder, ask=_asked)
    if request:
        path = opened.authority.request(opened.federation.name, passphrase=_new(passphrase))
        click.echo(f"wrote {path}: have it signed as an authority (CA, path length 0), then install it with --chain")
        return
    if chain is None:
        opened.appoint(days=days, passphrase=_new(passphrase))
        click.echo("issuing authority installed; take authority/root.key away: only the next one needs it")
    else:
        opened.install(chain.read_bytes())
        click.echo(
            f"issuing authority installed, root fingerprint {certificates.fingerprint(opened.authority.certificate)}"
        )
    click.echo("now: syndic coordinator renew")


def _asked(what: str) -> str:
    return os.environ.get(PASSPHRASE) or str(click.prompt(f"Passphrase or PIN of {what}", hide_input=True))


def _new(wanted: bool) -> str:
    """Return a new passphrase if one is wanted."""
    if not wanted:
        return ""
    if PASSPHRASE in os.environ:
        if not os.environ[PASSPHRASE]:
            raise InputError(f"{PASSPHRASE} is empty: the new key would not be encrypted")
        return os.environ[PASSPHRASE]
    return str(click.prompt("New passphrase", hide_input=True, confirmation_prompt=True))


@command("syndic coordinator start federation", of=coordinator)
@FOLDER
def start(folder: Path) -> None:
    """Run the server in the foreground; stop it with Ctrl-C."""
    from syndic.runtime.flare.start import run_server  # noqa: PLC0415  # the engine takes seconds to import

    opened = coordinators.Coordinator.open(folder)
    with parties.lock(folder):
        parties.keep_inside(opened.workspace)
        click.echo(f"serving {opened.federation.name} at {opened.federation.host}:{opened.federation.port}")
        sys.exit(run_server(opened.workspace))


@click.group(cls=Listed, epilog=example("syndic party init clinic --name north"))
def party() -> None:
    """Set up a party folder and its connection to a coordinator."""


@command("syndic party init clinic --name north", of=party, name="init")
@FOLDER
@click.option("--name", required=True, help="The party's name in study files.")
@click.option("--renew", is_flag=True, help="Request a new certificate. The old one stays valid until then.")
@click.option("--source", type=PATH, help="The file with the rows: with --cap, also write FOLDER/party.toml.")
@click.option("--cap", metavar="EPSILON[,DELTA]", help="The most that all studies together may spend on a person.")
def party_init(folder: Path, name: str, renew: bool, source: Path | None, cap: str | None) -> None:
    """Create the party's keys, and write the request to send to the coordinator.

    FOLDER is the party folder. The private keys stay in FOLDER; FOLDER/request.json holds public keys only.
    """
    if (source is None) != (cap is None):
        raise InputError("--source and --cap are given together: party.toml names both")
    request = parties.prepare(folder, name=name, renew=renew)
    if source is not None and cap is not None:
        parties.write_owner(folder, name=name, source=source, cap=cap)
    key = certificates.read_request(request.certificate_request, name=name)
    click.echo(f"wrote {folder / 'request.json'}: send it to the coordinator, and read out to them by telephone")
    click.echo(f"key          {certificates.key_fingerprint(key)}")
    click.echo(f"identity     {PublicIdentity.read(request.identity).fingerprint}")


@command("syndic party accept approval-north.json --home clinic", of=party)
@click.argument("approval_file", metavar="APPROVAL", type=PATH)
@show.home("The party folder.")
def accept(approval_file: Path, folder: Path) -> None:
    """Install the coordinator's approval and this party's policy.

    Only an approval of the party's latest request is accepted.
    """
    approval = from_file(approval_file, Approval)
    parties.accept(folder, approval)
    root = certificates.read_certificate(approval.root.encode(), approval_file.name)
    click.echo(f"{approval.party} may connect to {approval.host}:{approval.port}")
    click.echo(f"root fingerprint {certificates.fingerprint(root)}: compare it with the coordinator by telephone")


@command("syndic join clinic", "syndic join clinic --approval approval-north.json --agree study.toml")
@FOLDER
@click.option("--approval", type=PATH, help="First accept this approval, as `syndic party accept` does.")
@click.option("--agree", "study_file", type=PATH, help="First decide about this study, as `syndic agree` does.")
@click.option("--yes", is_flag=True, help="Agree without being asked.")
@click.pass_context
def join(context: click.Context, folder: Path, approval: Path | None, study_file: Path | None, yes: bool) -> None:
    """Connect to the coordinator and answer agreed studies.

    Runs in the foreground; stop it with Ctrl-C. FOLDER is the party folder.
    """
    if approval is not None:
        context.invoke(accept, approval_file=approval, folder=folder)
    if study_file is not None:
        from syndic.cli.agree import agree  # noqa: PLC0415  # a site that only answers needs no forecasts

        study = Study.load(study_file)
        for one in studies(PartyFolder(folder=folder)) if yes else ():
            # a command that starts again by itself must not say yes after a no
            if one.run == study.digest and one.state in {"declined", "withdrawn"}:
                raise RefusedError(f"{study.name} is {one.state}: only `syndic agree` can change that")
        context.invoke(agree, study_file=study_file, folder=folder, yes=yes)
    _join(folder)


def _join(folder: Path) -> None:
    from syndic.runtime.flare.start import run_site  # noqa: PLC0415  # the engine takes seconds to import

    try:
        approval = parties.check_site(folder)
    except (PublicError, IntegrityError) as error:
        if (folder / "party.toml").is_file():
            PartyFolder(folder=folder).audit.refuse("join", why=str(error))
        raise
    proxy = parties.proxy_of(approval.host, os.environ)
    through = f" through the proxy of {proxy}" if proxy else ""
    with parties.lock(folder):
        parties.keep_inside(parties.workspace_of(folder))
        PartyFolder(folder=folder).audit.add("join", why=f"{approval.host}:{approval.port}{through}")
        click.echo(f"{approval.party} connects to {approval.host}:{approval.port}{through}")
        click.echo(f"if no line 'connected' follows within a minute: syndic doctor {folder}")
        sys.exit(run_site(parties.workspace_of(folder), approval.party))


@command("syndic run study.toml --home federation --out run")
@STUDY
@HOME
@click.option("--out", "target", type=PATH, default=Path("syndic-run"), help="Folder for the release.")
@click.option("--rehearsal", type=int, metavar="SEED", help="Run the rehearsal that was agreed to. It is not private.")
@click.option("--seconds", metavar="SECONDS", default=600.0, help="Time limit for each step of a party.")
@click.option("--patience", metavar="SECONDS", default=60.0, help="Time that a party may be disconnected.")
@click.option("--replies", type=PATH, help="File for all signed replies, to recompute the release from.")
@click.option("--serve", is_flag=True, help="Also run the server, until the study ends.")
@JSON
def run(study_file: Path, folder: Path, target: Path, serve: bool, as_json: bool, **options: Any) -> None:
    """Run a study with the connected parties.

    The same command continues a run that was interrupted.
    """
    study = Study.load(study_file)
    serving = coordinators.serving(coordinators.Coordinator.open(folder)) if serve else nullcontext()
    with serving, show.progress_bar(f"run {study.name}", shown=not as_json) as progress:
        release = run_study(study, folder=folder, progress=progress, **options)
        files = write_release(release, target)
    show_release(release, files, as_json=as_json)


@command("syndic doctor clinic", "syndic doctor clinic --study study.toml")
@FOLDER
@click.option("--study", "study_file", type=PATH, help="Also check whether this study could run.")
@JSON
def doctor(folder: Path, study_file: Path | None, as_json: bool) -> None:
    """Find what is wrong with a party's or a coordinator's setup.

    Tries what `join` uses, from the channel and its proxy to the columns of the source, and names the cure. Reads no
    row. Ends with status 1 if something is wrong.
    """
    study = None if study_file is None else Study.load(study_file)
    with show.progress_bar("check the setup", shown=not as_json):
        findings = examine(folder, study)
    if as_json:
        show.as_json(findings)
    else:
        for one in findings:
            click.echo(f"{one.state:<5}{one.what:<22}{one.found}")
            if one.advice:
                click.echo(f"{'':<5}{'':<22}-> {one.advice}")
    if any(one.state == "bad" for one in findings):
        sys.exit(1)
