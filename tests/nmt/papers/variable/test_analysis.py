"""What a model computes, from steps set by hand."""

from xml.etree import ElementTree

import pytest

from nmt.papers.variable.analysis import ComputationConfig, ComputationStep, equivalent, summary, svg, table

STEPS = [
    ComputationStep(1, 0, "</s>", 1, 0.5, 5, 5.0),
    ComputationStep(1, 1, "<a>", 1, 0.25, 3, 3.0),
    ComputationStep(2, 0, "</s>", 1, 0.75, 8, 8.0),
    ComputationStep(2, 1, "b & c", 1, 1.0, 10, 10.0),
]


def test_summary_and_table() -> None:
    assert equivalent(STEPS) == pytest.approx(((25 + 9 + 64 + 100) / 4) ** 0.5)
    first, most, least = summary(STEPS)
    assert first == "layer 1: mean m 0.625, 6.5 units computed; as many operations as an Elman layer of 7"
    assert most == "most is computed at: b & c 1.00, </s> 0.62, <a> 0.25"
    assert least == "least is computed at: <a> 0.25, </s> 0.62, b & c 1.00"
    assert list(table(STEPS).lines())[2] == "1\t1\t<a>\t1\t0.2500\t3\t3.0"


def test_the_picture_is_xml_and_says_everything() -> None:
    root = ElementTree.fromstring(svg(STEPS, ComputationConfig()))
    assert [node.text for node in root.iter() if node.tag.endswith("text")] == [
        "</s>",
        "<a>",
        "</s>",
        "b & c",
    ]
    shades = [float(node.get("fill-opacity", 0)) for node in root.iter() if node.tag.endswith("rect")][1:]
    assert [shade / shades[0] for shade in shades] == pytest.approx([1, 0.5, 1.5, 2], abs=0.01)
    curves = [node.get("points", "").split() for node in root.iter() if node.tag.endswith("polyline")]
    heights = [float(point.split(",")[1]) for point in curves[0]]
    assert len(curves) == 2 and heights[1] > heights[0], "more is computed higher up"
    short = ElementTree.fromstring(svg(STEPS, ComputationConfig(shown=1)))
    assert len([node for node in short.iter() if node.tag.endswith("text")]) == 2


def test_long_lines_go_on_below() -> None:
    long = [ComputationStep(1, place, "x", 1, 0.5, 5, 5.0) for place in range(81)]
    root = ElementTree.fromstring(svg(long, ComputationConfig()))
    assert len([node for node in root.iter() if node.tag.endswith("polyline")]) == 2
