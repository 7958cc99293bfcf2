"""Recurrent cells and the loop over them, against formulas written out, and what shapes they refuse."""

import numpy as np
import pytest

import jitney as jt
from jitney import nn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 5, 4))
LENGTHS = np.array([5, 2, 0])
F64 = {"rng": 0, "dtype": np.float64}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def normalised(x, axis, scale):
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5) * scale


def by_hand(cell, x, h, c):
    """One step of an LSTM, as the papers write it."""
    a, b = x @ cell.w_x, h @ cell.w_h
    axis = {"layer": 1, "batch": 0}.get(cell.norm)
    if cell.norm:
        a, b = (normalised(v, axis, cell.scales[k]) for k, v in (("x", a), ("h", b)))
    i, f, g, o = np.split(a + b + cell.b_x + cell.b_h, 4, axis=1)
    if cell.peep is not None:
        i, f = i + cell.peep[0] * c, f + cell.peep[1] * c
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    o = o if cell.peep is None else o + cell.peep[2] * c
    seen = normalised(c, axis, cell.scales["c"]) + cell.shift if cell.norm else c
    return sigmoid(o) * np.tanh(seen), c


def lstm(norm=None, peephole=False):
    cell = nn.LSTMCell(4, 6, norm=norm, peephole=peephole, **F64)
    if peephole:
        cell.peep = RNG.normal(size=(3, 6))
    if norm:
        cell.scales = {k: RNG.normal(size=v.shape) for k, v in cell.scales.items()}
        cell.shift = RNG.normal(size=6)
    return cell


@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize("norm", [None, "layer", "batch"])
def test_lstm(norm, peephole):
    cell, h, c = lstm(norm, peephole), RNG.normal(size=(3, 6)), RNG.normal(size=(3, 6))
    y, state = cell(X[:, 0], (h, c))
    np.testing.assert_allclose(state, by_hand(cell, X[:, 0], h, c), rtol=1e-12)
    assert y is state[0]


def test_running_statistics_of_a_normed_lstm_land_from_within_gradients():
    cell = lstm("batch")

    compiled = jt.jit(jt.grad(lambda cell, x: (nn.rnn(cell, x)[0] ** 2).sum()))(cell, X)
    found = cell.means["x"], cell.variances["h"]
    cell.means = {k: np.zeros_like(v) for k, v in cell.means.items()}
    cell.variances = {k: np.ones_like(v) for k, v in cell.variances.items()}
    h = c = np.zeros((3, 6))
    mean, var = np.zeros(24), np.ones(24)
    for t in range(5):
        mean = 0.9 * mean + 0.1 * (X[:, t] @ cell.w_x).mean(axis=0)
        var = 0.9 * var + 0.1 * (h @ cell.w_h).var(axis=0)
        h, c = by_hand(cell, X[:, t], h, c)
    np.testing.assert_allclose(found, (mean, var), rtol=1e-12)
    assert compiled.w_x.shape == cell.w_x.shape and compiled.means["x"] is None
    cell.eval()
    cell.means, cell.variances = (
        {k: 0 * v for k, v in cell.means.items()},
        {k: v * 0 + 1 - 1e-5 for k, v in cell.variances.items()},
    )
    cell.scales = {k: np.ones_like(v) for k, v in cell.scales.items()}
    cell.shift = 0 * cell.shift
    plain, cell.norm = cell(X[:, 0], (h, c))[0], None
    np.testing.assert_allclose(plain, cell(X[:, 0], (h, c))[0], rtol=1e-12)


def test_gru_and_rnn():
    h = RNG.normal(size=(3, 6))
    cell = nn.GRUCell(4, 6, **F64)
    a, b = np.split(X[:, 0] @ cell.w_x + cell.b_x, 3, 1), np.split(h @ cell.w_h + cell.b_h, 3, 1)
    r, z = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
    expected = (1 - z) * np.tanh(a[2] + r * b[2]) + z * h
    np.testing.assert_allclose(cell(X[:, 0], h)[1], expected, rtol=1e-12)
    cell = nn.RNNCell(4, 6, bias=False, activation=np.sin, **F64)
    expected = np.sin(X[:, 0] @ cell.w_x + h @ cell.w_h)
    np.testing.assert_allclose(cell(X[:, 0], h)[1], expected, rtol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_end_at_their_lengths(reverse):
    """Each row is as if it were alone, cut to its length; lengths are values for compiled code."""
    cell = nn.GRUCell(4, 6, **F64)
    start = RNG.normal(size=(3, 6))

    def run(x, lengths, start):
        return nn.rnn(cell, x, lengths, start, reverse=reverse)

    compiled = jt.jit(run)
    for lengths in (LENGTHS, np.array([1, 5, 3], np.int32)):
        y, last = compiled(X, lengths, start)
        for row, n in enumerate(lengths):
            alone, end = nn.rnn(
                cell, X[row : row + 1, :n], None, start[row : row + 1], reverse=reverse
            )
            np.testing.assert_allclose(y[row, :n], alone[0], rtol=1e-12)
            np.testing.assert_allclose(last[row], end[0], rtol=1e-12)
            assert not y[row, n:].any()
        for a, b in zip(run(X, lengths, start), (y, last), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    with pytest.raises(ValueError, match="above the 5 steps"):
        compiled(X, np.array([6, 1, 1]), start)
    with pytest.raises(ValueError, match="below 0"):
        run(X, np.array([-1, 1, 1]), start)


def test_padding_has_no_gradient_and_the_rest_has_the_right_one():
    layer = nn.LSTM(4, 3, 2, bidirectional=True, batch_first=True, peephole=True, **F64)

    def loss(layer, x):
        y, (h, c) = layer(x, lengths=LENGTHS)
        return (y**2).sum() + np.sin(h).sum() + (c**3).sum()

    gradient, dx = jt.jit(jt.grad(loss, argnums=(0, 1)))(layer, X)
    assert not dx[1, 2:].any() and not dx[2].any() and dx[1, :2].all()
    for cell, slope in zip(layer.cells, gradient.cells, strict=True):
        for name in ("w_x", "w_h", "b_h", "peep"):
            direction, step = RNG.normal(size=getattr(cell, name).shape), 1e-5
            values = []
            for sign in (1, -1):
                setattr(cell, name, getattr(cell, name) + sign * step * direction)
                values.append(loss(layer, X))
                setattr(cell, name, getattr(cell, name) - sign * step * direction)
            central = (values[0] - values[1]) / (2 * step)
            np.testing.assert_allclose((getattr(slope, name) * direction).sum(), central, rtol=1e-6)


def test_stacks_wrappers_and_streams():
    cells = [nn.LSTMCell(4, 6, **F64), nn.ResidualWrapper(nn.GRUCell(6, 6, **F64))]
    deep = nn.MultiRNN(cells)
    y, last = nn.rnn(deep, X)
    state, steps = deep.initial_state(3, np.float64), []
    for t in range(5):  # step by step
        one, state = deep(X[:, t], state)
        steps.append(one)
    np.testing.assert_allclose(y, np.stack(steps, 1), rtol=1e-12)
    assert jt.tree.structure(last) == jt.tree.structure(state)
    below = nn.rnn(cells[0], X)[0]
    np.testing.assert_allclose(y, below + nn.rnn(cells[1].cell, below)[0], rtol=1e-12)
    first, state = nn.rnn(deep, X[:, :2])  # in two pieces
    second, state = nn.rnn(deep, X[:, 2:], initial_state=state)
    np.testing.assert_allclose(y, np.concatenate([first, second], 1), rtol=1e-12)
    np.testing.assert_allclose(last[1], state[1], rtol=1e-12)


@pytest.mark.parametrize("variational", [False, True])
def test_dropout_of_input_state_and_output(variational):
    ones = np.ones((3, 40, 50))

    class Seen(nn.RNNCore):
        """Gives its input, keeps it, and says what state it was given."""

        state_size = output_size = 50

        def __call__(self, x, state):
            return np.stack([x, state]), x * 0 + 1

    for name in ("input", "state"):
        wrapped = nn.DropoutWrapper(Seen(), **{name: 0.25}, variational=variational, rng=0)
        seen = nn.rnn(wrapped, ones, time_major=True)[0][1:, int(name == "state")]
        values = np.unique(seen)
        np.testing.assert_allclose(values, [0, 4 / 3])
        assert abs((seen == 0).mean() - 0.25) < 0.1
        assert (seen == seen[:1]).all() == variational
    cell = nn.GRUCell(4, 6, **F64)
    wrapped = nn.DropoutWrapper(
        cell, 0.2, 0.3, 0.5, variational=variational, rng=jt.random.default_rng(1)
    )
    run = jt.jit(lambda x: nn.rnn(wrapped, x)[0])
    assert (run(X) != run(X)).any(), "each call draws"
    slope = jt.jit(jt.grad(lambda cell, x: nn.rnn(cell, x)[0].sum()))(wrapped, X)
    assert slope.cell.w_h.shape == cell.w_h.shape and slope.rng is None
    wrapped.eval()
    np.testing.assert_allclose(nn.rnn(wrapped, X)[0], nn.rnn(cell, X)[0], rtol=1e-12)


def test_sizes_left_out_are_found_by_the_first_call():
    for make in (nn.RNN, nn.GRU, nn.LSTM):
        layer = make(6, num_layers=2, bidirectional=True, rng=0)
        y, h = layer(X.astype(np.float32))
        assert y.shape == (3, 5, 12) and layer.cells[0].w_x.shape[0] == 4
        assert y.dtype == np.float32 and jt.tree.leaves(h)[0].shape == (4, 5, 6)
        again, _ = layer(X.astype(np.float32), h)
        assert (again != y).any()


def test_no_steps_and_no_rows():
    cell = nn.LSTMCell(4, 6, **F64)
    start = (RNG.normal(size=(3, 6)), RNG.normal(size=(3, 6)))
    y, last = nn.rnn(cell, X[:, :0], initial_state=start)
    assert y.shape == (3, 0, 6)
    np.testing.assert_array_equal(last, start)
    y, last = nn.rnn(cell, X[:0])
    assert y.shape == (0, 5, 6) and last[1].shape == (0, 6)


def test_lengths():
    padded = np.array([[[1.0, 0], [0, 0], [0, 2], [0, 0]], [[0, 0]] * 4])
    both = jt.jit(lambda x: (nn.length_of(x), nn.sequence_mask(nn.length_of(x), 4)))
    for lengths, mask in (
        both(padded),
        (nn.length_of(padded), nn.sequence_mask(np.array([3, 0]), 4)),
    ):
        np.testing.assert_array_equal(lengths, [3, 0])
        np.testing.assert_array_equal(mask, [[1, 1, 1, 0], [0] * 4])
    assert nn.sequence_mask(np.array([3, 0])).shape == (2, 3)
    np.testing.assert_array_equal(nn.length_of(np.full((1, 3), -1), -1), [0])
    np.testing.assert_array_equal(nn.last_relevant(padded, np.array([3, 0])), [[0, 2], [0, 0]])
    loss = np.array([[1.0, np.nan], [3.0, 5.0]])
    mask = np.array([[True, False], [True, True]])
    value, slope = jt.jit(jt.value_and_grad(nn.masked_mean))(loss, mask)
    assert value == 3
    np.testing.assert_allclose(slope, mask / 3)
    assert nn.masked_mean(loss, np.zeros((2, 2), bool)) == 0


CELL = nn.LSTMCell(4, 6, rng=0)
WRONG = {
    "no batch": (
        lambda: nn.rnn(CELL, X[0, 0]),
        "goes over arrays (batch, steps, features)",
        "x[None]",
    ),
    "features": (lambda: nn.rnn(CELL, X[..., :3]), "takes 4 features, not 3", "as many as x has"),
    "a list": (lambda: nn.rnn(CELL, [*X]), "an array (batch, features)", "np.stack(x, axis=1)"),
    "lengths": (lambda: nn.rnn(CELL, X, np.ones(2, int)), "for each of the 3 rows", "shape (3,)"),
    "fractions": (lambda: nn.rnn(CELL, X, np.ones(3)), "an integer for each", "an integer dtype"),
    "state": (
        lambda: nn.rnn(CELL, X, initial_state=np.zeros((3, 6))),
        "LSTMCell is [(3, 6)], not [(3, 6), (3, 6)]",
        "cell.initial_state(3)",
    ),
    "layers": (
        lambda: nn.GRU(4, 6, rng=0)(X, np.zeros((2, 5, 6))),
        "(1, batch, hidden), not (2, 5, 6)",
        "the last state",
    ),
    "residual": (
        lambda: nn.rnn(nn.ResidualWrapper(CELL), X),
        "adds 4 inputs to 6 outputs",
        "as wide as its input",
    ),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("compiled", [False, True])
def test_shapes_that_do_not_fit(name, compiled):
    """Refused with the user's line, and in the last line what to write instead."""
    program, what, remedy = WRONG[name]
    with pytest.raises(jt.errors.ShapeError) as info:
        (jt.jit(program) if compiled else program)()
    first, *_, last = str(info.value).splitlines()
    assert what in first and remedy in last
    assert first.startswith("test_recurrent.py:") and last.startswith("test_recurrent.py:")
