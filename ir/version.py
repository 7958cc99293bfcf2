"""The version of jitney, for all floors: the face shows it, caches on disk depend on it."""

__version__ = "0.1.0"
