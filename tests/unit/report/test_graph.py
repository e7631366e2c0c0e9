"""The picture of a model's graph."""

import xml.etree.ElementTree as ET
from math import hypot

import pytest

from syndic.report.synthesis import Graph

SVG = "{http://www.w3.org/2000/svg}"


def drawn(graph: Graph) -> ET.Element:
    return ET.fromstring(graph.to_svg())


def test_every_node_and_edge_is_drawn_and_stays_inside() -> None:
    names = tuple(f"column <{place}> with a long name" for place in range(40))
    graph = Graph(title="g", nodes=names, edges=((0, 1, 2.0), (3, 39, 0.5)))
    tree = drawn(graph)
    circles, lines = tree.findall(f".//{SVG}circle"), tree.findall(f".//{SVG}line")
    assert len(circles) == 40
    assert len(lines) == 2
    for circle in circles:
        assert 0 < float(circle.get("cx", "-1")) < graph.width
        assert 0 < float(circle.get("cy", "-1")) < graph.height
    titles = [title.text for title in tree.findall(f".//{SVG}line/{SVG}title")]
    assert titles[-1] == "column <0> with a long name and column <1> with a long name: 2"


def test_a_stronger_edge_is_wider_and_joins_its_nodes() -> None:
    graph = Graph(title="g", nodes=("a", "b", "c"), edges=((0, 1, 1.0), (1, 2, 3.0)))
    tree = drawn(graph)
    weak, strong = tree.findall(f".//{SVG}line")
    assert float(strong.get("stroke-width", "0")) > float(weak.get("stroke-width", "0"))
    nodes = [(float(c.get("cx", "0")), float(c.get("cy", "0"))) for c in tree.findall(f".//{SVG}circle")]
    ends = [(float(strong.get(f"x{k}", "0")), float(strong.get(f"y{k}", "0"))) for k in (1, 2)]
    for end, node in zip(ends, (nodes[1], nodes[2]), strict=True):
        assert hypot(end[0] - node[0], end[1] - node[1]) < 0.02


def test_nothing_and_nonsense() -> None:
    assert not drawn(Graph(title="g", nodes=(), edges=())).findall(f".//{SVG}circle")
    assert len(drawn(Graph(title="g", nodes=("a",), edges=())).findall(f".//{SVG}circle")) == 1
    for edge in ((0, 2, 1.0), (0, 0, 1.0), (0, 1, -1.0), (0, 1, float("nan"))):
        with pytest.raises(ValueError, match=r"edge|strengths"):
            Graph(title="g", nodes=("a", "b"), edges=(edge,))
