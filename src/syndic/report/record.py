"""Sections of a report: what was released, who saw what, the messages, what is not protected, how to reproduce it."""

from syndic.kernel import Exchange
from syndic.report.page import Grid, Section
from syndic.report.svg import number
from syndic.study.release import Release

COLUMN_HEAD = ("column", "kind", "values or bins")
_MOST_MESSAGES = 60
_SPLIT = {
    "horizontal": "people (every party has different people)",
    "vertical": "columns (every party has different columns, the same people)",
    "mixed": "people and columns (parties of a group have different columns of the same people)",
}
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
    listed = Grid("Columns; the list and its bounds were public before any row was read", COLUMN_HEAD, columns)
    facts = tuple((str(name), str(value)) for name, value in release.result.summary().items())
    # a table is described by its columns
    short = () if table is not None or not facts else (Grid("The result in short", ("what", "value"), facts),)
    return Section(title="What was released", paragraphs=tuple(what), tables=(*short, listed))


def roles_section(release: Release) -> Section:
    """Return who saw what, and whom to trust."""
    statement = release.statement
    rows = (("each party", "its own rows, and what the other parties see"), *statement.sees.items())
    return Section(
        title="Who saw what, and whom to trust",
        paragraphs=(
            "No message contains rows. This is everything that the method shows to others.",
            f"Trust: {statement.trust}. Data are split by {_SPLIT[statement.partition]}.",
        ),
        tables=(Grid("Roles and what they saw", ("role", "saw"), rows),),
    )


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
        head = ("step", "party", "round", "reveals", "bytes asked", "bytes replied", "digest of the reply")
        return Grid("Transcript", head, tuple(map(_message, transcript)))
    sizes: dict[tuple[str, str, str], list[int]] = {}
    for one in transcript:
        sizes.setdefault((one.step, one.party, one.reveals), []).append(one.reply_bytes)
    return Grid(
        "Transcript, by step and party; transcript.json has every message",
        ("step", "party", "reveals", "replies", "bytes replied"),
        tuple((*key, number(len(each)), number(sum(each))) for key, each in sizes.items()),
    )


def _message(one: Exchange) -> tuple[str, ...]:
    sizes = number(one.request_bytes), number(one.reply_bytes)
    return one.step, one.party, str(one.round), one.reveals, *sizes, one.reply_sha256[:12]


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
    rows = (
        ("study", statement.study),
        ("edition", str(statement.edition)),
        ("digest of the study", statement.digest),
        ("version of Syndic", statement.syndic),
    )
    return Section(
        title="How to reproduce",
        paragraphs=(
            "The study file fixes everything but the rows and the noise. Every message carried its digest. Running it "
            "again costs again, unless in the same folder, which has the stored answers. New noise gives another table "
            "with the same guarantee.",
        ),
        tables=(Grid("Fingerprints", ("what", "value"), rows),),
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
