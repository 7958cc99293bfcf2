"""The names that a package gives its users: those of its `__init__` that are no modules."""

from types import ModuleType


def public_names(package: ModuleType) -> list[str]:
    """They are without the modules in the package, which Python adds as they are imported."""
    found = vars(package).items()
    return sorted(n for n, value in found if n[0] != "_" and not isinstance(value, ModuleType))
