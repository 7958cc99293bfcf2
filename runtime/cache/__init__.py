"""What was compiled before: in this process, and on disk for the next one.

disk          The cache on disk: bytes by key, kept for the next process
in_memory     The machine code in this process: shared while it is in use
installation  What is installed here, as one hash: part of every key of the cache on disk
"""
