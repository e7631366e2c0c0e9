"""`syndic`: one verb per thing a person does. Errors say what, where and what to do, and set the exit status."""

import sys
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

import click

from syndic.errors import InputError, PublicError, SyndicError
from syndic.version import __version__

_EPILOG = """\b
syndic demo                          five minutes, three clinics, embedded data
syndic plan study.toml               what it would cost, reveal and need; reads no row
syndic simulate study.toml -s north=north.csv -s south=south.parquet --out run
syndic ledger show run/parties/north/ledger.sqlite

\b
Exit status: 0 done, 2 bad input, 3 over budget, 4 a party refused or failed,
5 a ledger is not what was written, 6 an optional library is missing, 130 interrupted.
"""


# a verb and the file it lies in
_VERBS = {
    "check": "study",
    "plan": "study",
    "advise": "advise",
    "simulate": "study",
    "identity": "agree",
    "receive": "requests",
    "agree": "agree",
    "decline": "requests",
    "withdraw": "agree",
    "studies": "agree",
    "coordinator": "federation",
    "party": "federation",
    "join": "federation",
    "run": "federation",
    "doctor": "federation",
    "console": "console",
    "evaluate": "evaluate",
    "json-schema": "study",
    "check-schema": "requests",
    "report": "report",
    "compare": "requests",
    "export": "report",
    "ledger": "ledger",
    "demo": "demo",
}


def _added() -> dict[str, EntryPoint]:
    """Return the verbs of other distributions that are installed, such as syndic-lab."""
    return {entry.name: entry for entry in entry_points(group="syndic.commands") if entry.name not in _VERBS}


class _Verbs(click.Group):
    """Loads a verb when it is asked for: `syndic plan` needs no console and no lab."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted([*_VERBS, *_added()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        found: click.Command
        if cmd_name not in _VERBS:
            if cmd_name not in (added := _added()):
                return None
            found = added[cmd_name].load()
            return found
        found = getattr(import_module(f"syndic.cli.{_VERBS[cmd_name]}"), cmd_name.replace("-", "_"))
        return found


@click.group(cls=_Verbs, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="syndic")
def cli() -> None:
    """Publish something together from tables that may not be pooled."""


def main() -> None:
    """Run the command line."""
    as_json = "--json" in sys.argv
    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo(
            "interrupted; what was spent is in the ledgers, and running again goes on from there",
            err=True,
        )
        sys.exit(130)
    except SyndicError as error:
        code = error.code if isinstance(error, PublicError) else "failed"
        _tell(code, str(error), as_json=as_json, errors=getattr(error, "errors", ()))
        sys.exit(error.exit_code)
    except OSError as error:
        # what a person named is not there, not theirs, or a file where a folder should be; or the disk is full
        _tell(InputError.code, f"{error.filename or 'a file'}: {error.strerror or error}", as_json=as_json)
        sys.exit(InputError.exit_code)


def _tell(code: str, text: str, *, as_json: bool, errors: tuple[str, ...] = ()) -> None:
    if as_json:
        from syndic.cli import show  # noqa: PLC0415  # most verbs end without an error

        each = {"errors": errors} if errors else {}
        show.as_json({"error": {"code": code, "text": text, **each}})
    else:
        click.echo(f"error: {text}", err=True)
