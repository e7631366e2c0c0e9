"""Diagrams of the documentation, written by `make pages`: who sends what to whom, for each method, and an overview.

A method's diagram is made from the study on its page: its parties, its steps and what each reveals, and what the plan
says anyone with the release sees. No colour carries a meaning alone: each kind of message has its own line and name.
"""

import textwrap
from collections.abc import Collection, Iterator, Sequence

import msgspec

from syndic.kernel import Member
from syndic.kernel.step import Step
from syndic.report.svg import STYLE, box, element, escape, label, line
from syndic.study import Study

_STYLE = """
.figure .card{fill:var(--paper);stroke:var(--grid)}.figure .body{fill:var(--grid);fill-opacity:.35;stroke:var(--soft)}
.figure .edge{fill:none;stroke:var(--soft)}.figure .small{font-size:11px}
.figure .big{font-size:14px;font-weight:600}.figure .code{font:600 12px ui-monospace,"Liberation Mono",monospace}
.figure .kind{fill:currentColor;font-weight:600}
.figure .way{fill:none;stroke:currentColor;stroke-width:2}.figure .tip{fill:currentColor}
.figure .asked{stroke-width:1.2}.figure .ink{color:var(--ink)}
"""
# what a reply gives away: its colour, its dashes, and what it means
_KINDS = {
    "public": ("tint4", "2 3", "nothing of any row"),
    "noisy": ("tint1", "", "differentially private, charged here"),
    "masked": ("tint0", "7 4", "looks uniform; only sums open"),
    "sealed": ("tint2", "9 3 2 3", "for another party, passed on unread"),
}
_ASKED = "tint3"
_WIDTH = 800.0
_PARTY, _FROM, _TO, _MIDDLE, _RIGHT = 24.0, 176.0, 512.0, 98.0, 640.0
_ROOM = _FROM - _PARTY - 32  # of a party's texts


def diagram(name: str, study: Study, without: Collection[str] = ()) -> str:
    """Return the picture of a method, parties left, coordinator in the middle, release right; some steps left out."""
    steps = [step for key, step in study.steps.items() if key not in without]
    sees = study.plan.disclosure.sees
    servers = next((role for role in sees if role.startswith("servers ")), "")
    released = sees["anyone with the release"]
    drawn: list[str] = []
    y = 62.0
    for step in steps:
        y = _row(drawn, step, y)
    bottom = max(
        y,
        60.0 + sum(40 + 14 * len(_held(party)) for party in study.parties[:4]),
        62.0 + 16 * len(_lines(released, 112)) + 30,
    )
    drawn += _parties(study.parties, servers, bottom)
    drawn += _column("coordinator", ["sees no row"], _TO, _MIDDLE, bottom)
    drawn += _released(released, bottom)
    kinds = list(dict.fromkeys(step.reveals for step in steps))
    legend, height = _legend(kinds, bottom + 28, asks=any(_carries(step.takes) for step in steps))
    title = f"{name}: who sends what to whom"
    said = [f"{step.name} ({_kind(step)}): {step.means}" for step in steps]
    return _picture(title, " ".join([*said, f"Released: {released}."]), [*drawn, *legend], height)


def _carries(message: type[msgspec.Struct]) -> bool:
    return bool(msgspec.structs.fields(message))


def _kind(step: Step) -> str:
    return step.reveals if _carries(step.returns) else "sends nothing"


def _row(drawn: list[str], step: Step, y: float) -> float:
    """Draw one step from `y` on, and return where the next begins."""
    drawn.append(label(step.name, _FROM + 10, y, kind="code"))
    tint, dashes, _ = _KINDS[step.reveals if _carries(step.returns) else "public"]
    drawn.append(element("g", label(_kind(step), _TO - 10, y, anchor="end", kind="kind"), class_=tint))
    for text in _lines(step.means, _TO - _FROM - 20):
        y += 14
        drawn.append(label(text, _FROM + 10, y, kind="soft small"))
    y += 10
    if _carries(step.takes):
        drawn.append(_arrow([(_TO - 2, y), (_FROM + 4, y)], _ASKED, "1 3", thin=True))
        y += 8
    if not _carries(step.returns):
        drawn.append(element("g", element("circle", cx=_FROM + 2, cy=y, r=4.0, class_="tip"), class_=tint))
    elif step.reveals == "sealed":
        turn = [(_FROM, y), (_TO - 16, y), (_TO - 16, y + 9), (_FROM + 4, y + 9)]
        drawn.append(_arrow(turn, tint, dashes))
        y += 9
    else:
        drawn.append(_arrow([(_FROM, y), (_TO - 4, y)], tint, dashes))
    return y + 26


def _arrow(places: list[tuple[float, float]], tint: str, dashes: str, *, thin: bool = False) -> str:
    """Return a line along the places with a tip at its end."""
    (before, _), (x, y) = places[-2:]
    back = 9.0 if before < x else -9.0
    ends = [*places[:-1], (x - back, y)]
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in ends)
    style: dict[str, str | float] = {"stroke_dasharray": dashes} if dashes else {}
    way = element("polyline", "", points=points, class_="way asked" if thin else "way", **style)
    half = 3.5 if thin else 5.0
    tip = f"{x:.1f},{y:.1f} {x - back:.1f},{y - half:.1f} {x - back:.1f},{y + half:.1f}"
    return element("g", way + element("polygon", "", points=tip, class_="tip"), class_=tint)


def _held(party: Member) -> list[str]:
    held = ", ".join(party.columns) if party.columns is not None else "all columns"
    return [*_lines(held, _ROOM), "rows stay here"]


def _column(title: str, texts: list[str], x: float, width: float, bottom: float) -> Iterator[str]:
    yield box(x, 24, width, bottom - 24, "body")
    yield label(title, x + width / 2, 44, anchor="middle", kind="strong")
    for place, text in enumerate(texts):
        yield label(text, x + width / 2, 62 + 15 * place, anchor="middle", kind="soft small")


def _parties(parties: tuple[Member, ...], servers: str, bottom: float) -> Iterator[str]:
    """Yield a frame with each party and the columns it holds; beyond four the last one stands for the rest."""
    yield from _column("parties", [], _PARTY, _FROM - _PARTY, bottom)
    shown = parties if len(parties) <= 4 else parties[:4]
    top = 56.0
    for place, party in enumerate(shown):
        rest = place == 3 and len(parties) > 4
        lines = ["rows stay here"] if rest else _held(party)
        height = 32.0 + 14 * len(lines)
        yield box(_PARTY + 10, top, _FROM - _PARTY - 20, height, "card")
        name = f"{len(parties) - 3} more" if rest else party.name
        name += ", a server" if party.name in servers.split() else ""
        yield label(name, _PARTY + 18, top + 19, kind="strong", room=_ROOM)
        for number, text in enumerate(lines):
            yield label(text, _PARTY + 18, top + 35 + 14 * number, kind="soft small")
        top += height + 8


def _released(text: str, bottom: float) -> Iterator[str]:
    lines = _lines(text, _WIDTH - 24 - _RIGHT - 24)
    height = 30 + 14.0 * len(lines)
    top = (24 + bottom - height) / 2
    middle = top + height / 2
    yield box(_RIGHT, top, _WIDTH - 24 - _RIGHT, height, "body")
    yield label("release", _RIGHT + 10, top + 19, kind="strong")
    for number, one in enumerate(lines):
        yield label(one, _RIGHT + 10, top + 35 + 14 * number, kind="soft small")
    yield _arrow([(_TO + _MIDDLE, middle), (_RIGHT - 2, middle)], "ink", "")


def _legend(kinds: Sequence[str], y: float, *, asks: bool) -> tuple[list[str], float]:
    """Return what each kind of line means, two to a row, and where they end."""
    entries = [(_KINDS[kind][:2], kind, _KINDS[kind][2]) for kind in kinds]
    if asks:
        entries.append(((_ASKED, "1 3"), "request", "questions, public keys, others' sealed messages"))
    drawn = []
    for place, ((tint, dashes), name, meaning) in enumerate(entries):
        x, row = _PARTY + (place % 2) * 345, y + 20 * (place // 2)
        thin = name == "request"
        ends = [(x + 34, row - 4), (x, row - 4)] if thin else [(x, row - 4), (x + 34, row - 4)]
        drawn.append(_arrow(ends, tint, dashes, thin=thin))
        drawn.append(element("g", label(name, x + 42, row, kind="kind"), class_=tint))
        drawn.append(label(meaning, x + 104, row, kind="soft"))
    return drawn, y + 20 * ((len(entries) - 1) // 2) + 16


def _lines(text: str, room: float) -> list[str]:
    """Return a text of small letters in lines that fit."""
    return textwrap.wrap(text, max(8, int(room / 5.8)))


def _picture(title: str, description: str, drawn: list[str], height: float, width: float = _WIDTH) -> str:
    content = [
        element("title", escape(title)),
        element("desc", escape(description)),
        element("style", STYLE + _STYLE),
        box(0.5, 0.5, width - 1, height - 1, "card"),
        *drawn,
    ]
    size: dict[str, str | float] = {"width": width, "height": height, "view_box": f"0 0 {width:.0f} {height:.0f}"}
    return (
        element("svg", "\n".join(content), xmlns="http://www.w3.org/2000/svg", **size, class_="figure", role="img")
        + "\n"
    )


_OWNERS = ("clinic north", "clinic south", "clinic east")


def overview() -> str:
    """Return the picture of the README: three organisations, and what leaves each of them."""
    drawn: list[str] = []
    height = 372.0
    for place, name in enumerate(_OWNERS):
        top = 24.0 + place * 110
        drawn += _owner(name, top)
        end = 184.0 + (place - 1) * 40
        drawn.append(_arrow([(250, top + 50), (404, end)], "tint0", ""))
    drawn.append(box(272, 163, 108, 42, "card"))
    drawn += [
        label("noisy or", 326, 180, anchor="middle", kind="strong"),
        label("masked counts", 326, 197, anchor="middle", kind="strong"),
    ]
    drawn += _owned_by_nobody()
    said = (
        "Three clinics each hold a table of people. The rows stay with them, and each keeps its own ledger of what was "
        "spent. Only noisy or masked counts leave. A coordinator combines them and publishes a synthetic table, a "
        "model or an estimate."
    )
    return _picture("Three organisations, and what leaves each of them", said, drawn, height, 860)


def _owner(name: str, top: float) -> Iterator[str]:
    yield box(24, top, 226, 100, "body")
    yield label(name, 38, top + 22, kind="big")
    for row in range(5):
        yield line(38, top + 34 + row * 13, 106, top + 34 + row * 13, "edge")
    for x in (38, 60, 83, 106):
        yield line(x, top + 34, x, top + 86, "edge")
    yield label("rows stay here", 120, top + 52)
    yield box(120, top + 66, 14, 18, "edge")
    for y in (71, 75, 79):
        yield line(123, top + y, 131, top + y, "edge")
    yield label("its own ledger", 142, top + 80)


def _owned_by_nobody() -> Iterator[str]:
    """Yield the coordinator and the release."""
    yield box(408, 110, 150, 148, "body")
    yield label("coordinator", 483, 148, anchor="middle", kind="big")
    for number, text in enumerate(("adds up, fits, draws;", "sees no row and", "no party's exact count")):
        yield label(text, 483, 176 + 18 * number, anchor="middle", kind="soft")
    yield _arrow([(558, 184), (634, 184)], "ink", "")
    yield box(638, 90, 198, 188, "body")
    yield label("release, for anyone", 652, 118, kind="big")
    for number, (what, why) in enumerate(
        (
            ("synthetic table", "rows of no real person"),
            ("model", "regression, classifier"),
            ("estimate", "with its interval"),
        )
    ):
        yield label(what, 652, 150 + 46 * number, kind="strong")
        yield label(why, 652, 167 + 46 * number, kind="soft")
