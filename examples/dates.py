"""Dates as people write them into ISO dates: an encoder, a decoder with attention, beam search.

All of 1,000 new dates are right in every digit.

python examples/dates.py
"""

from __future__ import annotations

import datetime

import numpy as np

import jitney as jt
from jitney import nn, optim

MONTHS = "January February March April May June July August September October November December"
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
START, END = 10, 11  # after the digits of an ISO date, which are written without dashes
FORMS = (
    "{day} {month} {year}",
    "{month} {day}, {year}",
    "{weekday}, {day} {month} {year}",
    "{short} {day}, {year}",
    "{day} {short} {year}",
    "{weekday} {month} {day} {year}",
    "{day}/{number}/{year}",
    "{day}.{number}.{year}",
    "{year}-{number}-{day}",
    "the {day} of {month} {year}",
)
SIGNS = sorted(set((MONTHS + DAYS + "".join(FORMS)).lower()) | set("0123456789 "))
CODES = {sign: i + 1 for i, sign in enumerate(SIGNS)}  # 0 fills up
LONGEST = 32


def draw(count: int, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Texts as codes `(count, LONGEST)`, their lengths, and the eight digits of their dates."""
    codes = np.zeros((count, LONGEST), np.int64)
    lengths, digits = np.zeros(count, np.int64), np.zeros((count, 8), np.int64)
    months, days = MONTHS.split(), DAYS.split()
    for i in range(count):
        date = datetime.date.fromordinal(int(rng.integers(700_000, 750_000)))
        month = months[date.month - 1]
        said = FORMS[rng.integers(len(FORMS))].format(
            day=date.day,
            month=month,
            short=month[:3],
            number=date.month,
            year=date.year,
            weekday=days[date.weekday()],
        )
        lengths[i] = len(said)
        codes[i, : len(said)] = [CODES[sign] for sign in said.lower()]
        digits[i] = [int(sign) for sign in date.strftime("%Y%m%d")]
    return codes, lengths, digits


class Translator(nn.Module):
    """An encoder that reads from both ends; a decoder that looks at what was read."""

    def __init__(self, hidden=64, rng=0):
        options = {"rng": np.random.default_rng(rng)}
        self.signs = nn.Embedding(len(SIGNS) + 1, 32, **options)
        self.encoder = nn.GRU(32, hidden, batch_first=True, bidirectional=True, **options)
        self.start = nn.Linear(2 * hidden, hidden, **options)
        self.digits = nn.Embedding(12, 32, **options)
        attention = nn.LuongAttention(hidden, 2 * hidden, **options)
        cell = nn.GRUCell(32 + hidden, hidden, **options)
        self.decoder = nn.AttentionCell(cell, attention, 2 * hidden, hidden, **options)
        self.logits = nn.Linear(hidden, 12, **options)

    def read(self, codes, lengths):
        """What the decoder looks at, and the state that it begins with."""
        encoded, ends = self.encoder(self.signs(codes), lengths=lengths)
        state = np.tanh(self.start(np.concatenate([ends[0], ends[1]], axis=1)))
        memory = self.decoder.attention.memory(encoded, lengths)
        return memory, (state, np.zeros_like(state))

    def taught(self, codes, lengths, digits):
        """The logits of each digit, and of the end, given the right digits before it."""
        memory, state = self.read(codes, lengths)
        given = np.concatenate([np.full((len(digits), 1), START), digits], axis=1)
        y, _ = nn.rnn(self.decoder.looking_at(memory), self.digits(given), initial_state=state)
        return self.logits(y)

    def translate(self, codes, lengths, beams=4):
        """The likeliest digits, by beam search."""
        memory, state = self.read(codes, lengths)
        cell = self.decoder.looking_at(nn.repeat_rows(memory, beams))

        def step(digit, state):
            y, state = cell(self.digits(digit), state)
            return self.logits(y), state

        start = np.full(len(codes), START)
        found, _, _ = nn.beam_search(step, start, state, 9, beams=beams, end=END)
        return found[:, 0]


def with_end(digits):
    """The digits, and the sign that a date is over."""
    return np.concatenate([digits, np.full((len(digits), 1), END)], axis=1)


def loss(model, codes, lengths, digits):
    """The mean cross entropy of a digit, taught."""
    known = nn.log_softmax(model.taught(codes, lengths, digits))
    return -np.mean(np.take_along_axis(known, with_end(digits)[:, :, None], axis=-1))


def main(steps: int = 1500, batch: int = 64, tried: int = 1000, seed: int = 0) -> float:
    """Train, and return the share of new dates that are right in every digit."""
    rng = np.random.default_rng(seed)
    model = Translator(rng=seed)
    opt = optim.Adam(model, optim.cosine_decay_schedule(3e-3, steps))

    @jt.jit
    def train(codes, lengths, digits):
        return opt.minimize(loss, codes, lengths, digits)

    for step in range(1, steps + 1):
        value = train(*draw(batch, rng))
        if step % 100 == 0:
            print(f"step {step}: loss {value:.4f}")
    codes, lengths, digits = draw(tried, rng)
    model.eval()
    found = jt.jit(model.translate)(codes, lengths)
    share = float((found == with_end(digits)).all(axis=1).mean())
    print(f"{share:.1%} of {tried} dates")
    return share


if __name__ == "__main__":
    main()
