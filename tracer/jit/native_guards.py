"""Guards as a part of call programs: what `guards` and `frozen` compare in Python, natively."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ...runtime.call.program import CallProgram, Owned
from ..captures.frozen import PROXIES, data_of, is_user_function
from ..captures.guards import Guard
from ..captures.paths import Path, is_user_module

_BY_VALUE = (bool, int, float, str, bytes, complex, range, type(None), type(Ellipsis))
_BY_IDENTITY = (
    *(type, FunctionType, BuiltinFunctionType, ModuleType),
    *(np.dtype, np.ufunc, np.generic, enum.Enum),
)


class NotNative(Exception):
    """The call cannot be expressed as a program."""


class GuardWriter:
    """Writes guards into a program. What it cannot express raises `NotNative`."""

    def __init__(self) -> None:
        self.program = CallProgram()
        self._paths: dict[tuple[Any, ...], int] = {}
        self._classes: set[type] = set()  # that are guarded

    def guard(self, guard: Guard) -> None:
        value, path = guard.value, guard.path
        if type(value) is FunctionType and guard.how != "absent":
            value = path.find()  # one that does the same may be there now
        if guard.how == "absent":
            if path.kind != "global" or path.attrs:
                raise NotNative
            self.program.absent(path.root, path.name)
        elif guard.how == "code" and path.kind == "value" and not path.attrs:
            self.program.code_of(path.root, guard.frozen)
        elif path.attrs[-1:] == ("__func__",) and guard.how == "is":
            owner = path.above.above
            self.program.method(self.read(owner), path.attrs[-2], value)
        elif guard.how == "code":
            self.program.code(self.read(path), guard.frozen)
        elif guard.by_identity:
            self.program.identity(self.read(path), value)
        else:
            self.frozen(self.read(path), value)

    def frozen(self, word: int, value: Any) -> None:
        """A value as `frozen.freeze` compares it."""
        if type(value) in (tuple, list):
            words = self.program.items(word, type(value), len(value))
            for item, register in zip(value, words, strict=True):
                self.frozen(register, item)
        elif type(value) is dict:
            words = self.program.values(word, plain_keys(value))
            for item, register in zip(value.values(), words, strict=True):
                self.frozen(register, item)
        elif type(value) in PROXIES:
            raise NotNative
        elif type(value) is FunctionType:
            self.program.identity(word, value)
            if is_user_function(value):
                self.program.function(word, value)
                if not self.program.same_names(value):
                    raise NotNative
                for part in (value.__defaults__, value.__kwdefaults__, value.__dict__):
                    if part:
                        self.frozen(self.program.constant_result(part), part)
        elif isinstance(value, type) and is_user_module(value.__module__):
            self.program.identity(word, value)
            self._class(value)
        elif isinstance(value, enum.Enum) and is_user_module(type(value).__module__):
            self.program.identity(word, value)
            self._class(type(value))
            self.program.same_dict(word, value)
            attributes = vars(value)
            with self.program.unless_changed(attributes):
                words = self.program.values(
                    self.program.constant_result(attributes), list(attributes)
                )
                for register, item in zip(words, attributes.values(), strict=True):
                    self.constant(register, item)
        elif isinstance(value, ModuleType) and is_user_module(value.__name__):
            raise NotNative
        else:
            self.constant(word, value)

    def _class(self, cls: type) -> None:
        if cls in self._classes:
            return
        self._classes.add(cls)
        if not self.program.unchanged_class(cls):
            raise NotNative
        if is_user_module(type(cls).__module__):
            self._class(type(cls))
        for _, member in data_of(cls):
            self.frozen(self.program.constant_result(member), member)

    def read(self, path: Path) -> int:
        """A word with the value at a path, owned."""
        base: tuple[Any, ...] = (path.kind, id(path.root), path.name)
        word = self._paths.get(base)
        if word is None:
            word = self._paths[base] = self._root(path)
        key = base
        for name in path.attrs:
            key = (*key, name)
            attribute = self._paths.get(key)
            if attribute is None:
                attribute = self._paths[key] = self.attribute(word, name)
            word = attribute
        return word

    def _root(self, path: Path) -> Owned:
        if path.kind == "value":
            return self.program.constant_result(path.root)
        word = self.program.own()
        if path.kind == "global":
            self.program.global_(word, path.root, path.name)
        elif path.kind == "cell":
            self.program.cell(word, path.root)
        else:
            self.program.ask(word, path.root)
        return word

    def attribute(self, word: int, name: str) -> Owned:
        register = self.program.own()
        self.program.attribute(register, word, name)
        return register

    def constant(self, word: int, value: Any) -> None:
        if type(value) in _BY_VALUE or isinstance(value, _BY_IDENTITY):
            self.program.constant(word, value)
        elif type(value) is tuple:
            for register, item in zip(
                self.program.items(word, tuple, len(value)), value, strict=True
            ):
                self.constant(register, item)
        else:
            raise NotNative


def by_module(guards: Sequence[Guard]) -> tuple[list[list[Guard]], list[Guard]]:
    """Guards of immutable values in the namespace of a module, by module; and the others."""
    modules: dict[int, list[Guard]] = {}
    others = []
    for guard in guards:
        alone = guard.path.kind == "global" and not guard.path.attrs
        plain = guard.how in ("is", "absent") or guard.by_identity or type(guard.value) in _BY_VALUE
        if alone and plain:
            modules.setdefault(id(guard.path.root), []).append(guard)
        else:
            others.append(guard)
    return list(modules.values()), others


def plain_keys(value: dict[Any, Any]) -> list[Any]:
    """The keys of a dict; NotNative unless they are strings and ints."""
    keys = list(value)
    if any(type(key) not in (str, int) for key in keys):
        raise NotNative
    return keys
