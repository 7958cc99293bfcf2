"""`shard_map` on processes, against the same program emulated in one, and against whole arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt
from jitney.distributed.sharding import Mesh

comm = jt.distributed.init(timeout=60)
P = jt.distributed.P
SHAPE = {"data": 2, "model": 2}
meshes = [Mesh(None, SHAPE)]
if comm.size == 4:
    meshes.append(jt.distributed.mesh(**SHAPE))
rng = np.random.default_rng(0)
x, w, b = rng.normal(size=(4, 6)), rng.normal(size=(6, 8)), rng.normal(size=8)


def layer(params: Any, x: Any) -> Any:
    total = jt.psum(x @ params["w"], "model")
    y = np.tanh(total + params["b"])
    return y, jt.pmean((y**2).mean(), "data"), jt.axis_index("data") + 0 * y[:, 0]


def whole(params: Any, x: Any) -> Any:
    y = np.tanh(x @ params["w"] + params["b"])
    return y, (y**2).mean(), np.repeat([0.0, 1.0], 2)


SPECS = (({"w": P("model"), "b": P()}, P("data", "model")), (P("data"), P(), P("data")))
TURNED = (P(None, ("data", "model")), P(("model", "data")))
params = {"w": w, "b": b}
for mesh in meshes:
    f = jt.shard_map(layer, mesh, *SPECS)

    def loss(params: Any, x: Any) -> Any:
        y, mean, _ = f(params, x)  # noqa: B023
        return np.sin(y).sum() * mean

    def wanted(params: Any, x: Any) -> Any:
        y, mean, _ = whole(params, x)
        return np.sin(y).sum() * mean

    for how in (lambda f: f, jt.jit):
        for got, want in zip(how(f)(params, x), whole(params, x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
        for got, want in zip(
            jt.tree.leaves(how(jt.grad(loss, (0, 1)))(params, x)),
            jt.tree.leaves(jt.grad(wanted, (0, 1))(params, x)),
            strict=True,
        ):
            np.testing.assert_allclose(got, want, rtol=1e-10)
    turned = jt.shard_map(lambda v: v.sum(0) + 0 * jt.axis_index("model"), mesh, *TURNED)
    v = np.arange(24.0).reshape(3, 8)
    want = v.sum(0).reshape(2, 2, 2).swapaxes(0, 1).reshape(8)
    np.testing.assert_allclose(jt.jit(turned)(v), want)
print("right", comm.rank)
