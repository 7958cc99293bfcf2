"""Stubs of the namespaces that the table of array functions makes (`jt.linalg`, `jt.fft`, ...): made by
`python tests/helpers/stubs.py`, as is the root's `__init__.pyi`. Nothing here runs."""
