"""`syndic`: one verb for each thing that a person does, in groups by who types it. Errors set the exit status."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Final

import click

from syndic.cli.groups import Listed, example
from syndic.errors import InputError, PublicError, SyndicError
from syndic.version import __version__

_EPILOG: Final = (
    example(
        "syndic demo",
        "syndic plan study.toml",
        "syndic simulate study.toml -s north=north.csv -s south=south.csv --out run",
        "syndic ledger show run/parties/north/ledger.sqlite",
    )
    + """

\b
Exit status:
  0 done, 2 bad input, 3 over budget, 4 a party refused or failed,
  5 a ledger was changed or damaged, 6 an optional library is missing,
  130 interrupted
"""
)

# who types a verb, and the file that the verb is in
GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Try": {"demo": "demo", "simulate": "study"},
    "Write a study": {"init": "init", "plan": "study", "advise": "study", "json-schema": "study"},
    "Data owner": {
        "identity": "agree",
        "party": "federation",
        "receive": "agree",
        "studies": "agree",
        "agree": "agree",
        "decline": "agree",
        "withdraw": "agree",
        "join": "federation",
        "ledger": "ledger",
        "log": "ledger",
        "doctor": "federation",
        "console": "console",
        "user": "console",
    },
    "Coordinator": {"coordinator": "federation", "run": "federation"},
    "Read a release": {
        "report": "release",
        "interval": "release",
        "evaluate": "release",
        "compare": "release",
        "export": "release",
        "recompute": "release",
    },
}
LAB: Final = "Lab"
_CHARGE: Final = frozenset({"demo", "simulate", "join", "run"})
_CONTINUE: Final = " Charges stay in the ledgers. Type the same command again to continue a run."
_FILES: Final = {verb: file for verbs in GROUPS.values() for verb, file in verbs.items()}


def _added() -> dict[str, EntryPoint]:
    """Return the verbs of other installed distributions, such as syndic-lab."""
    return {entry.name: entry for entry in entry_points(group="syndic.commands") if entry.name not in _FILES}


class _Verbs(Listed):
    """Loads a verb when it is asked for: `syndic plan` imports neither the console nor the lab."""

    def sections(self, ctx: click.Context) -> Mapping[str, Sequence[str]]:  # noqa: ARG002
        """Return the verbs by who types them; those of other distributions are the lab's."""
        return {**{title: tuple(verbs) for title, verbs in GROUPS.items()}, LAB: sorted(_added())}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all verbs, group by group."""
        return [name for names in self.sections(ctx).values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a verb's file, or its distribution, and return the verb."""
        found: click.Command
        if cmd_name not in _FILES:
            if cmd_name not in (added := _added()):
                return None
            found = added[cmd_name].load()
            return found
        found = getattr(import_module(f"syndic.cli.{_FILES[cmd_name]}"), cmd_name.replace("-", "_"))
        return found


@click.group(cls=_Verbs, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="syndic")
def cli() -> None:
    """Publish a joint result from tables that must not be pooled.

    `syndic COMMAND --help` describes a command and gives an example.
    """


def main() -> None:
    """Run the command line."""
    as_json = "--json" in sys.argv
    try:
        cli.main(prog_name="syndic", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        charges = not _CHARGE.isdisjoint(sys.argv[1:2])
        click.echo(f"interrupted.{_CONTINUE if charges else ''}", err=True)
        sys.exit(130)
    except SyndicError as error:
        code = error.code if isinstance(error, PublicError) else "failed"
        _tell(code, str(error), as_json=as_json, errors=getattr(error, "errors", ()))
        sys.exit(error.exit_code)
    except OSError as error:
        # a path is missing, not readable, or a file where a folder should be; or the disk is full
        _tell(InputError.code, f"{error.filename or 'a file'}: {error.strerror or error}", as_json=as_json)
        sys.exit(InputError.exit_code)


def _tell(code: str, text: str, *, as_json: bool, errors: tuple[str, ...] = ()) -> None:
    if as_json:
        from syndic.cli import show  # noqa: PLC0415  # most verbs end without an error

        each = {"errors": errors} if errors else {}
        show.as_json({"error": {"code": code, "text": text, **each}})
    else:
        click.echo(f"error: {text}", err=True)
