"""Attention: reading from places that are chosen by how well they answer a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from .activations import softmax
from .dropout import Dropout
from .faults import Array, complain, refuse
from .initializers import GLOROT, generator
from .linear import Linear, check_features
from .module import Module

LOW = -1e30  # of scores that a mask hides; a row of nothing else averages all


class KeyValueCache:
    """The keys and values of the places that a decoder has seen, for those that come.

    `key` and `value` are arrays (batch, length, heads, features), of which the first `used` places are
    filled. A call of attention with `cache=` writes into them, in place, also in compiled code; one
    place too many is an IndexError. `nn.MultiHeadAttention.cache` makes an empty one.
    """

    def __init__(self, key: Array, value: Array, used: int = 0) -> None:
        self.key, self.value, self.used = key, value, used

    def append(self, key: Array, value: Array) -> None:
        """Write the keys and values of the next places."""
        end = self.used + key.shape[1]
        if isinstance(end, int) and end > self.key.shape[1]:
            complain(
                IndexError,
                f"the cache has {self.key.shape[1]} places, and place {end - 1} is asked for",
                "make it longer: cache(batch, length).",
            )
        self.key[:, self.used : end] = key
        self.value[:, self.used : end] = value
        self.used = end


class MultiHeadAttention(Module):
    """Attention with several heads: of each place to all of the same sequence, or to those of another.

    `nn.MultiHeadAttention(8)` has 8 heads and as many features as the first query; `(8, 512)` says it.

    - `kv_heads`: fewer heads of keys and values, which divide `heads`, each for several queries.
    - `head_features`: of each head; `features / heads` by default.
    - `key_features`: that keys and values come with, where these are others than those of the queries.
    - `causal`: whether place t sees the places 0..t only.
    - `dropout`: the rate at which weights are dropped in training.
    - `bias`, `w_init`, `dtype`, `rng`: of the four products, `query`, `key`, `value` and `out`, each a
      `nn.Linear`. (PyTorch's `in_proj_weight` is the first three, transposed, one below the other.)

    Called with `query`, (batch, T, features), with `key`, (batch, S, ...), where keys and values come
    from elsewhere, and `value` where these differ; `key` may also be what `remember` made of it. `mask`
    is bool, True where a place may be seen, of the shape (T, S), (batch, T, S) or (batch, heads, T, S),
    or one that broadcasts to it. (PyTorch's bool masks of modules are the other way round.) With
    `cache=` the keys and values of `query` are added to it, and all that it has are seen.

    >>> attend = jt.nn.MultiHeadAttention(2, causal=True)
    >>> attend(np.ones((1, 5, 8), np.float32)).shape
    (1, 5, 8)
    """

    def __init__(
        self,
        heads: int,
        features: int | None = None,
        *,
        kv_heads: int | None = None,
        head_features: int | None = None,
        key_features: int | None = None,
        causal: bool = False,
        dropout: float = 0.0,
        bias: bool = True,
        w_init: Any = GLOROT,
        dtype: Any = np.float32,
        rng: Any = None,
    ) -> None:
        self.heads, self.kv_heads = heads, heads if kv_heads is None else kv_heads
        if heads < 1 or self.kv_heads < 1 or heads % self.kv_heads:
            complain(
                ValueError,
                f"MultiHeadAttention: kv_heads={kv_heads} do not divide heads={heads}",
                "choose kv_heads that divide heads, both at least 1.",
            )
        self.head_features, self.causal = head_features, causal
        self.features = features
        rng = generator(rng)
        self.dropout = Dropout(dropout, rng=rng) if dropout else None
        self.query: Any = None
        self.key: Any = None
        self.value: Any = None
        self.out: Any = None
        settings = {"bias": bias, "w_init": w_init, "dtype": dtype, "rng": rng}
        self.linear: Any = lambda *sizes: Linear(*sizes, **settings)
        if features is not None:
            self.make(features, key_features or features)

    def make(self, features: int, others: int, values: int | None = None) -> None:
        """The four products, for queries, keys and values with so many features."""
        if self.head_features is None:
            if features % self.heads:
                refuse(
                    self,
                    f"has {self.heads} heads, which do not divide {features} features",
                    "choose heads that divide them, or give head_features=.",
                    ValueError,
                )
            self.head_features = features // self.heads
        self.features = features
        shared = self.kv_heads * self.head_features
        self.query = self.linear(features, self.heads * self.head_features)
        self.key = self.linear(others, shared)
        self.value = self.linear(values or others, shared)
        self.out = self.linear(self.heads * self.head_features, features)
        del self.linear
        self.built = "by sizes"

    def build(self, query: Array, key: Any = None, value: Any = None, **more: Any) -> None:
        if self.query is None:
            self._check_rank(query)
            features = check_features(self, query)
            others = features if key is None else check_features(self, key)
            self.make(features, others, None if value is None else check_features(self, value))

    def cache(self, batch: int, length: int, dtype: Any = np.float32) -> KeyValueCache:
        """An empty cache for `length` places; the layer has to know its features."""
        shape = (batch, length, self.kv_heads, self.head_features)
        if self.head_features is None:
            refuse(
                self,
                "does not know its features yet, and cannot make a cache",
                "say nn.MultiHeadAttention(heads, features), or call the layer once.",
                ValueError,
            )
        return KeyValueCache(np.zeros(shape, dtype), np.zeros(shape, dtype))

    def remember(self, key: Array, value: Array | None = None) -> KeyValueCache:
        """The keys and values of another sequence, to be read many times: `attend(x, remembered)`."""
        k, v = self._parts(self.key(key)), self._parts(self.value(key if value is None else value))
        return KeyValueCache(k, v, key.shape[1])

    def __call__(
        self,
        query: Array,
        key: Any = None,
        value: Array | None = None,
        *,
        mask: Array | None = None,
        causal: bool | None = None,
        cache: KeyValueCache | None = None,
    ) -> Array:
        self._check_rank(query)
        causal = self.causal if causal is None else causal
        q = self._parts(self.query(query))
        known = key if isinstance(key, KeyValueCache) else None
        if known is None:
            known = self.remember(query if key is None else key, value)
        k, v = known.key, known.value
        if cache is not None:
            seen = _reached(cache, q.shape[1], causal)
            cache.append(k, v)
            k, v, causal = cache.key, cache.value, False
            mask = seen if mask is None else mask & seen
        mask = self._mask(mask, (q.shape[0], self.heads, q.shape[1], k.shape[1]), query)
        y = self._read(q, k, v, mask, causal)
        return self.out(jt.reshape(y, (*y.shape[:2], -1)))

    def _check_rank(self, query: Array) -> None:
        if np.ndim(query) != 3:
            refuse(
                self,
                f"needs the dims (batch, places, features), and query has {np.ndim(query)}",
                "give it three dims: x[None] is a batch of one; jt.vmap adds others.",
                query=query,
            )

    def _parts(self, x: Array) -> Array:
        """(batch, places, heads, features of a head)"""
        return jt.reshape(x, (*x.shape[:2], -1, self.head_features))

    def _mask(self, mask: Any, scores: tuple[int, ...], query: Array) -> Any:
        """A mask with an axis for the heads, or None; raises ShapeError if it is for other places."""
        if mask is None:
            return None
        shape = np.shape(mask)
        whole = (shape[0], 1, *shape[1:]) if len(shape) == 3 else shape
        pairs = zip(reversed(whole), reversed(scores), strict=False)
        if len(shape) > 4 or len(shape) < 2 or any(m not in (1, n) for m, n in pairs):
            refuse(
                self,
                f"has scores (batch, heads, T, S) of shape {scores}, and a mask of shape {shape}",
                "give it the shape (T, S), (batch, T, S) or (batch, heads, T, S); "
                "mask[:, None, :] hides places of keys, (batch, S).",
                mask=mask,
                query=query,
            )
        return jt.reshape(mask, whole)

    def _read(self, q: Array, k: Array, v: Array, mask: Any, causal: bool) -> Array:
        if self.dropout is None or not self.training:
            return jt.dot_product_attention(q, k, v, mask=mask, is_causal=causal)
        share = self.heads // self.kv_heads
        if share > 1:
            k, v = jt.repeat(k, share, axis=2), jt.repeat(v, share, axis=2)
        scores = jt.einsum("btnh,bsnh->bnts", q, k) * q.shape[-1] ** -0.5
        if causal:
            before = jt.tri(scores.shape[-2], scores.shape[-1], dtype=bool)
            mask = before if mask is None else mask & before
        if mask is not None:
            scores = jt.where(mask, scores, LOW)
        return jt.einsum("bnts,bsnh->btnh", self.dropout(softmax(scores)), v)


class AttentiveRead(Module):
    """What a query finds in a memory: the mean of its slots, weighted by the softmax of their scores.

    `scores` gives a number for each pair of a slot and the query, which it gets as one array, the
    features of both behind each other: a module that ends in one feature.

    Called with `memory`, (batch, slots, features), `query`, (batch, features), and `mask`, (batch,
    slots), True where there is something to be read; gives what is read, (batch, features), and the
    weights, (batch, slots).

    >>> read = jt.nn.AttentiveRead(jt.nn.Sequential(jt.nn.Linear(8), jt.nn.tanh, jt.nn.Linear(1)))
    >>> found, weights = read(np.ones((2, 5, 3), np.float32), np.ones((2, 4), np.float32))
    >>> found.shape, weights.shape
    ((2, 3), (2, 5))
    """

    def __init__(self, scores: Callable[[Any], Any]) -> None:
        self.scores = scores

    def __call__(
        self, memory: Array, query: Array, mask: Array | None = None
    ) -> tuple[Array, Array]:
        both = {"memory": memory, "query": query}
        if np.ndim(memory) != 3 or np.ndim(query) != 2 or memory.shape[0] != query.shape[0]:
            what = "reads a memory (batch, slots, features) for a query (batch, features)"
            refuse(self, what, "give these dims, of one batch.", **both)
        asked = jt.broadcast_to(query[:, None], (*memory.shape[:2], query.shape[-1]))
        scores = self.scores(jt.concatenate([memory, asked], axis=-1))
        if scores.shape[-1] != 1:
            what = f"needs a score for each slot, and its scores end in {scores.shape[-1]} features"
            refuse(self, what, "let them end in nn.Linear(1).", **both)
        scores = scores[..., 0]
        weights = softmax(scores if mask is None else jt.where(mask, scores, LOW))
        return (weights[..., None] * memory).sum(axis=1), weights


def _reached(cache: KeyValueCache, rows: int, causal: bool) -> Array:
    """Which places of a cache the next `rows` places see, (rows, length)."""
    own = jt.arange(rows) if causal else jt.full(rows, rows - 1)
    return jt.arange(cache.key.shape[1])[None] <= (cache.used + own)[:, None]
