"""The picture of a soft parse, from gates set by hand."""

from xml.etree import ElementTree

import numpy as np

from nmt.analysis.grconv_parse import MergeNode, draw_parse, parse_nodes, parse_table, visible_edges


def test_nodes_and_edges_by_hand() -> None:
    """Three words: two nodes on level 1, the root. The first is all new, the second a copy of its left, the
    root half and half."""
    found = parse_nodes(np.array([[1.0, 0.0, 0.0], [0.05, 0.9, 0.05], [0.5, 0.1, 0.4]]))
    assert found == [
        MergeNode(1, 0, 1, 1.0, 0.0, 0.0),
        MergeNode(1, 1, 2, 0.05, 0.9, 0.05),
        MergeNode(2, 0, 2, 0.5, 0.1, 0.4),
    ]
    drawn = [(edge.level, edge.position, edge.child, edge.kind, edge.weight) for edge in visible_edges(found)]
    assert drawn == [
        (1, 0, 0, "new", 1.0),
        (1, 0, 1, "new", 1.0),
        (1, 1, 1, "left", 0.9),
        (2, 0, 0, "new", 0.5),
        (2, 0, 1, "new", 0.5),
        (2, 0, 1, "right", 0.4),
    ]
    assert (
        list(parse_table(["a", "b", "c"], found).lines())[-1]
        == "2\t0\t2\t0.500000\t0.100000\t0.400000\ta b c"
    )


def test_hard_gates_give_a_tree() -> None:
    """Where each node is new or one copy, every node but the root that is reached has one parent: n words, n
    leaves."""
    hard = [MergeNode(1, 0, 1, 1, 0, 0), MergeNode(1, 1, 2, 0, 0, 1), MergeNode(2, 0, 2, 1, 0, 0)]
    reached, frontier = set(), [(2, 0)]
    while frontier:
        level, position = frontier.pop()
        reached.add((level, position))
        frontier += [
            (edge.level - 1, edge.child)
            for edge in visible_edges(hard)
            if (edge.level, edge.position) == (level, position)
        ]
    assert {place for place in reached if place[0] == 0} == {(0, 0), (0, 1), (0, 2)} and len(reached) == 6


def test_the_picture_is_xml_and_says_everything() -> None:
    text = draw_parse(["<a>", "b & c"], [MergeNode(1, 0, 1, 0.7, 0.2, 0.1)], [('un "deux"', -2.06)])
    root = ElementTree.fromstring(text)
    said = [node.text for node in root.iter() if node.tag.endswith("text")]
    assert (
        said == ["<a>", "b & c", '2.06   un "deux"']
        and len([node for node in root.iter() if node.tag.endswith("line")]) == 3
    )
