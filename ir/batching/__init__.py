"""From one example to many: the walk over a graph, and the rules that structured ops share.

What does not live here: the batch rules of single ops, which stand in their records (`ops`).
"""
