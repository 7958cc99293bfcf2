"""Containers that grow while a program runs, in native memory that lives as long as the call
(docs/decisions/0012-containers-are-native-objects.md).

A container is a header that its handle is the address of, and blocks of memory that it owns. What is
short is written where it is asked for, everything else is a function of the module.
"""
