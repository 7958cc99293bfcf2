"""Ops that make elements, or put them elsewhere: sources, views, windows, gathers and scatters."""
