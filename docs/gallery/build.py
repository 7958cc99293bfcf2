"""Build the gallery: draw its pictures, or measure its programs beside Python and Numba.

    python docs/gallery/build.py pictures [NAME ...]   # pictures/NAME.png
    python docs/gallery/build.py times [NAME ...]      # times.md; needs Numba

Each way runs the same file in a process of its own, with `jt.jit` as it is, as nothing, or as
Numba's `njit`, which plain functions of the file are given too. What Numba refuses has no time.
The first run is told apart from the fastest of those that follow.
"""

import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = sorted(p.stem for p in HERE.glob("*.py") if p.stem != "build")
PANELS = {"mandelbrot": 2, "ising": 3, "mcmc": 2, "image_filters": 5, "nbody": 3, "boids": 2}
PANELS |= {"shortest_path": 2, "black_scholes": 2}
PATIENCE = {"jitney": 60, "numba": 60, "python": 10}  # seconds for a way


def load(name):
    """The module of a program, by its place: one of Python's may have that name, too."""
    spec = importlib.util.spec_from_file_location(f"gallery_{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def picture(name):
    """Draw one program's picture into a file."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    panels = PANELS.get(name, 1)
    figure, axes = pyplot.subplots(1, panels, figsize=(min(3.2 * panels, 8) + (panels == 1), 3))
    load(name).picture(axes)
    figure.tight_layout()
    path = HERE / "pictures" / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=72)
    pyplot.close(figure)
    from PIL import Image

    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)


def program(name, way):
    """The module, with `jt.jit` meaning what the way says."""
    if way == "numba":
        import numba

        stand_in = types.ModuleType("jitney")
        stand_in.jit = numba.njit
        sys.modules["jitney"] = stand_in
    elif way == "python":
        import jitney

        jitney.jit = lambda function: function
    module = load(name)
    if way == "numba":
        for key, value in vars(module).items():
            if isinstance(value, types.FunctionType) and key not in ("main", "picture"):
                setattr(module, key, numba.njit(value))
    return module


def measure(name, way):
    """Seconds of the first run and of the fastest later one, as JSON to standard output."""
    run = program(name, way).main
    seconds = []
    for _ in range(2 if way == "python" else 4):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
        if way == "python" and seconds[0] > 5:
            break
    print(json.dumps([seconds[0], min(seconds[1:] or seconds)]))


def measured(name, way):
    """What a process measures; text if it fails or takes too long."""
    command = [sys.executable, __file__, "measure", name, way]
    with tempfile.TemporaryDirectory() as cache:  # a first run finds nothing on disk
        environment = os.environ | {"JITNEY_CACHE_DIR": cache}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=PATIENCE[way], env=environment
            )
        except subprocess.TimeoutExpired:
            return [PATIENCE[way]] * 2
    if done.returncode:
        print(f"{name}, {way}: {done.stderr[-400:]}", file=sys.stderr)
        return "refused"
    return json.loads(done.stdout.splitlines()[-1])


def cpu():
    """The kind of this machine's CPU."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def row(name):
    """A row of the table."""
    ours, numba, python = (measured(name, way) for way in ("jitney", "numba", "python"))
    cells = [f"{ours[0]:.2f} s", f"{1e3 * ours[1]:.3g} ms"]
    for other in (python, numba):
        more = "> " if other[0] == other[1] in PATIENCE.values() else ""
        cells.append(other if isinstance(other, str) else f"{more}{other[1] / ours[1]:.3g}")
    cells.append("" if isinstance(numba, str) else f"{numba[0]:.2f} s")
    return f"| {name} | {' | '.join(cells)} |"


def times(names):
    """Write times.md."""
    import numba
    import numpy

    head = (
        f"{cpu()}, {platform.system()}; Python {platform.python_version()}, numpy {numpy.__version__}, "
        f"numba {numba.__version__}. How many times the compiled run's time the same file takes "
        "undecorated (with what it calls of NumPy, and of jitney for gradients), and with Numba's njit. "
        "`>`: it was not through after ten seconds. `refused`: Numba does not take the file as it "
        "stands, with its classes, gradients, generators or containers.\n\n"
        "| program | first run | later runs | Python, times | Numba, times | Numba's first run |\n"
        "|---|---|---|---|---|---|\n"
    )
    rows = []
    for name in names:
        rows.append(row(name))
        print(rows[-1], flush=True)
        (HERE / "times.md").write_text(head + "\n".join(rows) + "\n")


def main(what, *names):
    """Do what the command line says."""
    if what == "measure":
        measure(*names)
    elif what == "pictures":
        for name in names or NAMES:
            picture(name)
    elif what == "times":
        times(names or NAMES)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["help"]))
