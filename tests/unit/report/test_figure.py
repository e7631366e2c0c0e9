"""Figures: well-formed, escaped, drawn to scale, readable without colours."""

import itertools
import re
from math import inf, log10, nan
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

import syndic.report
from syndic.report.figure import Bars, Curve, Figure, Heat, Line, Series
from syndic.report.page import Grid
from syndic.report.svg import STYLE, bottom_labels, escape, fit, log_ticks, number, power, text_width, ticks

NASTY = "<script>alert('x')</script>\x00\x1b & \"more\" \ud800"
SVG = "{http://www.w3.org/2000/svg}"


def bars(values: tuple[float, ...] = (3.0, 1.0, 2.0), *, lying: bool = True) -> Bars:
    labels = tuple(f"l{place}" for place in range(len(values)))
    return Bars(title="b", labels=labels, series=(Series("s", values),), lying=lying)


FIGURES: list[Figure] = [
    bars(),
    bars(lying=False),
    bars(()),
    bars((), lying=False),
    bars((0.0, 0.0), lying=False),
    bars((-2.0, 3.0)),
    bars((-2.0, 3.0), lying=False),
    bars(tuple(float(value) for value in range(60)), lying=False),
    Bars(
        title=NASTY,
        description=NASTY,
        labels=(NASTY, "b" * 300),
        series=(Series(NASTY, (1.0, 2.0)), Series("other", (0.0, 1e12))),
        axis=NASTY,
    ),
    Heat(title=NASTY, rows=(NASTY,), columns=("a", NASTY), values=((1.0, nan),), row_axis=NASTY, column_axis=NASTY),
    Heat(title="h", rows=("x", "y"), columns=("a", "b"), values=((0.0, 0.0), (0.0, 0.0))),
    Heat(title="h", rows=(), columns=(), values=()),
    Curve(title="c", lines=(Line(NASTY, ((1.0, 2.0),)),), x_axis=NASTY, y_axis=NASTY, marks=((1.0, 2.0, NASTY),)),
    Curve(title="c", lines=(), x_axis="x", y_axis="y"),
    Curve(title="c", lines=(Line("flat", ((0.1, 5.0), (0.9, 5.0))),), x_axis="x", y_axis="y", x_log=True, y_log=True),
]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: type(figure).__name__)
def test_every_figure_is_well_formed_and_escaped(figure: Figure) -> None:
    for text in (figure.to_svg(), figure.inline()):
        tree = Xml.fromstring(text)
        assert not [one for one in tree.iter() if "script" in one.tag]
        assert next(iter(tree)).tag.removeprefix(SVG) in {"title", "style"}
        assert "nan" not in re.sub(r">[^<]*<", "><", text)
        assert re.search(r"-?\binf\b", re.sub(r">[^<]*<", "><", text)) is None
    assert "<title>" in figure.to_svg()


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: type(figure).__name__)
def test_everything_drawn_lies_inside_the_picture(figure: Figure) -> None:
    tree = Xml.fromstring(figure.inline())
    for one in tree.iter("rect"):
        x, y, width, height = (float(one.attrib[name]) for name in ("x", "y", "width", "height"))
        assert x >= -0.01
        assert x + width <= figure.width + 0.01
        assert y >= -0.01
        assert y + height <= figure.height + 0.01
    for one in tree.iter("circle"):
        assert 0 <= float(one.attrib["cx"]) <= figure.width
        assert 0 <= float(one.attrib["cy"]) <= figure.height


@pytest.mark.parametrize("lying", [True, False])
def test_bars_are_as_long_as_their_values(lying: bool) -> None:
    values = (3.0, 1.0, 2.0, 0.5)
    tree = Xml.fromstring(bars(values, lying=lying).inline())
    drawn = [one for one in tree.iter("rect") if "bar" in one.attrib["class"]]
    lengths = [float(one.attrib["width" if lying else "height"]) for one in drawn]
    scale = lengths[0] / values[0]
    assert scale > 10
    assert lengths == pytest.approx([scale * value for value in values], rel=0.01)


def test_shades_grow_with_values_and_signs_and_gaps_show() -> None:
    heat = Heat(title="h", rows=("x", "y"), columns=("a", "b"), values=((1.0, 4.0), (-2.0, nan)))
    cells = list(Xml.fromstring(heat.inline()).iter("rect"))[:4]
    shades = [float(one.attrib.get("fill-opacity", "nan")) for one in cells]
    assert shades[0] < shades[2] < shades[1] == 1.0
    assert ["tint0" in one.attrib["class"] for one in cells] == [True, True, False, False]
    assert cells[3].attrib["class"] == "void"


def test_a_logarithmic_axis_is_even_in_powers_of_ten() -> None:
    points = tuple((10.0**-power, float(power)) for power in (3, 6, 9, 12))
    curve = Curve(title="c", lines=(Line("l", points),), x_axis="x", y_axis="y", x_log=True)
    polyline = next(Xml.fromstring(curve.inline()).iter("polyline")).attrib["points"]
    places = [tuple(map(float, pair.split(","))) for pair in polyline.split()]
    steps = [second[0] - first[0] for first, second in itertools.pairwise(places)]
    assert steps == pytest.approx([steps[0]] * 3, abs=0.2)
    assert steps[0] < -20
    rises = [second[1] - first[1] for first, second in itertools.pairwise(places)]
    assert rises == pytest.approx([rises[0]] * 3, abs=0.2)
    assert rises[0] < 0


def test_series_differ_without_colour() -> None:
    two = Bars(title="b", labels=("a",), series=(Series("s", (1.0,)), Series("t", (1.0,))))
    kinds = [one.attrib["class"] for one in Xml.fromstring(two.inline()).iter("rect") if "bar" in one.attrib["class"]]
    assert {"hollow" in kind for kind in kinds} == {True, False}
    lines = tuple(Line(str(place), ((0.0, 0.0), (1.0, 1.0))) for place in range(4))
    curve = Curve(title="c", lines=lines, x_axis="x", y_axis="y")
    drawn = list(Xml.fromstring(curve.inline()).iter("polyline"))[4:]
    assert len({one.attrib.get("stroke-dasharray") for one in drawn}) == 4


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bars(title="b", labels=("a", "b"), series=(Series("s", (1.0,)),)),
        lambda: bars((nan,)),
        lambda: bars((inf,)),
        lambda: Heat(title="h", rows=("x",), columns=("a", "b"), values=((1.0,),)),
        lambda: Curve(title="c", lines=(Line("l", ((0.0, 1.0),)),), x_axis="x", y_axis="y", x_log=True),
        lambda: Curve(title="c", lines=(Line("l", ((0.0, inf),)),), x_axis="x", y_axis="y"),
        lambda: Grid(caption="g", head=("a", "b"), rows=(("1",),)),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        make()  # type: ignore[operator]  # each is a function without arguments


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0, 0), (-3, 7), (0, 1234), (1e-9, 2e-9), (0.2, 0.9), (5, 5), (-8, 0)]
)
def test_ticks_cover_and_are_round(low: float, high: float) -> None:
    found = ticks(low, high)
    assert found[0] <= low + 1e-12
    assert found[-1] >= high - 1e-12
    assert 2 <= len(found) <= 9
    step = found[1] - found[0]
    mantissa = step / 10 ** int(log10(step) // 1)
    assert min(abs(mantissa - wanted) for wanted in (1, 2, 5, 10)) < 1e-6


@pytest.mark.parametrize(("low", "high"), [(1e-12, 1e-3), (0.5, 0.5), (1, 9), (0.02, 0.05), (3, 4e30)])
def test_logarithmic_ticks_cover_and_are_few(low: float, high: float) -> None:
    found = log_ticks(low, high)
    assert found[0] <= low * 1.000001
    assert found[-1] >= high * 0.999999
    assert 2 <= len(found) <= 10
    assert found == sorted(set(found))


def test_texts_are_cut_to_their_room() -> None:
    assert fit("short", 100) == "short"
    assert text_width(fit("x" * 500, 80)) <= 80
    assert text_width("字" * 5) > text_width("x" * 5)
    drawn = bottom_labels([f"a very long label {place}" for place in range(50)], 30, 6, 100)
    assert 2 < len(drawn) < 25


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234567, "1,234,567"), (0.12345, "0.123"), (2.5, "2.5"), (inf, "unbounded"), (-3, "-3")],
)
def test_numbers_are_written_as_people_do(value: float, text: str) -> None:
    assert number(value) == text
    assert number(0.731, "percent") == "73.1\u00a0%"
    assert power(-12) == "10⁻¹²"


def test_escape_leaves_nothing_to_interpret() -> None:
    assert escape("a<b>&\"'\x00") == "a&lt;b&gt;&amp;&quot;&#x27;\ufffd"


def luminance(colour: str) -> float:
    digits = colour.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    linear = []
    for place in (0, 2, 4):
        share = int(digits[place : place + 2], 16) / 255
        linear.append(share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4)
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def palettes(style: str) -> list[dict[str, str]]:
    """Return the colours of the light theme, of the dark one and of paper."""
    blocks = re.findall(r"\{(--ink[^}]*|color-scheme[^}]*)\}", style)
    return [dict(re.findall(r"--(\w[\w-]*):(#[0-9a-f]{3,6})", block)) for block in blocks]


def test_contrast_is_that_of_wcag_aa() -> None:
    pages = palettes((Path(syndic.report.__file__).parent / "page.css").read_text())
    drawings = palettes(STYLE)
    assert (len(pages), len(drawings)) == (3, 3)
    for page in pages:
        for text, paper in [("ink", "paper"), ("soft", "paper"), ("link", "paper"), ("ink", "card"), ("soft", "card"),
                            ("link", "card"), ("danger", "danger-paper"), ("owner", "owner-paper")]:  # fmt: skip
            assert contrast(page[text], page[paper]) >= 4.5, (text, paper)
    for drawing in drawings:
        assert contrast(drawing["ink"], drawing["paper"]) >= 4.5
        assert contrast(drawing["soft"], drawing["paper"]) >= 4.5
        for tint in range(5):
            assert contrast(drawing[f"tint{tint}"], drawing["paper"]) >= 3
