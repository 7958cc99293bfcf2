"""A character LSTM on Python's own help texts, and what it writes (`pydoc_data.topics`).

python examples/characters.py
"""

from __future__ import annotations

import numpy as np

import jitney as jt
from jitney import nn, optim


class Writer(nn.Module):
    """What character comes next, after each of `(batch, steps)`, given a state to begin with."""

    def __init__(self, letters, hidden=256, rng=0, dtype=np.float32):
        options = {"rng": np.random.default_rng(rng), "dtype": dtype}
        self.letters = nn.Embedding(letters, 64, **options)
        self.lstm = nn.LSTM(64, hidden, batch_first=True, **options)
        self.logits = nn.Linear(hidden, letters, **options)

    def __call__(self, codes, state=None):
        y, state = self.lstm(self.letters(codes), state)
        return self.logits(y), state

    def step(self, code, state):
        """One character, as `nn.generate` asks for it."""
        logits, state = self(code[:, None], state)
        return logits[:, 0], state


def loss(model, codes, state):
    """Bits for a character, and the state after them: the next text goes on with it."""
    logits, state = model(codes[:, :-1], state)
    known = nn.log_softmax(logits)
    told = np.take_along_axis(known, codes[:, 1:, None], axis=-1)
    return -np.mean(told) / np.log(2), state


def text() -> tuple[np.ndarray, list[str]]:
    """The text as codes, and the letters that they stand for."""
    from pydoc_data.topics import topics

    letters, codes = np.unique(np.array(list("\n".join(topics.values()))), return_inverse=True)
    return codes, letters.tolist()


def batches(codes, batch: int, length: int, steps: int):
    """The text in `batch` columns that are read on from step to step, and begun again at the end."""
    width = len(codes) // batch
    columns = codes[: batch * width].reshape(batch, width)
    each = (width - 1) // length
    for step in range(steps):
        at = step % each * length
        yield step % each == 0, columns[:, at : at + length + 1]


def write(model, letters, start: str, count: int = 300, seed: int = 0) -> str:
    """`start`, and what the model writes after it."""
    rng = jt.random.default_rng(seed)
    code = {letter: i for i, letter in enumerate(letters)}
    given = np.array([[code[letter] for letter in start]])

    def draw(logits):
        return nn.sample(logits, rng, temperature=0.7, top_p=0.95)

    @jt.jit
    def go_on(given):
        _, state = model(given[:, :-1])
        return nn.generate(model.step, given[:, -1], state, count, choose=draw)[0]

    return start + "".join(letters[i] for i in go_on(given)[0])


def main(steps: int = 1500, batch: int = 32, length: int = 64, hidden: int = 256) -> float:
    """Train, and return the bits for a character over the last tenth of the steps."""
    codes, letters = text()
    model = Writer(len(letters), hidden)
    opt = optim.Adam(model, 2e-3)

    @jt.jit
    def train(codes, state):
        return opt.minimize(loss, codes, state, has_aux=True)

    zeros = np.zeros((1, batch, hidden), np.float32)
    bits = []
    for first, part in batches(codes, batch, length, steps):
        if first:
            state = (zeros, zeros)
        value, state = train(part, state)
        bits.append(float(value))
        if len(bits) % 100 == 0:
            print(f"step {len(bits)}: {np.mean(bits[-100:]):.3f} bits for a character")
    print(write(model, letters, "The "))
    return float(np.mean(bits[-max(steps // 10, 1) :]))


if __name__ == "__main__":
    main()
