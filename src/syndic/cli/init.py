"""`init`: draft a study from the owners' files, and confirm a draft."""

import re
from pathlib import Path

import click

from syndic.cli import show
from syndic.cli.groups import command
from syndic.cli.show import PATH
from syndic.cli.study import named
from syndic.data.dictionary import read_dictionary, read_metadata
from syndic.errors import InputError, RefusedError
from syndic.study.draft import Draft, draft
from syndic.study.draft_text import Unconfirmed, confirm, read_value, unconfirmed
from syndic.study.study_folder import write_new


@command("syndic init north=north.csv south=south.csv", "syndic init --confirm study.draft.toml --out study.toml")
@click.argument("files", metavar="[PARTY=]FILE...", nargs=-1)
@click.option("--target", metavar="COLUMN", help="Column, such as a label, whose relations matter most.")
@click.option("--dictionary", type=PATH, help="Public data dictionary: CSV of name, kind, lower, upper, values, bins.")
@click.option("--metadata", type=PATH, help="Public metadata of SDV, or a domain of mbi: JSON.")
@click.option("--people", multiple=True, metavar="PARTY=NUMBER", help="Public number of a party's people.")
@click.option(
    "--confirm", "drafted", metavar="DRAFT", type=PATH, help="Confirm the values of a draft, column by column."
)
@click.option("--yes", is_flag=True, help="Confirm without questions that all values of a draft are public.")
@click.option("--out", type=PATH, help="File to write: study.draft.toml, or study.toml with --confirm.")
def init(
    files: tuple[str, ...],
    target: str | None,
    dictionary: Path | None,
    metadata: Path | None,
    people: tuple[str, ...],
    drafted: Path | None,
    yes: bool,
    out: Path | None,
) -> None:
    """Draft a study from data files, for their owner only.

    Each value that was read from rows is marked. It is private until it is confirmed from public knowledge. PARTY is
    the file's name unless given. Files are .csv, .parquet or .arrow.
    """
    if drafted is not None:
        if files:
            raise InputError("--confirm reads a draft and no FILE: leave out one of them")
        _confirm(drafted, out or Path("study.toml"), yes=yes)
        return
    if yes:
        raise InputError("--yes confirms a draft: first write one without it, then use --confirm DRAFT --yes")
    out = out or Path("study.draft.toml")
    _check_free(out)
    known = [*(read_dictionary(dictionary) if dictionary else ()), *(read_metadata(metadata) if metadata else ())]
    beside = out.parent if dictionary and dictionary.parent.resolve() == out.parent.resolve() else None
    with show.progress_bar("read the files", shown=True):
        parties = named(tuple(map(_with_party, files)), "FILE")
        made = draft(parties, target=target, declared=known, people=numbers(people), folder=beside)
    write_new(out, made.toml())
    _show(made)
    click.echo(f"wrote {out}: private. {_count(len(made.unconfirmed))} read from rows")
    click.echo(f"next: syndic init --confirm {out} --out study.toml")


def _with_party(file: str) -> str:
    """Return PARTY=FILE; a file without a party's name gives its own."""
    own = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(file).name.partition(".")[0])[:64]
    return file if "=" in file else f"{own}={file}"


def numbers(people: tuple[str, ...]) -> dict[str, int]:
    """Return the numbers of people that were given as PARTY=NUMBER, by party."""
    found = named(people, "--people", "NUMBER")
    for name, number in found.items():
        if not re.fullmatch("[0-9]{1,15}", number) or int(number) < 1:
            raise InputError(f"--people {name}={number}: write it as PARTY=NUMBER")
    return {name: int(number) for name, number in found.items()}


def text_of(path: Path) -> str:
    """Return the text of a draft, which is UTF-8."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise InputError(f"{path.name}: cannot be read: it is not UTF-8") from None


def _confirm(path: Path, out: Path, *, yes: bool) -> None:
    """Confirm the values of a draft, those of a column or party at once, and write the study."""
    _check_free(out)
    text = text_of(path)
    values = unconfirmed(text)
    chosen = {one: one.value for one in values}
    if not yes and values:
        click.echo("Press Enter if all values of a line are public knowledge, or type KEY = VALUE to replace one.")
        for place in dict.fromkeys(one.place for one in values):
            _ask(place, [one for one in values if one.place == place], chosen)
    write_new(out, confirm(text, chosen.__getitem__, out.parent))
    click.echo(f"wrote {out}: {_count(len(values))} confirmed")


def _ask(place: str, values: list[Unconfirmed], chosen: dict[Unconfirmed, str]) -> None:
    keys = {one.key: one for one in values}
    while True:
        said = ", ".join(f"{one.key} = {chosen[one]}" for one in values)
        try:
            answer = click.prompt(f"{place}: {said}", default="", show_default=False, prompt_suffix="\n> ")
        except click.Abort:
            raise RefusedError("not every value was confirmed; nothing was written") from None
        key, equals, value = (part.strip() for part in answer.partition("="))
        if not answer.strip():
            return
        if not equals or key not in keys:
            click.echo(f"type one of {', '.join(keys)}, then = and a value; or press Enter")
            continue
        try:
            chosen[keys[key]] = read_value(key, value)
        except InputError as error:
            click.echo(str(error))


def _show(made: Draft) -> None:
    show.as_table(
        "columns, for the owner only",
        ("column", "kind", "missing", "note"),
        (
            (
                one.name,
                one.kind or "left out",
                f"{one.missing / one.rows:.1%}" if one.rows else "",
                one.reason or one.remark or (f"{one.unlisted} rare values become other" if one.unlisted else ""),
            )
            for one in made.columns
        ),
    )
    for note in made.notes:
        show.wrapped("note: ", note)


def _check_free(out: Path) -> None:
    if out.suffix != ".toml":
        raise InputError(f"--out {out}: expected a .toml file")
    if out.exists():
        raise InputError(f"{out} exists: choose another file with --out, or remove it")


def _count(number: int) -> str:
    return "1 value" if number == 1 else f"{number} values"
