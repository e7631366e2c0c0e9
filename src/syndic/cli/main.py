"""`syndic`: one verb per thing a person does. Errors say what, where and what to do, and set the exit status."""

import sys

import click

from syndic.cli import (
    advise,
    agree,
    audit,
    bench,
    console,
    demo,
    deploy,
    evaluate,
    export,
    ledger,
    office,
    report,
    reproduce,
    study,
)
from syndic.errors import PublicError, SyndicError
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


@click.group(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="syndic")
def cli() -> None:
    """Publish something together from tables that may not be pooled."""


for command in (
    study.check,
    study.plan,
    advise.advise,
    study.simulate,
    agree.identity,
    office.receive,
    agree.agree,
    office.decline,
    agree.withdraw,
    agree.studies,
    deploy.coordinator,
    deploy.party,
    deploy.join,
    deploy.run,
    deploy.doctor,
    console.console,
    evaluate.evaluate,
    study.json_schema,
    office.check_schema,
    report.report,
    office.compare,
    export.export,
    ledger.ledger,
    demo.demo,
    bench.bench,
    audit.audit,
    reproduce.reproduce,
):
    cli.add_command(command)


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
        if as_json:
            from syndic.cli.show import as_json as show_json  # noqa: PLC0415

            code = error.code if isinstance(error, PublicError) else "failed"
            show_json({"error": {"code": code, "text": str(error)}})
        else:
            click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
