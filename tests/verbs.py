"""The verbs of the command line, which are loaded when they are asked for, and their part of a page."""

from collections.abc import Iterator

import click

from syndic.cli.main import cli


def verbs_of(group: click.Group) -> dict[str, click.Command]:
    """Return the commands of a group by name."""
    context = click.Context(group)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def described(verb: str) -> Iterator[str]:
    """Yield what a page says of a verb such as `syndic plan`: what it does, its usage, a line for each option."""
    command: click.Command = cli
    for word in verb.split()[1:]:
        assert isinstance(command, click.Group), verb
        command = verbs_of(command)[word]
    context = click.Context(command, info_name=verb)
    yield " ".join((command.help or "").split())
    yield from ("", f"`{' '.join([verb, *_usage(command, context)])}`")
    options = [option for option in command.params if isinstance(option, click.Option) and option.name != "as_json"]
    for place, option in enumerate(options):
        names, text = option.get_help_record(context) or ("", "")
        yield from [""] if place == 0 else []
        yield f"- `{names}`: {' '.join(text.split())}"


def _usage(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the arguments, and whether there are options and JSON."""
    yield from (piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]")
    if any(isinstance(one, click.Option) and one.name != "as_json" for one in command.params):
        yield "[OPTIONS]"
    if any(one.name == "as_json" for one in command.params):
        yield "[--json]"
