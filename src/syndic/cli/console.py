"""`console`: a party's or the coordinator's pages, in a browser on the same machine."""

from pathlib import Path

import click

from syndic.cli.groups import example
from syndic.errors import MissingExtraError


@click.command(epilog=example("syndic console clinic", "syndic console federation --port 9000 --new-secret"))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen at. Other machines cannot reach the default.",
)
@click.option(
    "--port", metavar="PORT", type=click.IntRange(1, 65535), default=8765, show_default=True, help="Port to listen at."
)
@click.option("--new-secret", is_flag=True, help="Create and print a new login secret. The old one becomes invalid.")
def console(folder: Path, host: str, port: int, new_secret: bool) -> None:
    """Show studies, runs and releases in a browser.

    FOLDER is a party folder or a coordinator's folder. A party's pages also show its ledger.
    """
    try:
        from syndic.console.access import has_secret  # noqa: PLC0415
        from syndic.console.access import new_secret as make_secret  # noqa: PLC0415
        from syndic.console.serve import is_loopback, open_socket, role_of, serve  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name).partition(".")[0], "console") from None
    role = role_of(folder)
    if not is_loopback(host):
        click.echo("WARNING: other machines can connect to this address, and the connection is not encrypted", err=True)
    # a browser may look for this name at another address, where somebody else listens
    host = "127.0.0.1" if host == "localhost" else host
    # before the link is shown: whoever has the port already would be given the secret
    door = open_socket(host, port)
    place = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    if new_secret or not has_secret(folder):
        click.echo(f"open {place}/login#{make_secret(folder)}")
        click.echo("this link contains the login secret and is shown once; keep it like a password")
    else:
        click.echo(f"open {place}/login (with the secret printed at the first start; --new-secret creates another)")
    click.echo(f"serving the console of this {role}; stop it with Ctrl-C")
    serve(folder, door, host=host, port=port)
