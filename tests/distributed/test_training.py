"""Data parallelism: gradients as on one process, bit for bit where asked, checkpoints across sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folders import ROOT
from launching import WAYS, launched

import jitney as jt


@pytest.mark.parametrize("way", WAYS)
def test_shards_on_processes_are_those_of_one(way: str, all_cases: bool) -> None:
    results = launched(way, "shards.py", count=4 if all_cases else 1)
    said = "\n".join(said for _, said in results)
    assert all(status == 0 for status, _ in results) and said.count("right") >= 1, said


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("killed", [False, True])
def test_another_number_of_processes_goes_on_with_the_same_bits(
    way: str, killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_cases: bool
) -> None:
    if not killed and not all_cases:
        pytest.skip("with --cases=all")
    pytest.importorskip("sklearn")
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import train_digits_mpi

    alone = train_digits_mpi.main(6, 32, True)
    results = launched(way, "training.py", str(tmp_path), "4", *["kill"] * killed, count=2)
    said = "\n".join(said for _, said in results)
    if killed:
        assert any(status != 0 for status, _ in results), said
        assert "losses 0" not in said
        assert list(jt.train.steps(tmp_path)) == [2]
    else:
        assert all(status == 0 for status, _ in results), said
        for rank in range(2):
            assert f"losses {rank} " + " ".join(x.hex() for x in alone[:4]) in said
    again = train_digits_mpi.main(6, 32, True, str(tmp_path), save_every=2)
    assert again == alone[2 if killed else 4 :]


def test_every_element_is_one_process_s_and_counts_once() -> None:
    class Member:
        def __init__(self, rank: int, size: int) -> None:
            self.rank, self.size = rank, size

    for size in (1, 3, 4):
        data = jt.data.range(10).shuffle(10, seed=1)
        parts = [list(data.shard(Member(r, size))) for r in range(size)]
        assert sorted(x for part in parts for x in part) == list(range(10))
    with pytest.raises(ValueError, match="without an index"):
        jt.data.range(3).shard(2)


def test_deterministic_gradients_are_the_mean_of_parts() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(24, 5)), rng.normal(size=5)

    def loss(w: Any, x: Any) -> Any:
        return (np.tanh(x @ w) ** 2).mean()

    plain = jt.distributed.data_parallel(jt.value_and_grad(loss))
    fixed = jt.distributed.data_parallel(jt.value_and_grad(loss), deterministic=True, shards=4)
    for f in (plain, jt.jit(plain), fixed, jt.jit(fixed)):
        value, gradient = f(w, x)
        np.testing.assert_allclose(value, loss(w, x), rtol=1e-13)
        np.testing.assert_allclose(gradient, jt.grad(loss)(w, x), rtol=1e-12)
    with pytest.raises(jt.errors.ShapeError, match="dealt into 4 parts"):
        fixed(w, x[:6])
    with pytest.raises(jt.errors.SettingError, match="0 shards"):
        jt.distributed.data_parallel(loss, deterministic=True, shards=0)
    with pytest.raises(jt.errors.SettingError, match="without deterministic"):
        jt.distributed.data_parallel(loss, shards=4)


def test_messages_are_as_large_as_asked() -> None:
    from jitney.distributed.data_parallel import _buckets

    leaves = [
        np.zeros(n, t) for n, t in ((10, "f4"), (20, "f8"), (30, "f4"), (5, "f4"), (100, "f4"))
    ]
    assert _buckets(leaves, 160) == [[4], [3, 2], [1], [0]]
    assert _buckets(leaves, 1 << 20) == [[4, 3, 2, 0], [1]]


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "axis": ((jt.distributed.P("k"), jt.distributed.P()), jt.errors.UnboundAxisError, "the axes i"),
    "size": (
        (jt.distributed.P(None, "i"), jt.distributed.P()),
        jt.errors.ShapeError,
        "into 2 parts",
    ),
    "count": (
        ((jt.distributed.P(), jt.distributed.P()), jt.distributed.P()),
        jt.errors.TransformError,
        "2 entries for 1 arguments",
    ),
    "kind": (("i", jt.distributed.P()), jt.errors.TransformError, "give a P"),
    "differs": ((jt.distributed.P("i"), jt.distributed.P()), jt.errors.TransformError, "differs"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_shard_map_refuses(name: str) -> None:
    specs, kind, said = WRONG[name]
    mesh = jt.distributed.mesh(i=2)
    with pytest.raises(kind, match=said):
        jt.shard_map(lambda x: x + 1, mesh, *specs)(np.ones((4, 3)))
    with pytest.raises(jt.errors.SettingError, match="a mesh with the axes"):
        jt.distributed.mesh(i=0)
