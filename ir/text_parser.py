"""Reading the text form of graphs (see `text`): a tokenizer and a recursive-descent parser.

Ops are built with a Builder, so types are inferred anew; the types written in the text must agree.
Every error is a `ParseError` that names line and column.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

import numpy as np

from .build import Builder
from .graph import Graph, Knobs, SourceLine, Value
from .opdef import OPS, GraphError
from .record import record
from .text import NAME, SCOPE
from .types import DTYPE_NAMES, TensorType, Type, dtype_kind, is_small, parse_type, real_dtype

_TOKEN = re.compile(
    rf"""
    (?P<space>[ \t\r]+)
  | (?P<newline>\n)
  | (?P<comment>\#[^\n]*)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<type>(?:{"|".join(DTYPE_NAMES)})\[[\d,\ ]*\])
  | (?P<value>%[\w/]+)
  | (?P<number>nan:0x[0-9a-f]+|[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf\b|nan\b))
  | (?P<name>{NAME})
  | (?P<mark>->|[(){{}}\[\],:=])
    """,
    re.VERBOSE,
)
_SOURCE = re.compile(
    r"#\s*(?P<file>\S.*):(?P<line>\d+)(?: in (?P<function>.+?))?"
    r"(?:, column (?P<column>\d+))?"
    rf'(?: \[(?P<scope>{SCOPE}|"(?:[^"\\]|\\.)*")\])?(?: \{{(?P<knobs>[\w=, ]+)\}})?'
    r"(?:, (?P<role>(?:grad|jvp) of .+?))?\s*$"
)
Element = str | tuple[str, str]  # the text of a number, of the two parts of a complex one
_WORDS = {"true": True, "false": False, "none": None}


class ParseError(ValueError):
    """The text is not a graph. The message names the line and the column."""


@record(frozen=False)
class _Token:
    kind: str
    text: str
    position: int


@record(frozen=False)
class _ArrayText:
    """An array attribute before its dtype and shape are known."""

    elements: list[Element] | bytes
    token: _Token


def parse_graph(text: str) -> Graph:
    """The graph that `text` holds. Raises ParseError, naming line and column.

    >>> jt.parse_graph("graph f(%x: f32[2]) -> f32[2] {\\n  return %x\\n}").name
    'f'
    """
    parser = _Parser(text)
    parser.skip_newlines()
    graph = parser.graph()
    parser.skip_newlines()
    parser.expect("end")
    return graph


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokenize()
        self.at = 0

    def _tokenize(self) -> list[_Token]:
        tokens = []
        position = 0
        while position < len(self.text):
            match = _TOKEN.match(self.text, position)
            if match is None:
                raise self.error(f"unexpected {self.text[position]!r}", position)
            kind = match.lastgroup or ""
            if kind != "space":
                tokens.append(_Token(kind, match.group(), position))
            position = match.end()
        tokens.append(_Token("end", "", len(self.text)))
        return tokens

    def error(self, message: str, position: int) -> ParseError:
        line = self.text.count("\n", 0, position) + 1
        column = position - (self.text.rfind("\n", 0, position) + 1) + 1
        source = self.text.split("\n")[line - 1]
        return ParseError(f"line {line}, column {column}: {message}\n    {source.strip()}")

    # Tokens. `mark` kinds are tested by their text, all others by their kind.

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def peek(self, *wanted: str) -> bool:
        token = self.token
        return (token.text if token.kind == "mark" else token.kind) in wanted

    def accept(self, wanted: str) -> _Token | None:
        if not self.peek(wanted):
            return None
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, wanted: str, what: str = "") -> _Token:
        token = self.accept(wanted)
        if token is None:
            actual = {"newline": "the end of the line", "end": "the end of the text"}.get(
                self.token.kind, repr(self.token.text)
            )
            raise self.error(
                f"expected {what or repr(wanted)}, found {actual}", self.token.position
            )
        return token

    def keyword(self, word: str) -> bool:
        if self.token.kind == "name" and self.token.text == word:
            self.at += 1
            return True
        return False

    def skip_newlines(self) -> None:
        while self.peek("newline", "comment"):
            self.at += 1

    def end_of_line(self) -> SourceLine | None:
        """The end of a line, with the source line that a comment may hold."""
        comment = self.accept("comment")
        if not self.peek("end"):
            self.expect("newline", "the end of the line")
        self.skip_newlines()
        match = _SOURCE.match(comment.text) if comment else None
        if match is None:
            return None
        scope = match["scope"] or ""
        scope = json.loads(scope) if scope.startswith('"') else scope
        line, function, role = int(match["line"]), match["function"] or "", match["role"] or ""
        knobs = re.findall(r"(\w+)=(\d+)", match["knobs"] or "")
        given = Knobs(**{name: int(value) for name, value in knobs}) if knobs else None
        column = int(match["column"] or 0)
        return SourceLine(match["file"], line, function, scope, role, knobs=given, column=column)

    # The grammar.

    def graph(self) -> Graph:
        if not self.keyword("graph"):
            raise self.error("expected 'graph'", self.token.position)
        name = self.accept("string")
        graph = Graph(json.loads(name.text) if name else self.expect("name", "a name").text)
        env: dict[str, Value] = {}
        self.expect("(")
        while not self.accept(")"):
            token = self.expect("value", "a parameter")
            self.expect(":")
            type = self.type()
            self.define(env, token, graph.add_param(type))
            if not self.peek(")"):
                self.expect(",")
        declared = self.types() if self.accept("->") else []
        self.expect("{")
        self.end_of_line()
        builder = Builder(graph)
        while not self.keyword("return"):
            if self.peek("}", "end"):
                raise self.error("expected an op or 'return'", self.token.position)
            self.op(builder, env)
        start = self.token.position
        if self.peek("value"):
            graph.outputs = self.operands(env)
        self.end_of_line()
        if graph.output_types != declared:
            written = ", ".join(map(str, declared)) or "nothing"
            actual = ", ".join(map(str, graph.output_types)) or "nothing"
            raise self.error(f"the graph says it gives {written}, but returns {actual}", start)
        self.expect("}")
        return graph

    def define(self, env: dict[str, Value], token: _Token, value: Value) -> None:
        if token.text in env:
            raise self.error(f"{token.text} is defined twice", token.position)
        env[token.text] = value
        value.name = "" if token.text[1].isdecimal() else token.text[1:]

    def op(self, builder: Builder, env: dict[str, Value]) -> None:
        names = []
        if self.peek("value"):
            names.append(self.expect("value"))
            while self.accept(","):
                names.append(self.expect("value", "a result"))
            self.expect("=")
        head = self.expect("name", "the name of an op")
        if head.text not in OPS:
            raise self.error(f"there is no op {head.text!r}", head.position)
        operands = self.operands(env) if self.peek("value") else []
        attrs: dict[str, Any] = {}
        while self.peek("name"):
            key = self.expect("name")
            if key.text in attrs:
                raise self.error(f"attribute {key.text!r} is given twice", key.position)
            self.expect("=", "'=' after the attribute's name")
            attrs[key.text] = self.attribute()
        colon = self.accept(":")
        declared = self.types() if colon else []
        self.fill_arrays(attrs, declared)
        opened = self.accept("{")
        loc = self.end_of_line()
        regions = []
        while opened and not self.accept("}"):
            regions.append(self.graph())
            self.end_of_line()
        if opened:
            self.end_of_line()
        builder.loc = loc
        if isinstance(attrs.get("function"), str):
            message = f"{attrs['function']} is a Python function, of which a text has but the name"
            raise self.error(message, head.position)
        try:
            op = builder.append(OPS[head.text], operands, attrs, regions)
        except (GraphError, TypeError) as error:  # TypeError: operands or attributes are missing
            raise self.error(str(error), head.position) from None
        actual = [v.type for v in op.results]
        if colon and actual != declared:
            written, inferred = (", ".join(map(str, types)) for types in (declared, actual))
            raise self.error(f"{head.text} gives {inferred}, not {written}", colon.position)
        if names and len(names) != len(op.results):
            raise self.error(f"{head.text} gives {len(op.results)} results", names[0].position)
        for token, value in zip(names, op.results, strict=bool(names)):
            self.define(env, token, value)

    def operands(self, env: dict[str, Value]) -> list[Value]:
        values = []
        while True:
            token = self.expect("value", "an operand")
            if token.text not in env:
                raise self.error(f"{token.text} is not defined here", token.position)
            values.append(env[token.text])
            if not self.accept(","):
                return values

    def type(self) -> Type:
        token = self.token
        if not (self.accept("type") or self.keyword("token") or self.keyword("tape")):
            message = f"expected a type such as f32[2,3], found {token.text!r}"
            raise self.error(message, token.position)
        try:
            return parse_type(token.text)
        except ValueError as error:
            raise self.error(str(error), token.position) from None

    def types(self) -> list[Type]:
        types = [self.type()]
        while self.accept(","):
            types.append(self.type())
        return types

    def attribute(self) -> Any:
        token = self.token
        if self.accept("["):
            items = []
            while not self.accept("]"):
                items.append(self.attribute())
                if not self.peek("]"):
                    self.expect(",")
            return tuple(items)
        if self.accept("{"):
            return self.array(token)
        if self.accept("string"):
            return json.loads(token.text)
        if token.kind == "type" or token.text in ("token", "tape"):
            return self.type()
        if self.accept("number"):
            return _number(token.text)
        if self.accept("name"):
            if token.text in _WORDS:
                return _WORDS[token.text]
            if token.text in DTYPE_NAMES:
                return DTYPE_NAMES[token.text]
        raise self.error(f"{token.text!r} is not an attribute's value", token.position)

    def array(self, start: _Token) -> _ArrayText:
        if self.keyword("base64"):
            text = json.loads(self.expect("string", "base64 data in quotes").text)
            self.expect("}")
            try:
                return _ArrayText(base64.b64decode(text, validate=True), start)
            except binascii.Error as error:
                raise self.error(str(error), start.position) from None
        elements: list[Element] = []
        while not self.accept("}"):
            pair = self.accept("(")
            token = self.accept("number") or self.expect("name", "an element")
            elements.append(token.text)
            if pair:
                self.expect(",")
                elements[-1] = (token.text, self.expect("number", "an imaginary part").text)
                self.expect(")")
            if not self.peek("}"):
                self.expect(",")
        return _ArrayText(elements, start)

    def fill_arrays(self, attrs: dict[str, Any], types: list[Type]) -> None:
        """Turn array attributes into arrays of the type that the op's result is written with."""
        for name, value in attrs.items():
            if not isinstance(value, _ArrayText):
                continue
            if not types or not isinstance(types[0], TensorType):
                message = "an array needs the type of the result: `constant value={1.0} : f32[]`"
                raise self.error(message, value.token.position)
            try:
                attrs[name] = _array(value.elements, types[0])
            except (ValueError, OverflowError) as error:
                raise self.error(f"not a {types[0]}: {error}", value.token.position) from None


def _number(text: str) -> int | float:
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def _array(elements: list[Element] | bytes, type: TensorType) -> np.ndarray:
    if isinstance(elements, bytes):
        if len(elements) != type.nbytes:
            raise ValueError(f"{len(elements)} bytes are given, {type.nbytes} are needed")
        little = type.dtype if is_small(type.dtype) else type.dtype.newbyteorder("<")
        array = np.frombuffer(elements, little).astype(type.dtype).reshape(type.shape)
    else:
        if len(elements) != type.size:
            raise ValueError(f"{len(elements)} elements are given, {type.size} are needed")
        array = np.empty(type.size, type.dtype)
        for i, text in enumerate(elements):
            _set_element(array, i, text)
        array = array.reshape(type.shape)
    array.setflags(write=False)
    return array


def _set_element(array: np.ndarray, i: int, text: Element) -> None:
    kind = dtype_kind(array.dtype)
    if kind == "c":
        if isinstance(text, str):
            raise ValueError(f"{text!r} is not a complex number, as in (1.0, 2.0)")
        parts = array.view(real_dtype(array.dtype))
        for part, of_part in enumerate(text):
            _set_element(parts, 2 * i + part, of_part)
        return
    if not isinstance(text, str):
        raise ValueError(f"({', '.join(text)}) is a complex number")
    if kind == "b":
        if text not in ("true", "false"):
            raise ValueError(f"{text!r} is not true or false")
        array[i] = text == "true"
    elif kind == "f" and text.startswith("nan:"):
        bits = f"u{array.dtype.itemsize}"
        array[i : i + 1] = np.array([int(text[4:], 16)], bits).view(array.dtype)
    elif kind == "f":
        array[i] = float(text)
    else:
        array[i] = int(text)
