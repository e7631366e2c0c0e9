"""`console`, `user`: a party's or the coordinator's pages in a browser, and who may sign in to them."""

from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.groups import Listed, command, example
from syndic.cli.show import FOLDER, JSON
from syndic.console import users
from syndic.console.access import Proxy, role_of
from syndic.console.users import UserRole
from syndic.errors import MissingExtraError

HOME = show.home("The party folder or the coordinator's folder.")


@command("syndic console clinic", "syndic console federation --port 9000 --new-secret")
@FOLDER
@click.option("--host", default="127.0.0.1", help="Address to listen at. Other machines cannot reach the default.")
@click.option("--port", metavar="PORT", type=click.IntRange(1, 65535), default=8765, help="Port to listen at.")
@click.option("--new-secret", is_flag=True, help="Create and print a new token of your account; the old one ends.")
@click.option("--proxy", metavar="ADDRESS", help="Address of a reverse proxy that signs people in (OIDC).")
@click.option("--proxy-header", default="X-Forwarded-User", help="Its header with the user's name.")
@click.option("--url", help="Address in browsers, if --proxy has another: https://console.example.org")
def console(
    folder: Path, host: str, port: int, new_secret: bool, proxy: str | None, proxy_header: str, url: str | None
) -> None:
    """Show studies, runs and releases in a browser.

    FOLDER is a party folder or a coordinator's folder. The first start makes your account an administrator and prints
    a link to sign in with.
    """
    try:
        from syndic.console.serve import is_loopback, open_socket, serve  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name).partition(".")[0], "console") from None
    role = role_of(folder)
    front = Proxy(address=proxy or "", header=proxy_header, url=url or "") if proxy or url else None
    if front is None and not is_loopback(host):
        click.echo("WARNING: other machines can connect to this address, and the connection is not encrypted", err=True)
    if front is not None and is_loopback(front.address):
        click.echo("WARNING: every account of this machine can name a user as the proxy does", err=True)
    # a browser may look for this name at another address, where somebody else listens
    host = "127.0.0.1" if host == "localhost" else host
    # before the link is shown: whoever has the port already would be given the secret
    listener = open_socket(host, port)
    place = url or (f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
    if new_secret or not users.users(folder):
        click.echo(f"open {place}/login#{users.first_administrator(folder)}")
        click.echo("this link contains your login token and is shown once; keep it like a password")
    else:
        click.echo(f"open {place}/login (--new-secret creates a new token of your account)")
    click.echo(f"serving the console of this {role}; stop it with Ctrl-C")
    serve(folder, listener, host=host, port=port, proxy=front)


@click.group(cls=Listed, epilog=example("syndic user add maria --home clinic --role owner"))
def user() -> None:
    """Manage the users of a console: readers, owners and administrators."""


@command(
    "syndic user add maria --home clinic --role owner",
    "syndic user add backup --home clinic --role reader --sign-in token",
    of=user,
)
@click.argument("name")
@HOME
@click.option("--role", type=click.Choice(users.ROLES), required=True, help="What the user may do.")
@click.option(
    "--sign-in",
    type=click.Choice(("password", "token", "proxy")),
    default="password",
    help="A typed password, a token for programs and links, or the reverse proxy.",
)
def add(name: str, folder: Path, role: UserRole, sign_in: str) -> None:
    """Add a user of the console, or replace the one of this name.

    Owners decide and readers look on; administrators also manage users. The first user is an administrator.
    """
    role_of(folder)
    if sign_in == "token":
        made, token = users.with_token(name, role)
        users.put(folder, made)
        click.echo(f"{name} signs in with this token, shown once: {token}")
        return
    typed = click.prompt("Password", hide_input=True, confirmation_prompt=True) if sign_in == "password" else ""
    users.put(folder, users.with_password(name, role, typed) if typed else users.User(name=name, role=role))
    click.echo(f"{name} is a user with the role {role}")


@command("syndic user list --home clinic", of=user, name="list")
@HOME
@JSON
def list_users(folder: Path, as_json: bool) -> None:
    """List the users of a console, their roles and how they sign in."""
    found = [{"name": one.name, "role": one.role, "signs in with": one.signs_in} for one in users.users(folder)]
    if as_json:
        show.as_json(found)
        return
    show.as_table(str(folder), ("name", "role", "signs in with"), (tuple(one.values()) for one in found))


@command("syndic user remove maria --home clinic", of=user, name="remove")
@click.argument("name")
@HOME
def remove_user(name: str, folder: Path) -> None:
    """Remove a user of a console; the user's sessions end."""
    users.remove(folder, name)
    click.echo(f"{name} is no longer a user")
