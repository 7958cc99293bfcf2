"""Derivatives: graphs made from graphs, and what of a forward part is kept for the backward one.

What does not live here: the rules of ops, which stand in their records (`ops`).
"""
