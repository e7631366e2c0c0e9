"""Groups of commands whose help lists every command with its whole first sentence."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click


def sentence_of(command: click.Command) -> str:
    """Return the first paragraph of a command's help in one line."""
    return " ".join((command.help or "").strip().split("\n\n")[0].split())


def example(*lines: str) -> str:
    """Return the end of a command's help: one or more commands to type."""
    return "\b\n" + "\n".join(["Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)])


def command(*examples: str, name: str | None = None, of: Any = click) -> Callable[[Callable[..., None]], click.Command]:
    """Return the decorator that makes a function a command, alone or `of` a group, with commands to type."""
    found: Callable[[Callable[..., None]], click.Command] = of.command(name, epilog=example(*examples))
    return found


class Listed(click.Group):
    """A group that lists its commands in sections. Long sentences are wrapped, never cut off."""

    def sections(self, ctx: click.Context) -> Mapping[str, Sequence[str]]:
        """Return the names of the commands in each section."""
        return {"Commands": self.list_commands(ctx)}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section: the commands with their sentences, all in the same columns."""
        sections = {
            title: [(name, command) for name in names if (command := self.get_command(ctx, name)) is not None]
            for title, names in self.sections(ctx).items()
        }
        width = max((len(name) for commands in sections.values() for name, _ in commands), default=0)
        for title, commands in sections.items():
            if commands:
                with formatter.section(title):
                    formatter.write_dl([(name.ljust(width), sentence_of(command)) for name, command in commands])
