"""The programs of docs/gallery at tiny sizes: compiled, each gives what it gives undecorated."""

import runpy
from types import SimpleNamespace

import numpy as np
import pytest
from folders import ROOT

import jitney as jt

GALLERY = ROOT / "docs" / "gallery"
build = SimpleNamespace(**runpy.run_path(str(GALLERY / "build.py"), run_name="build"))

TINY = {
    "alignment": {"n": 12},
    "black_scholes": {"paths": 6, "days": 3, "points": 3},
    "boids": {"n": 20, "steps": 2},
    "brachistochrone": {"points": 2},
    "gaussian_process": {"n": 8, "steps": 2},
    "hmm": {"n": 20},
    "image_filters": {"size": 12},
    "ising": {"size": 4, "times": 2},
    "kalman": {"steps": 8},
    "kmeans": {"n": 40, "k": 3},
    "life": {"size": 40, "steps": 2},
    "lotka_volterra": {"samples": 3, "between": 1, "limit": 1},
    "mandelbrot": {"size": 8, "limit": 20},
    "maxwell": {"size": 12, "steps": 20},
    "mcmc": {"steps": 6},
    "nbody": {"n": 6, "steps": 2},
    "neural_network": {"steps": 3, "hidden": 4, "grid": 4},
    "pagerank": {"n": 30, "links": 3},
    "ray_marcher": {"width": 8, "height": 6},
    "shortest_path": {"size": 16},
    "spectrogram": {"seconds": 0.02, "width": 64},
    "wave": {"size": 24, "steps": 8},
}


def test_every_program_has_a_size():
    assert sorted(TINY) == sorted(p.stem for p in GALLERY.glob("*.py") if p.stem != "build")


@pytest.mark.parametrize("name", TINY)
def test_program_is_its_undecorated_self(name):
    if name == "pagerank":
        pytest.importorskip("scipy")
    program = build.load(name)
    with jt.config(quick=True):
        compiled = program.main(**TINY[name])
    with jt.disable_jit(), np.errstate(all="ignore"):
        plain = program.main(**TINY[name])
    assert type(compiled) is type(plain)
    several = compiled if isinstance(compiled, tuple) else (compiled,)
    for ours, theirs in zip(several, plain if isinstance(plain, tuple) else (plain,), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
