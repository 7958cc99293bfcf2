"""Loops over traced values, as ops: what they carry, how their bodies settle, what comes first."""
