"""`console`: the owner's or the coordinator's pages, in a browser on the same machine."""

from pathlib import Path

import click

from syndic.errors import MissingExtraError


@click.command(epilog="\b\nExample: syndic console clinic")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen; other machines see it if changed."
)
@click.option("--port", type=click.IntRange(1, 65535), default=8765, show_default=True, help="Where to listen.")
@click.option("--new-secret", is_flag=True, help="Make the secret anew and print it; the old one ends.")
def console(folder: Path, host: str, port: int, new_secret: bool) -> None:
    """Show studies, ledger, runs and releases of a home or of a coordinator's folder in a browser."""
    try:
        from syndic.console.access import has_secret  # noqa: PLC0415
        from syndic.console.access import new_secret as make_secret  # noqa: PLC0415
        from syndic.console.serve import is_loopback, open_socket, role_of, serve  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name).partition(".")[0], "console") from None
    role = role_of(folder)
    if not is_loopback(host):
        click.echo("WARNING: other machines reach this address, and what is said there is not encrypted", err=True)
    # a browser may look for this name at another address, where somebody else listens
    host = "127.0.0.1" if host == "localhost" else host
    # before the link is shown: whoever has the port already would be given the secret
    door = open_socket(host, port)
    place = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    if new_secret or not has_secret(folder):
        click.echo(f"open {place}/login#{make_secret(folder)}")
        click.echo("the secret in this link is shown once; keep it like a password")
    else:
        click.echo(f"open {place}/login (with the secret that was printed once; --new-secret makes another)")
    click.echo(f"the console of this {role} is open; stop with Ctrl-C")
    serve(folder, door, host=host, port=port)
