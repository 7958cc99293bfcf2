"""Structured control flow as users call it: branches, loops, scans, callbacks.

A function becomes a region of an op; nothing here knows how regions are compiled.
"""
