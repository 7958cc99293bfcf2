"""Wrong uses of layers, and what is said about them: the line, the layer's place, shapes, and a remedy.

The texts are kept in `tests/golden/wrong_layers.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_texts import Golden

import jitney as jt
from jitney import nn

GOLDEN = Golden(Path(__file__).parents[1] / "golden" / "wrong_layers.txt")
WRONG: list[Callable[[], Any]] = []
IMAGE = np.ones((2, 3, 8, 8), np.float32)
ROWS = np.ones((2, 5), np.float32)
WORDS = np.ones((2, 5, 8), np.float32)


class Net(nn.Module):
    """Layers in a list in a dict, as deep as models are."""

    def __init__(self, *layers: Any) -> None:
        self.parts = {"body": nn.Sequential(nn.Residual(nn.relu), *layers)}

    def __call__(self, x: Any) -> Any:
        return self.parts["body"](x)


def wrong(program: Callable[[], Any]) -> Callable[[], Any]:
    WRONG.append(program)
    return program


@wrong
def a_linear_of_other_features() -> None:
    model = Net(nn.Linear(5, 4), nn.relu, nn.Linear(3, 2))
    model(ROWS)  # here


@wrong
def a_linear_of_other_features_compiled() -> None:
    model = Net(nn.Linear(5, 4), nn.relu, nn.Linear(3, 2))
    jt.jit(lambda x: model(x))(ROWS)  # here


@wrong
def a_linear_of_a_number() -> None:
    nn.Linear(2)(np.float32(1))  # here


@wrong
def a_linear_with_three_sizes() -> None:
    nn.Linear(2, 3, 4)  # here


@wrong
def an_embedding_of_floats() -> None:
    nn.Embedding(3, 4)(ROWS)  # here


@wrong
def parameters_of_another_shape() -> None:
    nn.Linear(2, 3, w_init=np.ones((3, 2)))  # here


@wrong
def a_convolution_of_one_image() -> None:
    nn.Conv2d(4, 3)(IMAGE[0])  # here


@wrong
def a_convolution_of_channels_last() -> None:
    Net(nn.Conv2d(3, 4, 3))(IMAGE.transpose(0, 2, 3, 1))  # here


@wrong
def a_convolution_with_a_stride_by_place() -> None:
    nn.Conv2d(3, 16, 3, 1)  # here


@wrong
def a_convolution_with_groups_that_do_not_divide() -> None:
    nn.Conv2d(4, 3, groups=2)(IMAGE)  # here


@wrong
def a_convolution_of_a_small_image() -> None:
    nn.Sequential(nn.Conv2d(4, 3), nn.MaxPool2d(2), nn.Conv2d(4, 5))(IMAGE)  # here


@wrong
def a_padding_that_is_not_known() -> None:
    nn.Conv2d(4, 3, padding="FULL")  # here


@wrong
def a_kernel_for_other_dims() -> None:
    nn.Conv2d(4, (3, 3, 3))  # here


@wrong
def an_output_shape_that_cannot_be() -> None:
    nn.ConvTranspose2d(4, 3, stride=2, padding=1, output_shape=17)(IMAGE)  # here


@wrong
def pooling_of_rows() -> None:
    nn.Sequential(nn.Flatten(), nn.MaxPool2d(2))(IMAGE)  # here


@wrong
def global_pooling_of_rows() -> None:
    nn.GlobalAvgPool()(ROWS)  # here


@wrong
def a_batch_norm_of_other_channels() -> None:
    nn.BatchNorm(4)(IMAGE)  # here


@wrong
def a_batch_of_one_in_training() -> None:
    nn.Sequential(nn.BatchNorm())(ROWS[:1])  # here


@wrong
def a_layer_norm_of_other_features() -> None:
    nn.LayerNorm((4, 8))(WORDS)  # here


@wrong
def groups_that_do_not_divide() -> None:
    nn.GroupNorm(2)(IMAGE)  # here


@wrong
def a_residual_of_two_shapes() -> None:
    nn.Residual(nn.Linear(4))(ROWS)  # here


@wrong
def a_list_of_layers() -> None:
    nn.Sequential([nn.Linear(2), nn.relu])  # here


@wrong
def a_rate_in_percent() -> None:
    nn.Dropout(30)  # here


@wrong
def heads_that_do_not_divide() -> None:
    nn.TransformerBlock(3)(WORDS)  # here


@wrong
def attention_of_rows() -> None:
    nn.MultiHeadAttention(2)(ROWS)  # here


@wrong
def a_mask_for_other_places() -> None:
    nn.TransformerEncoder(1, 2)(WORDS, mask=np.ones((2, 5), bool))  # here


@wrong
def a_decoder_without_memory() -> None:
    nn.TransformerDecoder(1, 2)(WORDS)  # here


@pytest.mark.parametrize("program", WRONG, ids=lambda program: program.__name__)
def test_wrong_layers(program: Callable[[], Any]) -> None:
    with pytest.raises((ValueError, TypeError)) as info:
        program()
    message = str(info.value)
    lines = message.splitlines()
    place = lines[0].partition(" ")[0]
    assert place.startswith("test_wrong_layers.py:") and lines[-1].startswith(place)
    assert "# here" in message or "parts" in message
    text = re.sub(r"(/\S*/)?test_wrong_layers\.py:\d+", "test_wrong_layers.py:N", message)
    GOLDEN.check(program.__name__, f"{type(info.value).__name__}: {text}")


def test_errors_of_layers_in_compiled_code_have_no_more_to_say() -> None:
    model = jt.nn.LSTM(4, 3, rng=0)
    with pytest.raises(jt.errors.ShapeError, match="give it the shape") as refused:
        jt.jit(lambda x, n: model(x, n))(np.ones((5, 2, 4), np.float32), np.ones(2, int))
    assert not getattr(refused.value, "__notes__", [])
