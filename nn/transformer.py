"""Transformers: blocks of attention and a small network for each place, and stacks of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from .activations import gelu, glu
from .attention import KeyValueCache, MultiHeadAttention
from .dropout import Dropout
from .faults import Array, complain, refuse
from .initializers import generator
from .linear import Linear, check_features
from .module import Module
from .normalization import LayerNorm


class TransformerBlock(Module):
    """Attention, and a network of two products for each place, each beside a shortcut.

    `nn.TransformerBlock(8)` has 8 heads, and as many features as come in; `(8, 512)` says it.

    - `hidden`: features between the two products; 4 times as many by default.
    - `gated`: whether half of what the first product gives, through the `activation`, is the gate of the
      other half: with `nn.silu` this is SwiGLU.
    - `norm_first`: whether what goes in is normalised (as GPT has it), or what comes out (as the first
      paper, and by default PyTorch). `norm` makes the normalisation: `nn.RMSNorm`, ...
    - `causal`: whether places see those before them only. `cross`: whether there also is attention to a
      `memory`, from an encoder.
    - `dropout`: the rate, after each part and of the attention's weights.
    - `kv_heads`, `bias`, `dtype`, `rng`: as those of `nn.MultiHeadAttention`.

    Called with x, (batch, places, features), `memory` if there is `cross`, the masks of both, and
    `cache=`, as `nn.MultiHeadAttention` is.

    >>> block = jt.nn.TransformerBlock(2, 8, causal=True)
    >>> block(np.ones((1, 5, 8), np.float32)).shape
    (1, 5, 8)
    """

    def __init__(
        self,
        heads: int,
        features: int | None = None,
        *,
        hidden: int | None = None,
        activation: Callable[[Any], Any] = gelu,
        gated: bool = False,
        norm_first: bool = True,
        norm: Callable[..., Any] = LayerNorm,
        causal: bool = False,
        cross: bool = False,
        dropout: float = 0.0,
        kv_heads: int | None = None,
        bias: bool = True,
        dtype: Any = np.float32,
        rng: Any = None,
    ) -> None:
        rng = generator(rng)
        self.hidden, self.norm_first = hidden, norm_first
        self.activation, self.gated = activation, gated
        more = {"kv_heads": kv_heads, "dropout": dropout, "bias": bias, "dtype": dtype, "rng": rng}
        self.attention = MultiHeadAttention(heads, features, causal=causal, **more)
        self.attention_norm = norm(features, dtype=dtype)
        self.cross = MultiHeadAttention(heads, features, **more) if cross else None
        self.cross_norm = norm(features, dtype=dtype) if cross else None
        self.up: Any = None
        self.down: Any = None
        self.network_norm = norm(features, dtype=dtype)
        self.dropout = Dropout(dropout, rng=rng) if dropout else None
        self.linear: Any = lambda *sizes: Linear(*sizes, bias=bias, dtype=dtype, rng=rng)
        if features is not None:
            self.make(features)

    def make(self, features: int) -> None:
        """The network, for so many features."""
        hidden = self.hidden or 4 * features
        self.up = self.linear(features, 2 * hidden if self.gated else hidden)
        self.down = self.linear(hidden, features)
        del self.linear
        self.built = "by sizes"

    def build(self, x: Array, *others: Any, **more: Any) -> None:
        if self.up is None:
            self.make(check_features(self, x))

    def __call__(
        self,
        x: Array,
        memory: Any = None,
        *,
        mask: Array | None = None,
        memory_mask: Array | None = None,
        cache: KeyValueCache | None = None,
    ) -> Array:
        if (memory is None) != (self.cross is None):
            refuse(
                self,
                "with cross=True needs a memory"
                if memory is None
                else "without cross attention was given a memory",
                "call block(x, memory) of a block made with cross=True, and block(x) of another.",
                jt.errors.ArgumentError,
                x=x,
            )
        x = self._beside(
            x, self.attention_norm, lambda h: self.attention(h, mask=mask, cache=cache)
        )
        if self.cross is not None:
            cross = self.cross
            x = self._beside(x, self.cross_norm, lambda h: cross(h, memory, mask=memory_mask))
        return self._beside(x, self.network_norm, self._network)

    def _beside(self, x: Array, norm: Any, part: Callable[[Any], Any]) -> Array:
        """x and a part of it, normalised before or after."""
        y = part(norm(x) if self.norm_first else x)
        y = x + (y if self.dropout is None else self.dropout(y))
        return y if self.norm_first else norm(y)

    def _network(self, x: Array) -> Array:
        y = self.up(x)
        y = glu(y, gate=self.activation) if self.gated else self.activation(y)
        return self.down(y if self.dropout is None else self.dropout(y))


class TransformerEncoder(Module):
    """`depth` blocks one after the other, and a last normalisation, if they normalise first.

    Settings are those of `nn.TransformerBlock`; called as it is, with `cache=self.cache(...)`.

    >>> encoder = jt.nn.TransformerEncoder(2, heads=2, features=8)
    >>> encoder(np.ones((1, 5, 8), np.float32)).shape
    (1, 5, 8)
    """

    def __init__(
        self,
        depth: int,
        heads: int,
        features: int | None = None,
        *,
        norm_first: bool = True,
        norm: Callable[..., Any] = LayerNorm,
        dtype: Any = np.float32,
        rng: Any = None,
        **settings: Any,
    ) -> None:
        rng = generator(rng)
        settings = {**settings, "norm_first": norm_first, "norm": norm, "dtype": dtype, "rng": rng}
        self.blocks = [TransformerBlock(heads, features, **settings) for _ in range(depth)]
        self.norm = norm(features, dtype=dtype) if norm_first else None

    def cache(self, batch: int, length: int, dtype: Any = np.float32) -> list[KeyValueCache]:
        """Empty caches for `length` places, one for each block; see `nn.MultiHeadAttention`."""
        return [block.attention.cache(batch, length, dtype) for block in self.blocks]

    def remember(self, memory: Array) -> list[KeyValueCache]:
        """What each block makes of a memory, to be read in many calls: `self(x, remembered)`."""
        return [block.cross.remember(memory) for block in self.blocks if block.cross is not None]

    def __call__(
        self,
        x: Array,
        memory: Any = None,
        *,
        cache: list[KeyValueCache] | None = None,
        **masks: Any,
    ) -> Array:
        for i, block in enumerate(self.blocks):
            own = memory[i] if isinstance(memory, list) else memory
            x = block(x, own, cache=None if cache is None else cache[i], **masks)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(TransformerEncoder):
    """A stack whose places see those before them, and, unless `cross=False`, a memory.

    >>> decoder = jt.nn.TransformerDecoder(2, heads=2, features=8)
    >>> decoder(np.ones((1, 3, 8), np.float32), np.ones((1, 5, 8), np.float32)).shape
    (1, 3, 8)
    """

    def __init__(
        self, depth: int, heads: int, *sizes: int, cross: bool = True, **more: Any
    ) -> None:
        TransformerEncoder.__init__(
            self, depth, heads, *sizes, **{"causal": True, **more, "cross": cross}
        )


def sinusoids(length: int, features: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """The sines and cosines of places 0..length-1, (length, features), to be added to embeddings.

    The first half are sines, the others cosines, of periods from 2 pi to 10000 times that.

    >>> jt.nn.sinusoids(2, 4).round(3)
    array([[0.   , 0.   , 1.   , 1.   ],
           [0.841, 0.01 , 0.54 , 1.   ]], dtype=float32)
    """
    if features % 2:
        complain(ValueError, f"sinusoids: features={features} is odd", "half of them are sines.")
    angles = np.arange(length)[:, None] * 10000.0 ** -(np.arange(0, features, 2) / features)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(dtype)
