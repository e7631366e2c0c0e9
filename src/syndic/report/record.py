"""Sections of a report: what was released, who saw what, the messages, what is not protected, how to reproduce it."""

from collections import Counter

from syndic.kernel import Exchange
from syndic.report.page import Grid, Section
from syndic.report.svg import number
from syndic.study.release import Release

_MOST_MESSAGES = 60
_REVEALS = {
    "public": "nothing of any row",
    "noisy": "a noisy result, charged to the party's ledger before the noise was drawn",
    "masked": "numbers that look uniformly random without the other shares",
    "sealed": "a message encrypted for another party",
}


def released_section(release: Release) -> Section:
    """Return what was released, from which parties, about which columns."""
    statement, study = release.statement, release.study
    table = release.known_table
    names = ", ".join(party.name for party in study.parties)
    what = [f"Parties: {names}. Method: {statement.method} ({statement.paper})."]
    if study.purpose:
        what.append(f"Purpose: {study.purpose}.")
    if table is not None:
        what.append(
            f"A synthetic table of {number(len(table))} rows and {len(table.names)} columns. Its rows are drawn from "
            "noisy numbers; none is copied from a party."
        )
        extra = [name for name in table.names if name not in study.schema.names]
        if extra:
            what.append(f"Columns that the method added: {', '.join(extra)}.")
    columns = tuple(
        (column.name, str(type(column).__struct_config__.tag), number(column.size)) for column in study.schema.columns
    )
    return Section(
        title="What was released",
        paragraphs=tuple(what),
        tables=(
            *_in_short(release),
            Grid(
                caption="Columns; the list and its bounds were public before any row was read",
                head=("column", "kind", "values or bins"),
                rows=columns,
                numbers=(2,),
            ),
        ),
    )


def _in_short(release: Release) -> tuple[Grid, ...]:
    """Return the summary of a result that is not a table."""
    facts = tuple((str(name), str(value)) for name, value in release.result.summary().items())
    if release.known_table is not None or not facts:
        return ()
    return (Grid(caption="The result in short", head=("what", "value"), rows=facts),)


def roles_section(release: Release) -> Section:
    """Return who saw what, and whom to trust."""
    statement = release.statement
    return Section(
        title="Who saw what, and whom to trust",
        paragraphs=(
            "No message contains rows. This is everything that the method shows to others.",
            f"Trust: {statement.trust}. Data are split by {_split(statement.partition)}.",
        ),
        tables=(
            Grid(
                caption="Roles and what they saw",
                head=("role", "saw"),
                rows=(
                    ("each party", "its own rows, and what the other parties see"),
                    *((role, seen) for role, seen in statement.sees.items()),
                ),
            ),
        ),
    )


def _split(partition: str) -> str:
    return {
        "horizontal": "people (every party has different people)",
        "vertical": "columns (every party has different columns, the same people)",
        "mixed": "people and columns (parties of a group have different columns of the same people)",
    }.get(partition, partition)


def messages_section(release: Release) -> Section:
    """Return every message of the transcript, or sums by step if there are many."""
    steps = release.study.steps
    asked = dict.fromkeys(exchange.step for exchange in release.transcript)
    meanings = [f"{name}: {steps[name].means}" for name in asked if name in steps]
    kinds = dict.fromkeys(exchange.reveals for exchange in release.transcript)
    return Section(
        title="Messages",
        paragraphs=(
            f"The parties were asked {len(release.transcript)} times. These are all the replies that left them, with "
            "their size and digest. A party can find each reply in its own records by the digest.",
        ),
        points=(*meanings, *(f'"{kind}" means: {_REVEALS.get(kind, kind)}.' for kind in kinds)),
        tables=(_messages(release.transcript),),
    )


def _messages(transcript: tuple[Exchange, ...]) -> Grid:
    if len(transcript) <= _MOST_MESSAGES:
        return Grid(
            caption="Transcript",
            head=("step", "party", "round", "reveals", "bytes asked", "bytes replied", "digest of the reply"),
            rows=tuple(
                (
                    one.step,
                    one.party,
                    str(one.round),
                    one.reveals,
                    number(one.request_bytes),
                    number(one.reply_bytes),
                    one.reply_sha256[:12],
                )
                for one in transcript
            ),
            numbers=(2, 4, 5),
        )
    count: Counter[tuple[str, str, str]] = Counter()
    size: Counter[tuple[str, str, str]] = Counter()
    for one in transcript:
        count[one.step, one.party, one.reveals] += 1
        size[one.step, one.party, one.reveals] += one.reply_bytes
    return Grid(
        caption="Transcript, by step and party; transcript.json has every message",
        head=("step", "party", "reveals", "replies", "bytes replied"),
        rows=tuple((*key, number(count[key]), number(size[key])) for key in count),
        numbers=(3, 4),
    )


def unprotected_section(release: Release) -> Section:
    """Return what is not protected."""
    return Section(
        title="What is not protected",
        paragraphs=("The guarantee does not cover:",),
        points=tuple(sentence(text) for text in release.statement.not_protected),
    )


def assumptions_section(release: Release) -> Section:
    """Return the assumptions of the guarantee."""
    unit = release.statement.unit
    rows = "one row" if unit.rows == 1 else f"{unit.rows} rows"
    places = "one of the parties" if unit.parties == 1 else f"{unit.parties} of the parties"
    assumed = (
        f"A person has at most {rows} at a party and is at no more than {places}.",
        "The columns, their bounds and their lists were written by people, not computed from the rows.",
        "Each party runs the software unchanged, and nobody can predict its randomness.",
        "Whoever runs a party can see its rows. If one machine ran all of them (syndic simulate), that is whoever "
        "controls this machine.",
        "Every release about the same people is charged to the same ledger: costs add up.",
    )
    return Section(title="What is assumed", paragraphs=("The guarantee holds if:",), points=assumed)


def reproduce_section(release: Release) -> Section:
    """Return what is needed to run the study again and to check this page."""
    statement = release.statement
    sources = " ".join(f"-s {party.name}=FILE" for party in release.study.parties)
    return Section(
        title="How to reproduce",
        paragraphs=(
            "The study file fixes everything but the rows and the noise. Every message carried its digest. Running it "
            "again costs again, unless in the same folder, which has the stored answers. New noise gives another table "
            "with the same guarantee.",
        ),
        tables=(
            Grid(
                caption="Fingerprints",
                head=("what", "value"),
                rows=(
                    ("study", statement.study),
                    ("edition", str(statement.edition)),
                    ("digest of the study", statement.digest),
                    ("version of Syndic", statement.syndic),
                ),
            ),
        ),
        commands=(
            f"pip install syndic=={statement.syndic}",
            "syndic plan study.json",
            f"syndic simulate study.json {sources} --out again",
            "syndic report again",
        ),
    )


def sentence(text: str) -> str:
    """Return the text with a capital letter and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
