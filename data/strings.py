"""Texts to numbers: splitting, parsing, vocabularies, bytes as tokens."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import jitney as jt

from .errors import DataError, refuse
from .features import Ragged
from .trees import Array, texts


def split(lines: Sequence[str] | Array, separator: str | None = None) -> Ragged:
    """The parts of each text, at white space or a separator, as a `Ragged` of texts.

    >>> parts = jt.data.split(["a b", "", "c"])
    >>> parts.values.tolist(), parts.lengths.tolist()
    (['a', 'b', 'c'], [2, 0, 1])
    """
    parts = [line.split(separator) for line in lines]
    lengths = np.array([len(p) for p in parts], np.int64)
    values = texts([word for p in parts for word in p])
    return Ragged(values, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]))


def to_numbers(words: Any, dtype: Any = np.float64) -> Array:
    """Texts as numbers, in an array of their shape. Raises DataError that names one that is none.

    >>> jt.data.to_numbers(["1", " 2.5 "])
    array([1. , 2.5])
    """
    array = np.asarray(words, object)
    kind = np.dtype(dtype)
    read: Any = {"i": int, "u": int, "c": complex}.get(kind.kind, float)
    found = np.empty(array.shape, kind)
    flat = found.reshape(-1)
    for i, word in enumerate(array.reshape(-1)):
        try:
            flat[i] = read(word)
        except (ValueError, OverflowError) as error:
            what = f"text {i}, {word!r}, is no {kind} ({error})"
            refuse(what, "leave it out, or give a dtype that holds it.", DataError)
    return found


class Vocabulary:
    """Tokens and their numbers, 0, 1, ... in the order given.

    `unknown` is the token that stands for those that are not among them (added in front if it is not
    there); None makes them an error.

    >>> vocabulary = jt.data.Vocabulary.of(["a b a", "c a"], unknown="?")
    >>> vocabulary.tokens
    ['?', 'a', 'b', 'c']
    >>> vocabulary.ids("a x c".split()), vocabulary.words([1, 2])
    (array([1, 0, 3]), ['a', 'b'])
    """

    def __init__(self, tokens: Iterable[str], unknown: str | None = None) -> None:
        self.tokens = list(tokens)
        if unknown is not None and unknown not in self.tokens:
            self.tokens.insert(0, unknown)
        self.unknown = unknown
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        if len(self._ids) < len(self.tokens):
            twice, _ = Counter(self.tokens).most_common(1)[0]
            what = f"a vocabulary has each token once, and {twice!r} is in it twice"
            refuse(what, "give them once: dict.fromkeys(tokens), or Vocabulary.of(lines).")

    @classmethod
    def of(
        cls,
        lines: Iterable[str | Iterable[str]],
        *,
        size: int | None = None,
        least: int = 1,
        unknown: str | None = "<unk>",
        special: Sequence[str] = (),
    ) -> Vocabulary:
        """Of the words of texts, or of lists of words, the commonest first: `size` of them at most, seen
        `least` times.

        `special` tokens come before them. Words seen equally often stand in alphabetical order.
        """
        split = (line.split() if isinstance(line, str) else line for line in lines)
        counts = Counter(word for words in split for word in words)
        front = [*special, *([unknown] if unknown is not None and unknown not in special else [])]
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        words = [word for word, n in ranked if n >= least and word not in front]
        room = None if size is None else max(0, size - len(front))
        return cls([*front, *words[:room]], unknown)

    def ids(self, tokens: Iterable[str]) -> Array:
        """The numbers of tokens, int64. Raises KeyError for an unknown one without `unknown`."""
        ids = self._ids
        if self.unknown is None:
            try:
                return np.array([ids[token] for token in tokens], np.int64)
            except KeyError as error:
                wrong = KeyError(f"{error.args[0]!r} is not in the vocabulary: give it an unknown=")
                jt.errors.note_line(wrong)
                raise wrong from None
        other = ids[self.unknown]
        return np.array([ids.get(token, other) for token in tokens], np.int64)

    def words(self, ids: Iterable[Any]) -> list[str]:
        """The tokens of numbers. Raises IndexError for a number that is none."""
        found = []
        for i in ids:
            if not 0 <= i < len(self.tokens):
                what = f"number {i} is not in a vocabulary of {len(self.tokens)}"
                refuse(what, "give numbers that `ids` gave.", IndexError)
            found.append(self.tokens[i])
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file with one token a line."""
        wrong = [token for token in self.tokens if "\n" in token or "\r" in token]
        if wrong:
            raise DataError(f"a file of tokens has one a line, and {wrong[0]!r} has several")
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{token}\n" for token in self.tokens)

    @classmethod
    def load(cls, path: str | os.PathLike[str], unknown: str | None = None) -> Vocabulary:
        """Of a file with one token a line."""
        with open(path, encoding="utf-8", newline="\n") as file:
            return cls(file.read().removesuffix("\n").split("\n"), unknown)

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __repr__(self) -> str:
        return f"jt.data.Vocabulary(<{len(self)} tokens>, unknown={self.unknown!r})"


class ByteTokenizer:
    """Texts as the bytes of their UTF-8, numbers 0 to 255; special tokens have the numbers above.

    >>> tokenizer = jt.data.ByteTokenizer(special=("<end>",))
    >>> tokenizer.encode("hé", "<end>")
    array([104, 195, 169, 256])
    >>> tokenizer.decode([104, 195, 169, 256]), len(tokenizer)
    ('hé', 257)
    """

    def __init__(self, special: Sequence[str] = ()) -> None:
        self.special = {token: 256 + i for i, token in enumerate(special)}

    def encode(self, text: str | bytes, *end: str) -> Array:
        """The numbers of a text, then those of special tokens, int64."""
        data = text.encode() if isinstance(text, str) else text
        unknown = [token for token in end if token not in self.special]
        if unknown:
            what = f"{unknown[0]!r} is no special token of this tokenizer"
            refuse(what, f"make it with them: ByteTokenizer(special=({unknown[0]!r},)).")
        tail = [self.special[token] for token in end]
        return np.concatenate([np.frombuffer(data, np.uint8), np.array(tail, np.int64)])

    def decode(self, ids: Iterable[Any], errors: str = "replace") -> str:
        """The text of numbers, without the special tokens."""
        return bytes(int(i) for i in ids if i < 256).decode("utf-8", errors)

    def __len__(self) -> int:
        return 256 + len(self.special)
