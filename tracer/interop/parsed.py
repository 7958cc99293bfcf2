"""`jt.parse_graph`: a graph from its text, which the tracer can make a function of."""

from ...ir.text_parser import parse_graph as parse_graph
