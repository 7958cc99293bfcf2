"""The rewriting engine, and the themed tables of rules that `passes.simplify` runs.

What does not live here: passes, which are functions from graph to graph.
"""
