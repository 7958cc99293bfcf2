"""`%load_ext jitney`: `%%jit` compiles a cell's functions, `%jt` looks at calls."""

import numpy as np
import pytest

import jitney as jt

InteractiveShell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
UsageError = pytest.importorskip("IPython.core.error").UsageError


@pytest.fixture(scope="module")
def shell():
    made = InteractiveShell()
    made.run_line_magic("load_ext", "jitney")
    made.user_ns.update(np=np, x=np.linspace(0, 1, 50))
    made.run_cell_magic("jit", "", "def f(x):\n    return np.exp(x) * 2\nk = 3\n")
    made.run_cell("def g(x, scale=2):\n    return np.exp(x) * scale\n")
    return made


def test_functions_of_the_cell_are_compiled(shell):
    assert isinstance(shell.user_ns["f"], type(jt.jit(lambda x: x))) and shell.user_ns["k"] == 3
    np.testing.assert_allclose(shell.user_ns["f"](np.zeros(3)), 2)


def test_options_of_the_cell(shell):
    shell.run_cell_magic(
        "jit", "static_argnames='n', fastmath=True", "def h(x, n):\n  return x*n\n"
    )
    assert "fastmath=True" in str(shell.user_ns["h"].explain(np.ones(3), n=2))


def test_times_of_calls(shell):
    table = shell.run_line_magic("jt", "bench f(x), g(x, scale=2)")
    assert [row.name for row in table.rows] == ["f", "g"]


@pytest.mark.parametrize(
    ("what", "word"),
    [("explain", "kernel"), ("trace", "exp"), ("lower", "Lowered"), ("cost", "flops")],
)
def test_what_became_of_a_call(shell, what, word):
    assert word in repr(shell.run_line_magic("jt", f"{what} f(x)")) or what == "trace"
    assert word in repr(shell.run_line_magic("jt", f"{what} g(x[:3])")) or what == "trace"


def test_assembly_is_printed(shell, capsys):
    shell.run_line_magic("jt", "asm f(*[x])")
    assert "ret" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    ["", "bench", "bench f", "explain f(x), g(x)", "nothing f(x)", "bench f(", "bench f(x), f(x)"],
)
def test_wrong_lines_say_what_is_right(shell, line):
    with pytest.raises(UsageError, match="%jt|Python"):
        shell.run_line_magic("jt", line)


def test_wrong_cells_say_what_is_right(shell):
    with pytest.raises(UsageError, match="no function"):
        shell.run_cell_magic("jit", "", "a = 1\n")
    with pytest.raises(UsageError, match="keywords"):
        shell.run_cell_magic("jit", "3", "def f(x):\n    return x\n")
