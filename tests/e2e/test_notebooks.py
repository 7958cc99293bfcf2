"""The notebooks run from top to bottom without an error, and are committed without outputs."""

import queue
import time
from pathlib import Path

import pytest

import jitney

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

FOLDER = Path(jitney.__file__).resolve().parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_notebooks():
    assert "01_quickstart" in [path.stem for path in NOTEBOOKS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_without_outputs(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    for cell in book.cells:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None, cell.source[:60]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JITNEY_QUICK", "1")  # what is shown is the same
    monkeypatch.delenv("JITNEY_VERIFY", raising=False)
    book = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()  # raises CellExecutionError, which shows the cell, at the first error
    outputs = [out for cell in book.cells if cell.cell_type == "code" for out in cell.outputs]
    assert not [out for out in outputs if out.output_type == "error"]
    noise = [out.text for out in outputs if out.output_type == "stream" and out.name == "stderr"]
    assert not noise, "".join(noise)
    assert any(out.output_type in ("display_data", "execute_result") for out in outputs)


STOPS = """
import numpy as np, jitney as jt

@jt.jit
def f(x, n):
    for i in range(n):
        x = x * 2
        jt.breakpoint(i == 1)
    return x

print(f(np.ones(2), 3))
"""


def test_a_breakpoint_asks_in_the_cell():
    """In a kernel to which no editor's debugger is attached."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel()
    try:
        client.execute(STOPS, allow_stdin=True)
        shown, typed, end = "", ["p x.tolist(), int(i)", "c"], time.monotonic() + 60
        while time.monotonic() < end:
            try:
                client.get_stdin_msg(timeout=0.05)
                client.input(typed.pop(0))
            except queue.Empty:
                pass
            try:
                content = client.get_iopub_msg(timeout=0.05)["content"]
            except queue.Empty:
                continue
            shown += content.get("text", "")
            if content.get("execution_state") == "idle":
                break
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert "([4.0, 4.0], 1)" in shown and "[8. 8.]" in shown and not typed
