"""Characters of real text: after the same steps of Adam the bits are PyTorch's, as programs have them.

The networks are those of `examples/characters.py`, small, in float32, with PyTorch's initial weights.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from folders import ROOT

import jitney as jt
from jitney import nn, optim

torch = pytest.importorskip("torch")
from test_parity_layers import plain, products, put  # noqa: E402

STEPS, BATCH, LENGTH, RATE = 300, 8, 32, 2e-3
T = np.transpose


class TheirLSTM(torch.nn.Module):
    """PyTorch's `Recurrent`."""

    def __init__(self, letters: int, hidden: int = 128) -> None:
        super().__init__()
        self.letters = torch.nn.Embedding(letters, 64)
        self.lstm = torch.nn.LSTM(64, hidden, batch_first=True)
        self.logits = torch.nn.Linear(hidden, letters)

    def forward(self, codes: Any, state: Any) -> Any:
        y, state = self.lstm(self.letters(codes), state)
        return self.logits(y), tuple(s.detach() for s in state)


class TheirTransformer(torch.nn.Module):
    """PyTorch's `Attentive`."""

    def __init__(self, letters: int, hidden: int = 64) -> None:
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(
            hidden, 4, 4 * hidden, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.letters = torch.nn.Embedding(letters, hidden)
        self.layers = torch.nn.TransformerEncoder(
            layer, 2, torch.nn.LayerNorm(hidden), enable_nested_tensor=False
        )
        self.logits = torch.nn.Linear(hidden, letters)

    def forward(self, codes: Any, state: Any) -> Any:
        codes = torch.cat([state, codes], 1)
        length = codes.shape[1]
        x = self.letters(codes) + torch.tensor(nn.sinusoids(length, self.letters.embedding_dim))
        hidden = torch.nn.Transformer.generate_square_subsequent_mask(length)
        y = self.layers(x, mask=hidden, is_causal=True)[:, state.shape[1] :]
        return self.logits(y), codes[:, -state.shape[1] :]


def lstm(characters: Any, letters: int) -> Any:
    names = {"w_x": "weight_ih", "w_h": "weight_hh", "b_x": "bias_ih", "b_h": "bias_hh"}
    same = [(f"lstm.cells[0].{ours}", f"lstm.{theirs}_l0", T) for ours, theirs in names.items()]
    return characters.Recurrent(letters, 128), TheirLSTM(letters), same


def transformer(characters: Any, letters: int) -> Any:
    same: list[Any] = [("layers.norm.scale", "layers.norm.weight", plain)]
    for i in range(2):
        same += products(f"layers.blocks[{i}].", f"layers.layers.{i}.")
    return characters.Attentive(letters, 64, LENGTH), TheirTransformer(letters), same


@pytest.mark.parametrize("make", [lstm, transformer], ids=lambda f: f.__name__)
def test_bits_for_a_character(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    characters = importlib.import_module("characters")
    torch.manual_seed(0)
    codes, letters = characters.text()
    ours, theirs, same = make(characters, len(letters))
    same += [
        ("letters.w", "letters.weight", plain),
        ("logits.w", "logits.weight", T),
        ("logits.b", "logits.bias", plain),
    ]
    named = dict(theirs.named_parameters())
    for path, name, way in same:
        put(ours, path, way(named[name].detach().numpy()).copy())
    opt, adam = optim.Adam(ours, RATE), torch.optim.Adam(theirs.parameters(), RATE)

    @jt.jit
    def train(codes: Any, state: Any) -> Any:
        return opt.minimize(characters.loss, codes, state, has_aux=True)

    bits = []
    for first, part in characters.batches(codes, BATCH, LENGTH, STEPS):
        if first:
            state = ours.nothing(BATCH)
            other = jt.tree.map(torch.tensor, state)
        value, state = train(part, state)
        adam.zero_grad()
        given = torch.tensor(part)
        logits, other = theirs(given[:, :-1], other)
        wanted = torch.nn.functional.cross_entropy(logits.flatten(0, 1), given[:, 1:].flatten())
        (wanted / np.log(2)).backward()
        adam.step()
        bits.append((float(value), wanted.item() / np.log(2)))
    ended, expected = np.mean(bits[-STEPS // 10 :], axis=0)
    print(f"{ended:.4f} bits for a character, PyTorch {expected:.4f}")
    assert expected < 4 and abs(ended - expected) < 0.02
