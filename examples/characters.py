"""Characters of Python's own help texts by an LSTM and by a transformer, and what these write
(`pydoc_data.topics`).

After 1500 steps 1.53 bits for a character by the LSTM; 1.99 by the transformer, of half as much text.

python examples/characters.py
"""

from __future__ import annotations

import numpy as np

import jitney as jt
from jitney import nn, optim


class Writer(nn.Module):
    """What character comes next, after each of `(batch, steps)`, given what came before them."""

    def step(self, code, state):
        """One character, as `nn.generate` asks for it."""
        logits, state = self(code[:, None], state)
        return logits[:, 0], state


class Recurrent(Writer):
    """An LSTM; its state stands for all that came before."""

    def __init__(self, letters, hidden=256, rng=0):
        rng = np.random.default_rng(rng)
        self.letters = nn.Embedding(letters, 64, rng=rng)
        self.lstm = nn.LSTM(64, hidden, batch_first=True, rng=rng)
        self.logits = nn.Linear(hidden, letters, rng=rng)

    def nothing(self, batch):
        """The state before the first character."""
        zeros = np.zeros((1, batch, self.logits.w.shape[0]), np.float32)
        return zeros, zeros

    def __call__(self, codes, state):
        y, state = self.lstm(self.letters(codes), state)
        return self.logits(y), state


class Attentive(Writer):
    """A transformer of two layers; its state is the last `seen` characters."""

    def __init__(self, letters, hidden=96, seen=64, rng=0):
        rng = np.random.default_rng(rng)
        self.letters = nn.Embedding(letters, hidden, rng=rng)
        self.layers = nn.TransformerDecoder(2, 4, hidden, cross=False, rng=rng)
        self.logits = nn.Linear(hidden, letters, rng=rng)
        self.seen, self.hidden = seen, hidden

    def nothing(self, batch):
        """The state before the first character: spaces."""
        return np.zeros((batch, self.seen), np.int64)

    def __call__(self, codes, state):
        codes = np.concatenate([state, codes], axis=1)
        places = nn.sinusoids(codes.shape[1], self.hidden)
        y = self.layers(self.letters(codes) + places)[:, self.seen :]
        return self.logits(y), codes[:, -self.seen :]


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


def write(model, letters, start: str, count: int, seed: int = 0) -> str:
    """`start`, and what the model writes after it."""
    rng = jt.random.default_rng(seed)
    code = {letter: i for i, letter in enumerate(letters)}
    given = np.array([[code[letter] for letter in start]])

    def draw(logits):
        return nn.sample(logits, rng, temperature=0.7, top_p=0.95)

    @jt.jit
    def go_on(given):
        _, state = model(given[:, :-1], model.nothing(1))
        return nn.generate(model.step, given[:, -1], state, count, choose=draw)[0]

    return start + "".join(letters[i] for i in go_on(given)[0])


def main(
    make=Recurrent, steps: int = 1500, batch: int = 32, length: int = 64, wanted: int = 300, **sizes
) -> float:
    """Train, and return the bits for a character over the last tenth of the steps."""
    codes, letters = text()
    model = make(len(letters), **sizes)
    opt = optim.Adam(model, 2e-3)

    @jt.jit
    def train(codes, state):
        return opt.minimize(loss, codes, state, has_aux=True)

    bits = []
    for first, part in batches(codes, batch, length, steps):
        if first:
            state = model.nothing(batch)
        value, state = train(part, state)
        bits.append(float(value))
        if len(bits) % 100 == 0:
            print(f"step {len(bits)}: {np.mean(bits[-100:]):.3f} bits for a character")
    print(write(model, letters, "The ", wanted))
    return float(np.mean(bits[-max(steps // 10, 1) :]))


if __name__ == "__main__":
    main(Recurrent)
    main(Attentive, batch=16)
