"""Normalisation: batch, layer, group, instance and RMS; and weights that are normalised.

Each divides by a standard deviation and then has a `scale` and a `shift` of its own for each feature,
which begin as 1 and 0; `affine=False` leaves both out. Statistics of 16-bit floats are float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import jitney as jt

from .faults import Array, complain, refuse
from .initializers import starting
from .linear import check_features
from .module import Module


def normalize(x: Array, axis: int | Sequence[int] = -1, eps: float = 1e-5) -> Array:
    """x less its mean along `axis`, over its standard deviation: `eps` is added to the variance.

    >>> jt.nn.normalize(np.array([1.0, 3.0]), eps=0)
    array([-1.,  1.])
    """
    wide = _wide(x)
    apart, power, _ = _moments(wide, axis)
    return (apart * (1 / jt.sqrt(power + eps))).astype(x.dtype)


def _wide(x: Array) -> Array:
    """x, with floats of 16 bits as float32 and integers as float64."""
    return x.astype(jt.result_type(x.dtype, jt.float32)) if x.dtype != np.float32 else x


def _moments(x: Array, axis: Any) -> tuple[Array, Array, Array]:
    """x less its mean, its variance, and its mean, along axes that stay in with size 1."""
    axis = axis if isinstance(axis, int) else tuple(axis)
    mean = jt.mean(x, axis=axis, keepdims=True)
    apart = x - mean
    return apart, jt.mean(apart * apart, axis=axis, keepdims=True), mean


class BatchNorm(Module):
    """Each channel normalised over the batch and all spatial dims, of any number.

    In training by the batch's mean and variance, which also go into the running ones, `mean` and
    `var`: `decay` of what they were, and the rest of the batch's. Under `eval()` by the running ones.
    `training` in the call is for it instead: a bool, or a traced one. (Keras calls `decay` momentum;
    PyTorch's momentum is `1 - decay`.) As in PyTorch the running variance is the unbiased one.

    - `features`: the channels; left out, the first call finds out.
    - `channels_last`: whether they are the last axis, and not axis 1.

    Raises jt.errors.ShapeError for other channels, or in training for a batch of one number a channel.

    >>> norm = jt.nn.BatchNorm(2)
    >>> y = norm(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> np.round(y, 3), norm.mean
    (array([[-1.,  0.],
           [ 1.,  0.]]), array([0.2, 0.5], dtype=float32))
    """

    buffers = ("mean", "var")

    def __init__(
        self,
        features: int | None = None,
        *,
        decay: float = 0.9,
        eps: float = 1e-5,
        affine: bool = True,
        channels_last: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        self.decay, self.eps, self.channels_last = decay, eps, channels_last
        self.scale: Array = None
        self.shift: Array = None
        self.mean: Array = None
        self.var: Array = None
        own = {"scale": 1, "shift": 0} if affine else {}
        self.start: Any = starting(dtype, None, mean=0, var=1, **own)
        if features is not None:
            self.make(features)

    def make(self, features: int) -> None:
        """The parameters and the running state, for so many channels."""
        self.start(self, **dict.fromkeys(("scale", "shift", "mean", "var"), (features,)))

    def build(self, x: Array, training: Any = None) -> None:
        if self.mean is None:
            self.make(check_features(self, x, None, -1 if self.channels_last else 1))

    def __call__(self, x: Array, training: Any = None) -> Array:
        at = -1 if self.channels_last else 1
        features = check_features(self, x, self.mean.shape[0], at)
        training = self.training if training is None else training
        rank = np.ndim(x)
        axes = tuple(d for d in range(rank) if d != at % rank)
        along = [1] * rank
        along[at] = features
        wide = _wide(x)
        if training is False or (isinstance(training, np.bool_) and not training):
            return self._scaled(wide - self.mean.reshape(along), self.var, along).astype(x.dtype)
        count = int(np.prod([x.shape[d] for d in axes]))
        if count < 2 and isinstance(training, (bool, np.bool_)):
            refuse(
                self,
                f"in training needs more than {count} number for each channel",
                "give it a larger batch, or call model.eval() first.",
                x=x,
            )
        apart, power, mean = _moments(wide, axes)
        mean, var = mean.reshape(-1), power.reshape(-1)
        step = 1 - self.decay
        if isinstance(training, (bool, np.bool_)):
            self._track(step, mean, var * (count / max(count - 1, 1)))
            return self._scaled(apart, var, along).astype(x.dtype)
        chosen = jt.where(training, var, self.var)
        apart = wide - jt.where(training, mean, self.mean).reshape(along)
        self._track(jt.where(training, step, 0), mean, var * (count / max(count - 1, 1)))
        return self._scaled(apart, chosen, along).astype(x.dtype)

    def _track(self, step: Any, mean: Array, var: Array) -> None:
        """Let the running state go a step towards a batch's."""
        mean, var = jt.stop_gradient(mean), jt.stop_gradient(var)
        self.mean += (step * (mean - self.mean)).astype(self.mean.dtype)
        self.var += (step * (var - self.var)).astype(self.var.dtype)

    def _scaled(self, apart: Array, var: Array, along: list[int]) -> Array:
        """What is apart from the mean, over the standard deviation, with scale and shift."""
        factor = 1 / jt.sqrt(var + self.eps)
        if self.scale is None:
            return apart * factor.reshape(along)
        return apart * (factor * self.scale).reshape(along) + self.shift.reshape(along)


class LayerNorm(Module):
    """Each element of the batch normalised over its features: the last axis, or the last of `shape`.

    `nn.LayerNorm()` finds out at the first call how many there are, `nn.LayerNorm(16)` says it, and
    `nn.LayerNorm((16, 8))` is over two axes.

    Raises jt.errors.ShapeError for other features.

    >>> jt.nn.LayerNorm()(np.array([[1.0, 3.0]], np.float32)).round(3)
    array([[-1.,  1.]], dtype=float32)
    """

    def __init__(
        self,
        shape: int | Sequence[int] | None = None,
        *,
        eps: float = 1e-5,
        affine: bool = True,
        shift: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        self.eps = eps
        self.scale: Array = None
        self.shift: Array = None
        self.shape: tuple[int, ...] | None = None
        own = {"scale": 1 if affine else None, "shift": 0 if affine and shift else None}
        self.start: Any = starting(dtype, None, **own)
        if shape is not None:
            self.make((shape,) if isinstance(shape, int) else tuple(shape))

    def make(self, shape: tuple[int, ...]) -> None:
        """The parameters, for features of that shape."""
        self.shape = shape
        self.start(self, scale=shape, shift=shape)

    def build(self, x: Array) -> None:
        if self.shape is None:
            self.make((check_features(self, x),))

    def axes(self, x: Array) -> tuple[int, ...]:
        """The axes that are normalised over; raises ShapeError if x has others."""
        shape = self.shape or ()
        if np.shape(x)[-len(shape) :] != shape:
            refuse(
                self,
                f"was made for features of shape {shape}, and x ends in "
                f"{np.shape(x)[-len(shape) :]}",
                "give it such features, or leave the size out for it to be found.",
                x=x,
            )
        return tuple(range(-len(shape), 0))

    def __call__(self, x: Array) -> Array:
        axes = self.axes(x)
        return _affine(self, normalize(x, axes[0] if len(axes) == 1 else axes, self.eps))


class RMSNorm(LayerNorm):
    """As `nn.LayerNorm`, without mean and shift: features over their root mean square.

    >>> jt.nn.RMSNorm()(np.array([[3.0, 4.0]], np.float32)).round(3)
    array([[0.849, 1.131]], dtype=float32)
    """

    def __init__(
        self,
        shape: int | Sequence[int] | None = None,
        *,
        eps: float = 1e-6,
        affine: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        LayerNorm.__init__(self, shape, eps=eps, affine=affine, shift=False, dtype=dtype)

    def __call__(self, x: Array) -> Array:
        wide = _wide(x)
        power = jt.mean(wide * wide, axis=self.axes(x), keepdims=True)
        return _affine(self, (wide * (1 / jt.sqrt(power + self.eps))).astype(x.dtype))


class GroupNorm(Module):
    """Channels in `groups`, each group normalised over its channels and all spatial dims.

    Raises jt.errors.ShapeError for other channels, or where `groups` does not divide them.

    >>> jt.nn.GroupNorm(2, 8)(np.ones((1, 8, 4, 4), np.float32)).shape
    (1, 8, 4, 4)
    """

    def __init__(
        self,
        groups: int | None,
        features: int | None = None,
        *,
        eps: float = 1e-5,
        affine: bool = True,
        channels_last: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        if groups is not None and (groups < 1 or (features or 0) % groups):
            complain(
                ValueError,
                f"GroupNorm: groups={groups} do not divide {features} channels",
                "choose groups that do.",
            )
        self.groups, self.features, self.eps = groups, features, eps
        self.channels_last = channels_last
        self.scale: Array = None
        self.shift: Array = None
        own = {"scale": 1, "shift": 0} if affine else {}
        self.start: Any = starting(dtype, None, **own)
        if features is not None:
            self.make(features)

    def make(self, features: int) -> None:
        """The parameters, for so many channels."""
        self.features = features
        self.start(self, scale=(features,), shift=(features,))

    def build(self, x: Array) -> None:
        if self.features is None:
            self.make(check_features(self, x, None, -1 if self.channels_last else 1))

    def __call__(self, x: Array) -> Array:
        rank = np.ndim(x)
        at = rank - 1 if self.channels_last else 1
        features = check_features(self, x, self.features, at)
        groups = self.groups or features
        if features % groups:
            refuse(
                self,
                f"has {groups} groups, which do not divide the {features} channels of x",
                "choose groups= that divide them.",
                x=x,
            )
        split = (*x.shape[:at], groups, features // groups, *x.shape[at + 1 :])
        axes = tuple(d for d in range(1, rank + 1) if d != at)
        y = normalize(x.reshape(split), axes, self.eps).reshape(x.shape)
        return _affine(self, y, 0 if self.channels_last else rank - 2)


class InstanceNorm(GroupNorm):
    """Each channel of each element of the batch normalised over the spatial dims.

    >>> jt.nn.InstanceNorm()(np.ones((1, 8, 4, 4), np.float32)).shape
    (1, 8, 4, 4)
    """

    def __init__(
        self, features: int | None = None, *, affine: bool = False, **settings: Any
    ) -> None:
        GroupNorm.__init__(self, None, features, affine=affine, **settings)


def _affine(layer: Any, y: Array, behind: int = 0) -> Array:
    """`y` with a layer's scale and shift, if it has them, before so many more dims."""
    for name in ("scale", "shift"):
        own = getattr(layer, name)
        if own is not None:
            own = own.reshape(*own.shape, *(1,) * behind)
            y = y * own if name == "scale" else y + own
    return y


class SpectralNorm(Module):
    """A layer whose weight is divided by its greatest singular value, so that it stretches nothing.

    The weight of `layer`, called `name`, is taken as a matrix with the last axis as its columns. The
    value is found by power iteration: `steps` in each call in training, from the vector of the call
    before, in `u`. Discriminators of GANs are made of such layers.

    >>> layer = jt.nn.SpectralNorm(jt.nn.Linear(2, 2, w_init=np.diag([3.0, 1.0])), steps=20)
    >>> layer(np.eye(2, dtype=np.float32)).round(3)
    array([[1.   , 0.   ],
           [0.   , 0.333]], dtype=float32)
    """

    buffers = ("u",)

    def __init__(self, layer: Any, *, name: str = "w", steps: int = 1, rng: Any = None) -> None:
        if not hasattr(layer, name):
            complain(
                AttributeError,
                f"SpectralNorm: {type(layer).__name__} has no weight {name!r}",
                f"give name= of one of {', '.join(vars(layer))}.",
            )
        self.layer, self.name, self.steps = layer, name, steps
        self.u: Array = None
        self.start: Any = starting(np.float32, rng, u=lambda s, d, r: r.standard_normal(s))

    def build(self, *inputs: Array) -> None:
        if getattr(self.layer, self.name) is None:
            self.layer.build(*inputs)
        if self.u is None:
            w = getattr(self.layer, self.name)
            self.start(self, u=w.shape[-1:])

    def __call__(self, *inputs: Any) -> Any:
        w = getattr(self.layer, self.name)
        matrix = w.reshape(-1, w.shape[-1])
        still, u = jt.stop_gradient(matrix), self.u
        for _ in range(self.steps if self.training else 0):
            v = _unit(still @ u)
            u = _unit(v @ still)
        self.u = jt.stop_gradient(u).astype(self.u.dtype)
        v = _unit(still @ u)
        setattr(self.layer, self.name, w / (v @ matrix @ jt.stop_gradient(u)))
        try:
            return self.layer(*inputs)
        finally:
            setattr(self.layer, self.name, w)


def _unit(x: Array) -> Array:
    return x / (jt.sqrt((x * x).sum()) + 1e-12)
