"""Hyper-parameters: dataclasses, from the command line and kept beside the run that had them."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import json
import os
import secrets
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import jitney as jt

S = TypeVar("S")
_MISSING = dataclasses.MISSING
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@jt.errors.naming_lines
def parse_settings(
    cls: type[S], arguments: Sequence[str], *, saved: dict[str, Any] | None = None, prog: str = ""
) -> S:
    """An instance of a dataclass: its defaults, over them what was `saved`, over them the command
    line.

    Each field is an option, `--rate 0.1`, of its type: bool, int, float, str, a path, an Enum, a
    Literal, one of these or None, lists and tuples (`--layers 64 32`), dataclasses (`--model.width
    8`). With tyro installed it does this, and knows more. Ends the program with a message for wrong
    ones.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Settings:
    ...     rate: float = 0.1
    ...     layers: tuple[int, ...] = (8,)
    >>> parse_settings(Settings, ["--layers", "64", "32"], saved={"rate": 0.5})
    Settings(rate=0.5, layers=(64, 32))
    """
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"settings are a dataclass, and {cls!r} is none: write @dataclass above it")
    try:
        import tyro
    except ImportError:
        return _by_argparse(cls, arguments, saved or {}, prog)
    default = from_plain(cls, saved) if saved else tyro.MISSING
    return tyro.cli(cls, args=list(arguments), default=default, prog=prog or None)


def to_plain(value: Any) -> Any:
    """Settings as JSON has them."""
    if dataclasses.is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def from_plain(kind: Any, value: Any) -> Any:
    """The inverse of `to_plain` for a type. ValueError for values of another one."""
    origin: Any = typing.get_origin(kind)
    inner = typing.get_args(kind)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        unknown = [name for name in value if name not in hints]
        if unknown:
            raise ValueError(f"{kind.__name__} has no {unknown[0]!r}: it has {', '.join(hints)}")
        return kind(**{name: _field(hints[name], part, name) for name, part in value.items()})
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        return from_plain(next(k for k in inner if k is not type(None)), value)
    if origin in (list, tuple) or kind in (list, tuple):
        variable = len(inner) == 2 and inner[1] is Ellipsis
        if origin is tuple and inner and not variable and len(inner) != len(value):
            raise ValueError(f"{value!r} are not {len(inner)} values")
        kinds = inner if origin is tuple and not variable else (inner or (str,))[:1] * len(value)
        return (origin or kind)(from_plain(k, item) for k, item in zip(kinds, value, strict=True))
    if origin is typing.Literal:
        found = [choice for choice in inner if choice == value or str(choice) == str(value)]
        if not found:
            raise ValueError(f"{value!r} is none of {', '.join(map(repr, inner))}")
        return found[0]
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        try:
            return kind[value]
        except KeyError:
            raise ValueError(f"{value!r} is none of {', '.join(kind.__members__)}") from None
    if kind is bool:
        return _WORDS[value.lower()] if isinstance(value, str) else bool(value)
    return kind(value) if isinstance(kind, type) and kind is not dict else value


def _field(kind: Any, value: Any, name: str) -> Any:
    try:
        return from_plain(kind, value)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{name}: {error}") from None


def save_settings(folder: Path, settings: Any) -> None:
    """Write `settings.json` into a run's folder, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_plain(settings), indent=2)
    temporary = folder / f".writing-{os.getpid()}-{secrets.token_hex(4)}"
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(folder / "settings.json")


@jt.errors.naming_lines
def load_settings(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What `settings.json` of a run's folder says; empty where there is none. ValueError if it is
    damaged."""
    path = Path(folder) / "settings.json"
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is no JSON ({error}): mend it, or remove it") from error
    if not isinstance(said, dict):
        raise ValueError(f"{str(path)!r} has no settings by name: mend it, or remove it")
    return said


def _by_argparse(cls: Any, arguments: Sequence[str], saved: dict[str, Any], prog: str) -> Any:
    parser = argparse.ArgumentParser(
        prog=prog or None, description=cls.__doc__, argument_default=argparse.SUPPRESS
    )
    _add_options(parser, cls, "", saved)
    said = vars(parser.parse_args(list(arguments)))
    try:
        return from_plain(cls, _merged(cls, saved, said, ""))
    except (ValueError, TypeError, KeyError) as error:
        parser.error(str(error))


def _add_options(parser: Any, cls: Any, prefix: str, saved: Any) -> None:
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        name, kind = prefix + field.name, hints[field.name]
        before = (saved or {}).get(field.name, _default(field))
        if dataclasses.is_dataclass(kind):
            _add_options(parser, kind, f"{name}.", before if isinstance(before, dict) else {})
            continue
        several = typing.get_origin(kind) in (list, tuple)
        options = [f"--{name}", *([f"--{name.replace('_', '-')}"] if "_" in name else [])]
        parser.add_argument(
            *options,
            dest=name,
            nargs="*" if several else "?" if kind is bool else None,
            **({"const": True} if kind is bool else {}),
            required=before is _MISSING,
            help=f"{_said(kind)}{'' if before is _MISSING else f' ({to_plain(before)})'}",
            metavar=field.name.upper(),
        )


def _merged(cls: Any, saved: Any, said: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Of each field what was said, else what was saved, else the default, in plain values."""
    hints = typing.get_type_hints(cls)
    merged: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        name, before = prefix + field.name, (saved or {}).get(field.name, _default(field))
        if dataclasses.is_dataclass(hints[field.name]):
            inner = {} if before is _MISSING else to_plain(before)
            merged[field.name] = _merged(hints[field.name], inner, said, f"{name}.")
        else:
            merged[field.name] = said.get(name, to_plain(before))
            if "None" in _said(hints[field.name]) and merged[field.name] == "None":
                merged[field.name] = None
    unknown = [name for name in saved or {} if name not in hints]
    if unknown:
        raise ValueError(
            f"the run was saved with {prefix}{unknown[0]}, which is no setting any more"
        )
    return merged


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not _MISSING:
        return field.default_factory()
    return field.default


def _said(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")
