"""The main job: the digits classifier learns, agrees with NumPy, and reports what was done."""

import subprocess
import sys

import numpy as np
import pytest

import jitney as jt
from jitney.demo import digits


@pytest.fixture(scope="module")
def data():
    pytest.importorskip("sklearn")
    return digits.load_digits()


def batch(data, n=digits.BATCH):
    return data.train_images[:n], data.train_labels[:n]


def test_numpy_gradient_against_central_differences(data):
    """The hand-written gradient is what the compiled one is held against: check it first."""
    images, labels = batch(data, 16)
    params, velocity = digits.initial_state()
    params = {k: p.astype(np.float64) for k, p in params.items()}
    velocity = {k: np.zeros_like(p) for k, p in params.items()}
    _, _, after = digits.numpy_train_step(params, velocity, images.astype(np.float64), labels)
    rng = np.random.default_rng(3)
    for key, p in params.items():
        direction = rng.standard_normal(p.shape)
        up, down = ({**params, key: p + h * direction} for h in (1e-6, -1e-6))
        slope = (digits.loss(up, images, labels) - digits.loss(down, images, labels)) / 2e-6
        np.testing.assert_allclose((after[key] * direction).sum() / -digits.RATE, slope, rtol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, jt.jit], ids=["eager", "jit"])
def test_step_agrees_with_the_hand_written_one(data, wrap):
    params, velocity = digits.initial_state()
    velocity = {k: p * np.float32(0.01) for k, p in params.items()}
    state = (params, velocity, *batch(data))
    got, want = wrap(digits.train_step)(*state), digits.numpy_train_step(*state)
    assert got[1].keys() == want[1].keys() and got[1]["w1"].dtype == np.float32
    assert digits.largest_difference(got, want) < 1e-5


def test_learns(data):
    outcome = digits.train(jt.jit(digits.train_step), data, epochs=12)
    assert outcome.test_accuracy >= digits.TARGET_ACCURACY
    again = digits.train(jt.jit(digits.train_step), data, epochs=1)
    assert again.test_accuracy < outcome.test_accuracy  # the number depends on the training


def test_largest_difference_sees_each_leaf():
    a = (1.0, {"x": np.zeros(3), "y": np.ones(2)})
    assert digits.largest_difference(a, a) == 0
    assert digits.largest_difference(a, (1.0, {"x": np.array([0, -2, 0]), "y": np.ones(2)})) == 2


def run_module(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "jitney", *arguments], capture_output=True, text=True
    )


def test_main_job_prints_what_jitney_did_and_runs_again_from_disk(data):
    done = run_module("demo", "--epochs", "10")
    assert done.returncode == 0, done.stderr
    for words in ("test accuracy", "traced", "compiled", "kernels", "ms", "plain NumPy", "%r"):
        assert words in done.stdout, words
    again = run_module("demo", "--epochs", "10")
    assert again.returncode == 0, again.stderr


def test_too_little_training_is_a_failure(data):
    done = run_module("demo", "--epochs", "1")
    assert done.returncode == 1
    assert "96" in done.stderr


def test_without_scikit_learn_it_says_what_to_install():
    code = (
        "import sys; sys.modules['sklearn'] = None; "
        "from jitney.__main__ import main; sys.exit(main([]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'jitney[demo]'" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["demo", "--epochs", "1"], ["info"], ["--help"]])
@pytest.mark.parametrize("lines", [0, 1])
def test_who_stops_reading_hears_no_complaint(arguments, lines):
    """`python -m jitney | head -1`: what is printed then fails, or what Python prints at its end."""
    command = [sys.executable, "-u", "-m", "jitney"] if lines else [sys.executable, "-m", "jitney"]
    process = subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert all(process.stdout.readline() for _ in range(lines))
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert complaint == b""
    assert process.wait() in (0, 141)


@pytest.mark.parametrize("arguments", [["demo", "--epochs", "0"], ["nonsense"]])
def test_wrong_arguments_are_refused(arguments):
    done = run_module(*arguments)
    assert done.returncode == 2 and "error:" in done.stderr
