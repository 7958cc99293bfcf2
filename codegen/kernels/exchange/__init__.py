"""Collectives and messages between processes: native code calls back with the memory of its arrays."""
