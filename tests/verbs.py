"""The verbs of the command line, which are loaded when they are asked for, and their part of a page."""

import re
from collections.abc import Iterator

import click

from syndic.cli.main import GROUPS, cli


def verbs_of(group: click.Group) -> dict[str, click.Command]:
    """Return the commands of a group by name."""
    context = click.Context(group)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def leaves(group: click.Group, name: str) -> dict[str, click.Command]:
    """Return the commands of a group and of the groups in it, by what a person types."""
    found: dict[str, click.Command] = {}
    for word, command in verbs_of(group).items():
        path = f"{name} {word}"
        found |= leaves(command, path) if isinstance(command, click.Group) else {path: command}
    return found


def commands(title: str) -> dict[str, click.Command]:
    """Return the commands under one heading of `syndic --help`, by what a person types."""
    return {path: one for path, one in leaves(cli, "syndic").items() if path.split()[1] in GROUPS[title]}


def listed(title: str) -> Iterator[str]:
    """Yield a table of the commands under one heading: the arguments of each, and what it does."""
    yield from ("| command | what it does |", "|---|---|")
    for path, command in commands(title).items():
        context = click.Context(command, info_name=path)
        pieces = [piece.replace("|", "\\|") for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
        # what FOLDER and DIGEST are stands once, at the top of the page
        sentences = re.split(r"(?<=\.) ", " ".join((command.help or "").split()))
        told = " ".join(one for one in sentences if not one.startswith(("FOLDER is", "DIGEST is")))
        yield f"| `{' '.join([path, *pieces])}` | {told} |"
