"""Ops with regions, effects or tapes: branches, loops, callbacks, rules of the user's own."""
