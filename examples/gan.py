"""A GAN that draws digits: two networks with an optimiser each (scikit-learn's digits).

A classifier is sure of 77 % of what it draws, and finds all ten classes there.

python examples/gan.py
"""

from __future__ import annotations

import digits
import numpy as np

import jitney as jt
from jitney import nn, optim

NOISE = 32


class GAN(nn.Module):
    """A generator of pictures, and a critic that tells them from true ones."""

    def __init__(self, width=128, rng=0):
        rng = np.random.default_rng(rng)
        self.generator = nn.Sequential(
            nn.Linear(NOISE, width, rng=rng),
            nn.BatchNorm(width),
            nn.relu,
            nn.Linear(width, width, rng=rng),
            nn.BatchNorm(width),
            nn.relu,
            nn.Linear(width, 64, rng=rng),
            nn.sigmoid,
        )
        self.critic = nn.Sequential(
            nn.Linear(64, width, rng=rng),
            nn.leaky_relu,
            nn.Dropout(0.3, rng=rng),
            nn.Linear(width, width, rng=rng),
            nn.leaky_relu,
            nn.Dropout(0.3, rng=rng),
            nn.Linear(width, 1, rng=rng),
        )

    def draw(self, noise):
        """Pictures (batch, 64) of noise (batch, NOISE)."""
        return self.generator(noise)

    def doubt(self, pictures, truth):
        """The loss of a critic that holds all pictures to be true (1), or none (0)."""
        logits = self.critic(pictures)
        return nn.losses.sigmoid_cross_entropy(logits, np.full_like(logits, truth))


def main(
    steps: int = 4000, batch: int = 64, width: int = 128, judged: int = 1000, judge=None
) -> int:
    """Train, and return how many of ten classes are among what a classifier is sure of."""
    pictures, _, labels, _ = digits.held_out(0)
    x = pictures.reshape(len(pictures), 64)
    gan = GAN(width)
    rng = np.random.default_rng(0)
    opts = [optim.Adam(part, 1e-3, betas=(0.5, 0.9)) for part in (gan.critic, gan.generator)]

    def critical(critic, true, noise):
        return gan.doubt(true, 0.9) + gan.doubt(gan.draw(noise), 0)

    def convincing(generator, noise):
        return gan.doubt(gan.draw(noise), 1)

    @jt.jit
    def train(true, noise):
        critic, generator = opts
        return critic.minimize(critical, true, noise), generator.minimize(convincing, noise)

    def noise(count):
        return rng.standard_normal((count, NOISE), dtype=np.float32)

    for step in range(1, steps + 1):
        losses = train(x[rng.integers(0, len(x), batch)], noise(batch))
        if step % 500 == 0:
            print(f"step {step}: critic {losses[0]:.3f}, generator {losses[1]:.3f}")
    drawn = gan.eval().draw(noise(judged)).reshape(judged, 1, 8, 8)
    return recognised(drawn, digits.trained(pictures, labels, **(judge or {})))


def recognised(drawn, judge) -> int:
    """Of how many classes at least one in fifty pictures is, by a classifier that is 90 % sure."""
    odds = nn.softmax(jt.jit(judge)(drawn))
    sure = odds.max(axis=1) > 0.9
    counts = np.bincount(odds.argmax(axis=1)[sure], minlength=10)
    print(f"{sure.mean():.0%} are digits to the classifier; of each class: {counts}")
    for row in drawn[:8, 0].transpose(1, 0, 2).reshape(8, 64):
        print("".join(" .:+#@"[round(float(v) * 5)] for v in row))
    return int((counts >= len(drawn) / 50).sum())


if __name__ == "__main__":
    print(f"{main()} of 10 classes")
