"""Graphs that we write ourselves."""

from __future__ import annotations

import pytest

from veilmeter.speech.onnx_session import GraphBuilder


def test_every_node_has_a_name_of_its_own() -> None:
    """ONNX Runtime 1.18 names what it makes of nodes after these, and refuses a graph with a name twice."""
    onnx = pytest.importorskip("onnx")
    graph = GraphBuilder({})
    graph.op("Add", [graph.op("Relu", ["x"]), graph.op("Abs", ["x"])], "y")
    model = onnx.load_model_from_string(graph.serialize("sum", {"x": [1]}, {"y": [1]}, {}))
    names = [node.name for node in model.graph.node]
    assert len(set(names)) == 3
    assert all(names)
