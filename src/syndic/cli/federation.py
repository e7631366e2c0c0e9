"""`coordinator`, `party`, `join`, `run`, `doctor`: studies between organisations."""

import sys
from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.show import JSON, PATH
from syndic.cli.study import STUDY, show_release
from syndic.document import from_file, to_readable_json
from syndic.federation import certificate as certificates
from syndic.federation import coordinator as coordinators
from syndic.federation import party as parties
from syndic.federation.doctor import examine
from syndic.federation.requests import Approval, Request
from syndic.federation.run import run_federated
from syndic.kernel import PublicIdentity
from syndic.study import Study

FOLDER = click.argument("folder", type=PATH)
DAYS = click.option(
    "--days", type=click.IntRange(1), default=365, show_default=True, help="How long the certificate holds."
)
HOME = click.option("--home", "folder", required=True, type=PATH, help="The coordinator's folder.")


@click.group(epilog="\b\nExample: syndic coordinator init federation --name health --host study.example.org")
def coordinator() -> None:
    """Set up and run the server that studies go through."""


@coordinator.command("init")
@FOLDER
@click.option("--name", required=True, help="The federation's name: letters, digits, '-' and '_'.")
@click.option("--host", required=True, help="The name or address under which parties reach this machine.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=8002,
    show_default=True,
    help="The one port that parties connect to.",
)
@DAYS
def coordinator_init(folder: Path, name: str, host: str, port: int, days: int) -> None:
    """Make the federation's root, the server's key and its certificate."""
    made = coordinators.Coordinator.create(folder, name=name, host=host, port=port, days=days)
    root = certificates.read_certificate(made.root.read_bytes(), "root.crt")
    click.echo(f"made {folder}: parties connect to {host}:{port}")
    click.echo(f"root fingerprint {certificates.fingerprint(root)}")


@coordinator.command()
@click.argument("request_file", metavar="REQUEST", type=PATH)
@HOME
@click.option("--out", "target", type=PATH, help="Where the approval goes.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@DAYS
def approve(request_file: Path, folder: Path, target: Path | None, yes: bool, days: int) -> None:
    """Admit a party: sign its certificate and write the approval to send back."""
    opened, request = coordinators.Coordinator.open(folder), from_file(request_file, Request)
    key = certificates.read_request(request.certificate_request, name=request.party)
    click.echo(f"party        {request.party}")
    click.echo(f"key          {certificates.key_fingerprint(key)}")
    click.echo(f"identity     {PublicIdentity.read(request.identity).fingerprint}")
    if not yes:
        click.confirm("Did the party read out the same to you?", abort=True)
    approval = opened.approve(request, days=days)
    target = target or request_file.with_name(f"approval-{request.party}.json")
    target.write_bytes(to_readable_json(approval))
    click.echo(f"wrote {target}: send it back; {request.party} is on the list")


@coordinator.command("parties")
@HOME
@JSON
def list_parties(folder: Path, as_json: bool) -> None:
    """Print the admitted parties as they stand in a study file."""
    admitted = coordinators.Coordinator.open(folder).admitted()
    if as_json:
        show.as_json(admitted)
        return
    for one in admitted:
        click.echo(f'\n[[parties]]\nname = "{one.party}"\nidentity = "{one.identity}"')


@coordinator.command()
@click.argument("party")
@HOME
def remove(party: str, folder: Path) -> None:
    """Take a party off the list; its certificate is refused from now on."""
    coordinators.Coordinator.open(folder).remove(party)
    click.echo(f"{party} is off the list")


@coordinator.command()
@FOLDER
@DAYS
def renew(folder: Path, days: int) -> None:
    """Give the server a new key and certificate; start it again afterwards."""
    coordinators.Coordinator.open(folder).renew(days=days)
    click.echo("the server has a new certificate; start it again")


@coordinator.command()
@FOLDER
def start(folder: Path) -> None:
    """Run the server in the foreground."""
    from syndic.runtime.flare.start import run_server  # noqa: PLC0415  # the engine takes seconds to import

    opened = coordinators.Coordinator.open(folder)
    parties.keep_inside(opened.workspace)
    click.echo(f"serving {opened.federation.name} at {opened.federation.host}:{opened.federation.port}")
    sys.exit(run_server(opened.workspace))


@click.group(epilog="\b\nExample: syndic party init clinic --name north")
def party() -> None:
    """Set up a party's site."""


@party.command("init")
@FOLDER
@click.option("--name", required=True, help="The party's name, as it will stand in study files.")
@click.option("--renew", is_flag=True, help="Ask for a new certificate; the old one serves until then.")
def party_init(folder: Path, name: str, renew: bool) -> None:
    """Make the site's key and the party's identity, and write the request to send."""
    request = parties.prepare(folder, name=name, renew=renew)
    key = certificates.read_request(request.certificate_request, name=name)
    click.echo(f"wrote {folder / 'request.json'}: send it to the coordinator, and read out to them")
    click.echo(f"key          {certificates.key_fingerprint(key)}")
    click.echo(f"identity     {PublicIdentity.read(request.identity).fingerprint}")


@party.command()
@click.argument("approval_file", metavar="APPROVAL", type=PATH)
@click.option("--home", "folder", required=True, type=PATH, help="The party's folder.")
def accept(approval_file: Path, folder: Path) -> None:
    """Install the coordinator's approval, with the policy that this site keeps."""
    approval = from_file(approval_file, Approval)
    parties.accept(folder, approval)
    root = certificates.read_certificate(approval.root.encode(), approval_file.name)
    click.echo(f"{approval.party} may connect to {approval.host}:{approval.port}")
    click.echo(f"root fingerprint {certificates.fingerprint(root)}: let the coordinator read it out")


@click.command(epilog="\b\nExample: syndic join clinic")
@FOLDER
def join(folder: Path) -> None:
    """Run a party's site in the foreground; it answers the studies that were agreed to."""
    from syndic.runtime.flare.start import run_site  # noqa: PLC0415  # the engine takes seconds to import

    approval = parties.check_site(folder)
    parties.keep_inside(parties.workspace_of(folder))
    click.echo(f"{approval.party} connects to {approval.host}:{approval.port}")
    sys.exit(run_site(parties.workspace_of(folder), approval.party))


@click.command(epilog="\b\nExample: syndic run study.toml --home federation --out run")
@STUDY
@HOME
@click.option(
    "--out", "target", type=PATH, default=Path("syndic-run"), show_default=True, help="Where the release goes."
)
@click.option("--rehearsal", type=int, metavar="SEED", help="Run the rehearsal that was agreed to. It protects nobody.")
@click.option("--seconds", default=600.0, show_default=True, help="How long a party may take for one step.")
@click.option("--patience", default=60.0, show_default=True, help="How long a party may be disconnected.")
@JSON
def run(
    study_file: Path,
    folder: Path,
    target: Path,
    rehearsal: int | None,
    seconds: float,
    patience: float,
    as_json: bool,
) -> None:
    """Run a study with the connected parties; run it again to go on after an interruption."""
    study, opened = Study.load(study_file), coordinators.Coordinator.open(folder)
    with show.progress_bar(shown=not as_json) as progress:
        release = run_federated(study, opened, seed=rehearsal, progress=progress, seconds=seconds, patience=patience)
    show_release(release, target, as_json=as_json)


@click.command(epilog="\b\nExample: syndic doctor clinic --study study.toml")
@FOLDER
@click.option("--study", "study_file", type=PATH, help="Also: could this study run?")
@JSON
def doctor(folder: Path, study_file: Path | None, as_json: bool) -> None:
    """Name what is wrong: clock, certificate, key, policy, name, port, versions, agreements."""
    findings = examine(folder, None if study_file is None else Study.load(study_file))
    if as_json:
        show.as_json(findings)
    else:
        for one in findings:
            click.echo(f"{one.state:<5}{one.what:<22}{one.found}")
            if one.advice:
                click.echo(f"{'':<5}{'':<22}-> {one.advice}")
    if any(one.state == "bad" for one in findings):
        sys.exit(1)
