"""A picture of which columns a model ties together: names on a circle, lines between them."""

from dataclasses import dataclass
from math import cos, isfinite, pi, sin
from typing import Final, final

from syndic.report.figure import Figure
from syndic.report.svg import element, escape, fit, label, text_width

_LABEL_ROOM: Final = 110.0


@final
@dataclass(frozen=True, kw_only=True)
class Graph(Figure):
    """Nodes on a circle; an edge is (place, place, strength), and a stronger one is drawn wider and darker."""

    nodes: tuple[str, ...]
    edges: tuple[tuple[int, int, float], ...]
    width: int = 680

    def __post_init__(self) -> None:
        for one, other, strength in self.edges:
            if not (0 <= one < len(self.nodes) and 0 <= other < len(self.nodes)) or one == other:
                raise ValueError(f"an edge from {one} to {other}: there are {len(self.nodes)} nodes")
            if not isfinite(strength) or strength < 0:
                raise ValueError("strengths must be finite and not negative")

    @property
    def height(self) -> float:
        """Room for the circle; many nodes take a larger one."""
        return 2 * self._radius + 70

    def draw(self) -> list[str]:
        """Return the edges, the weakest first, then the nodes and their names."""
        most = max((strength for _, _, strength in self.edges), default=0.0) or 1.0
        drawn = [
            self._edge(one, other, strength, strength / most)
            for one, other, strength in sorted(self.edges, key=lambda edge: edge[2])
        ]
        for place, name in enumerate(self.nodes):
            x, y, right, down = self._place(place)
            drawn.append(element("circle", element("title", escape(name)), cx=x, cy=y, r=4, class_="dot tint0"))
            anchor = "middle" if abs(right) < 0.2 else "start" if right > 0 else "end"
            drawn.append(label(name, x + 9 * right, y + 4 + 12 * down, anchor=anchor, room=_LABEL_ROOM))
        return drawn

    def _edge(self, one: int, other: int, strength: float, share: float) -> str:
        (x1, y1, *_), (x2, y2, *_) = self._place(one), self._place(other)
        title = element("title", escape(f"{self.nodes[one]} and {self.nodes[other]}: {strength:.3g}"))
        shade: dict[str, str | float] = {
            "stroke": "currentColor",
            "stroke_width": 0.8 + 3.2 * share,
            "stroke_opacity": 0.25 + 0.65 * share,
        }
        return element("line", title, x1=x1, y1=y1, x2=x2, y2=y2, class_="tint0", **shade)

    @property
    def _radius(self) -> float:
        names = max((text_width(fit(name, _LABEL_ROOM)) for name in self.nodes), default=0.0)
        return float(min(60 + 7 * len(self.nodes), (self.width - 2 * names - 40) / 2))

    def _place(self, node: int) -> tuple[float, float, float, float]:
        """Return where a node is, and which way is outwards from it."""
        turn = 2 * pi * node / max(1, len(self.nodes)) - pi / 2
        right, down = cos(turn), sin(turn)
        return (
            self.width / 2 + self._radius * right,
            self.height / 2 + self._radius * down,
            right,
            down,
        )
