"""Wrong uses of `jt.nn`, as users of other frameworks write them, and what is said about them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from wrong_programs import WrongPrograms

import jitney as jt
from jitney import nn

wrong = WrongPrograms(__file__)
IMAGE = np.ones((2, 3, 8, 8), np.float32)
ROWS = np.ones((2, 5), np.float32)
WORDS = np.ones((2, 5, 8), np.float32)
LABELS = np.array([1, 0])


class Net(nn.Module):
    """Layers in a list in a dict, as deep as models are."""

    def __init__(self, *layers: Any) -> None:
        self.parts = {"body": nn.Sequential(nn.Residual(nn.relu), *layers)}

    def __call__(self, x: Any) -> Any:
        return self.parts["body"](x)


@wrong
def a_linear_of_other_features() -> None:
    model = Net(nn.Linear(5, 4), nn.relu, nn.Linear(3, 2))
    model(ROWS)


@wrong
def a_linear_of_other_features_compiled() -> None:
    model = Net(nn.Linear(5, 4), nn.relu, nn.Linear(3, 2))
    jt.jit(lambda x: model(x))(ROWS)


@wrong
def a_linear_of_a_number() -> None:
    nn.Linear(2)(np.float32(1))


@wrong
def a_linear_with_three_sizes() -> None:
    nn.Linear(2, 3, 4)


@wrong
def an_embedding_of_floats() -> None:
    nn.Embedding(3, 4)(ROWS)


@wrong
def parameters_of_another_shape() -> None:
    nn.Linear(2, 3, w_init=np.ones((3, 2)))


@wrong
def a_convolution_of_one_image() -> None:
    nn.Conv2d(4, 3)(IMAGE[0])


@wrong
def a_convolution_of_channels_last() -> None:
    Net(nn.Conv2d(3, 4, 3))(IMAGE.transpose(0, 2, 3, 1))


@wrong
def a_convolution_with_a_stride_by_place() -> None:
    nn.Conv2d(3, 16, 3, 1)


@wrong
def a_convolution_with_groups_that_do_not_divide() -> None:
    nn.Conv2d(4, 3, groups=2)(IMAGE)


@wrong
def a_convolution_of_a_small_image() -> None:
    nn.Sequential(nn.Conv2d(4, 3), nn.MaxPool2d(2), nn.Conv2d(4, 5))(IMAGE)


@wrong
def a_padding_that_is_not_known() -> None:
    nn.Conv2d(4, 3, padding="FULL")


@wrong
def a_kernel_for_other_dims() -> None:
    nn.Conv2d(4, (3, 3, 3))


@wrong
def an_output_shape_that_cannot_be() -> None:
    nn.ConvTranspose2d(4, 3, stride=2, padding=1, output_shape=17)(IMAGE)


@wrong
def pooling_of_rows() -> None:
    nn.Sequential(nn.Flatten(), nn.MaxPool2d(2))(IMAGE)


@wrong
def global_pooling_of_rows() -> None:
    nn.GlobalAvgPool()(ROWS)


@wrong
def a_batch_norm_of_other_channels() -> None:
    nn.BatchNorm(4)(IMAGE)


@wrong
def a_batch_of_one_in_training() -> None:
    nn.Sequential(nn.BatchNorm())(ROWS[:1])


@wrong
def a_layer_norm_of_other_features() -> None:
    nn.LayerNorm((4, 8))(WORDS)


@wrong
def groups_that_do_not_divide() -> None:
    nn.GroupNorm(2)(IMAGE)


@wrong
def a_residual_of_two_shapes() -> None:
    nn.Residual(nn.Linear(4))(ROWS)


@wrong
def a_list_of_layers() -> None:
    nn.Sequential([nn.Linear(2), nn.relu])


@wrong
def a_rate_in_percent() -> None:
    nn.Dropout(30)


@wrong
def heads_that_do_not_divide() -> None:
    nn.TransformerBlock(3)(WORDS)


@wrong
def attention_of_rows() -> None:
    nn.MultiHeadAttention(2)(ROWS)


@wrong
def a_mask_for_other_places() -> None:
    nn.TransformerEncoder(1, 2)(WORDS, mask=np.ones((2, 5), bool))


@wrong
def a_decoder_without_memory() -> None:
    nn.TransformerDecoder(1, 2)(WORDS)


@wrong
def a_class_in_the_place_of_a_layer() -> None:
    nn.Sequential(nn.Linear(5, 3), nn.Flatten)


@wrong
def a_layer_by_pytorchs_name_of_the_method() -> None:
    class Model(nn.Module):
        def forward(self, x: Any) -> Any:
            return x

    Model()(ROWS)


@wrong
def a_model_that_is_differentiated_before_its_sizes_are_known() -> None:
    model = nn.Sequential(nn.Linear(3), nn.relu, nn.Linear(2))
    jt.grad(lambda model: model(ROWS).sum())(model)


@wrong
def averages_of_a_model_whose_sizes_are_not_known() -> None:
    nn.EMA(nn.Linear(3))


@wrong
def a_decay_in_percent() -> None:
    nn.EMA(nn.Linear(2, 3), 99)


@wrong
def a_layer_that_is_never_called() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.used, self.unused = nn.Linear(3), nn.Linear(2)

        def __call__(self, x: Any) -> Any:
            return self.used(x)

    nn.init(Model(), (2, 5))


@wrong
def a_summary_for_other_inputs() -> None:
    nn.summary(nn.Linear(3, 4), (2, 5))


@wrong
def an_initialiser_by_its_name() -> None:
    nn.Linear(2, 3, w_init="he_normal")


@wrong
def an_initialiser_that_is_not_called() -> None:
    nn.Linear(2, 3, w_init=nn.initializers.he_normal)


@wrong
def an_initialiser_of_matrices_for_a_bias() -> None:
    nn.Linear(2, 3, b_init=nn.initializers.orthogonal())


@wrong
def an_unknown_mode_of_an_initialiser() -> None:
    nn.initializers.variance_scaling(1.0, "FAN_IN")


@wrong
def parameters_that_are_integers() -> None:
    nn.Linear(2, 3, dtype=int)


@wrong
def a_number_for_a_regulariser() -> None:
    nn.Linear(2, 3, w_reg=1e-4)


@wrong
def one_hot_labels_for_classes() -> None:
    nn.losses.sparse_softmax_cross_entropy(np.zeros((2, 3)), np.eye(3)[LABELS])


@wrong
def labels_that_are_floats() -> None:
    nn.losses.sparse_softmax_cross_entropy(np.zeros((2, 3)), np.array([0.0, 1.0]))


@wrong
def classes_for_rows_of_probabilities() -> None:
    nn.losses.softmax_cross_entropy(np.zeros((2, 3)), LABELS)


@wrong
def a_label_that_is_no_class() -> None:
    nn.losses.sparse_softmax_cross_entropy(np.zeros((2, 3)), np.array([0, 3]))


@wrong
def a_label_that_is_no_class_compiled() -> None:
    loss = jt.jit(lambda logits, y: nn.losses.sparse_softmax_cross_entropy(logits, y))
    loss(np.zeros((2, 3)), np.array([0, 3]))


@wrong
def a_label_of_minus_one() -> None:
    nn.losses.sparse_softmax_cross_entropy(np.zeros((2, 3)), np.array([0, -1]))


@wrong
def a_label_of_minus_one_compiled() -> None:
    loss = jt.jit(lambda logits, y: nn.losses.sparse_softmax_cross_entropy(logits, y))
    loss(np.zeros((2, 3)), np.array([0, -1]))


@wrong
def class_weights_for_fewer_classes() -> None:
    nn.losses.sparse_softmax_cross_entropy(np.zeros((2, 3)), LABELS, class_weights=[1.0, 2.0])


@wrong
def a_column_for_a_row() -> None:
    nn.losses.mse(np.ones((4, 1)), np.ones(4))


@wrong
def hinge_of_labels_0_and_1() -> None:
    nn.losses.hinge(np.array([0.5, -0.5]), np.array([1, 0]))


@wrong
def log_loss_of_logits() -> None:
    nn.losses.log_loss(np.array([3.0, -2.0]), np.array([1.0, 0.0]))


@wrong
def log_loss_of_logits_compiled() -> None:
    jt.jit(lambda p, y: nn.losses.log_loss(p, y))(np.array([3.0, -2.0]), np.array([1.0, 0.0]))


@wrong
def a_reduction_of_none() -> None:
    nn.losses.mse(np.ones(4), np.ones(4), reduction=None)


@wrong
def a_mask_of_rows() -> None:
    nn.losses.mse(np.ones((4, 2)), np.ones((4, 2)), mask=np.ones(4, bool))


@wrong
def labels_of_ctc_for_steps_first() -> None:
    nn.losses.ctc(np.zeros((5, 2, 3)), np.ones((2, 2), int))


@wrong
def a_variable_that_is_made_twice() -> None:
    with nn.Store():
        nn.get_variable("w", (2, 3))
        nn.get_variable("w", (2, 3))


@wrong
def a_variable_to_be_reused_that_is_not_there() -> None:
    with nn.Store(), nn.variable_scope("layer", reuse=True):
        nn.get_variable("w", (2, 3))


@wrong
def a_variable_asked_for_with_another_shape() -> None:
    with nn.Store(), nn.variable_scope("layer", reuse=nn.AUTO_REUSE):
        nn.get_variable("w", (2, 3))
        nn.get_variable("w", (3, 2))


@wrong
def a_new_variable_without_a_shape() -> None:
    with nn.Store():
        nn.get_variable("w")


@wrong
def a_scope_without_a_name() -> None:
    with nn.Store(), nn.variable_scope():
        pass


@wrong
def a_name_that_is_not_in_the_store() -> None:
    with nn.Store() as store:
        nn.get_variable("w", (2,))
    store["v"]


@wrong
def a_variable_that_is_assigned_another_shape() -> None:
    jt.Variable(np.zeros(3), "mean").assign(np.zeros(4))


@wrong
def a_variable_of_integers_to_which_floats_are_added() -> None:
    jt.Variable(np.zeros(3, int)).assign_add(0.5)


@wrong
def a_selection_of_nothing() -> None:
    nn.freeze(nn.Linear(2, 3), nn.path("encoder/*"))


@wrong
def a_tag_that_nothing_has() -> None:
    nn.select(nn.Linear(2, 3), nn.tag("WEIGHTS"))


@wrong
def a_class_for_a_selection() -> None:
    nn.select(nn.Linear(2, 3), nn.Linear)


@wrong
def a_cell_over_rows() -> None:
    nn.rnn(nn.GRUCell(4), ROWS)


@wrong
def a_cell_over_a_list_of_steps() -> None:
    nn.rnn(nn.LSTMCell(4), [ROWS, ROWS])


@wrong
def lengths_that_the_sequences_have_not() -> None:
    nn.rnn(nn.GRUCell(4), WORDS, np.array([5, 6]))


@wrong
def lengths_that_are_floats() -> None:
    nn.rnn(nn.GRUCell(4), WORDS, np.array([5.0, 3.0]))


@wrong
def the_state_of_another_cell() -> None:
    nn.rnn(nn.LSTMCell(4), WORDS, initial_state=np.zeros((2, 4)))


@wrong
def lengths_of_a_batch_that_comes_first() -> None:
    nn.LSTM(8, 4)(WORDS, lengths=np.array([5, 5]))


@wrong
def a_state_without_its_layers() -> None:
    nn.LSTM(8, 4, batch_first=True)(WORDS, (np.zeros((2, 4)), np.zeros((2, 4))))


@wrong
def sequences_of_other_features() -> None:
    nn.LSTM(3, 4, batch_first=True)(WORDS)


@wrong
def units_by_name() -> None:
    nn.LSTM(units=4)


@wrong
def a_cell_of_size_0() -> None:
    nn.LSTMCell(8, 0)


@wrong
def a_cell_with_another_norm() -> None:
    nn.LSTMCell(4, norm="group")


@wrong
def a_residual_cell_of_another_width() -> None:
    nn.rnn(nn.ResidualWrapper(nn.GRUCell(4)), WORDS)


@wrong
def what_is_kept_for_what_is_dropped() -> None:
    nn.DropoutWrapper(nn.GRUCell(4), output=1.0)


@wrong
def a_stack_of_no_cells() -> None:
    nn.MultiRNN([])


@wrong
def the_end_of_sequences_that_are_shorter() -> None:
    nn.last_relevant(WORDS, np.array([5, 6]))


@wrong
def more_of_the_likeliest_than_words() -> None:
    nn.sample(np.zeros((2, 3)), np.random.default_rng(0), top_k=5)


@wrong
def a_temperature_of_0() -> None:
    nn.sample(np.zeros((2, 3)), np.random.default_rng(0), temperature=0)


@wrong
def a_seed_for_a_generator() -> None:
    nn.sample(np.zeros((2, 3)), 0)


@wrong
def text_generated_after_one_number() -> None:
    nn.generate(lambda tokens, state: (np.zeros((1, 5)), state), 0, (), 3)


@wrong
def keys_of_other_features() -> None:
    nn.LuongAttention(4, 3, rng=0).memory(WORDS)


@wrong
def a_query_of_other_features() -> None:
    attention = nn.LuongAttention(4, 8, rng=0)
    attention(ROWS, attention.memory(WORDS))


@wrong
def scores_of_two_features() -> None:
    nn.AttentiveRead(nn.Linear(2))(WORDS, ROWS)


@wrong
def a_token_that_has_no_row() -> None:
    nn.Embedding(3, 4)(np.array([1, 3]))


@wrong
def a_token_of_minus_one() -> None:
    nn.Embedding(3, 4)(np.array([1, -1]))


@wrong
def a_cache_that_is_too_short() -> None:
    attend = nn.MultiHeadAttention(2, 8, causal=True)
    attend(WORDS, cache=attend.cache(2, 3))


@wrong
def a_cache_before_the_features_are_known() -> None:
    nn.MultiHeadAttention(2).cache(1, 4)


@wrong
def noise_that_is_shared_along_no_axis() -> None:
    nn.Dropout(0.5, shared=3)(ROWS)


@wrong
def a_weight_that_the_layer_has_not() -> None:
    nn.SpectralNorm(nn.Embedding(3, 4), name="kernel")


@wrong
def inputs_merged_that_are_fewer() -> None:
    merge = nn.Merge(4)
    merge(ROWS, ROWS)
    merge(ROWS)


@wrong
def half_of_an_odd_number_of_features() -> None:
    nn.glu(ROWS)


@wrong
def sines_for_an_odd_number_of_features() -> None:
    nn.sinusoids(4, 3)


wrong.add(
    an_activation_as_pytorch_spells_it=lambda: nn.ReLU(),
    a_layer_of_keras=lambda: nn.Dense(3),
    a_loss_of_pytorch=lambda: nn.CrossEntropyLoss()(ROWS, LABELS),
    the_functions_of_pytorch=lambda: nn.functional.relu(ROWS),
    a_list_of_modules=lambda: nn.ModuleList([nn.Linear(2)]),
    the_parameters_of_a_model=lambda: Net(nn.Linear(5, 4)).parameters(),
    the_weight_of_a_layer=lambda: nn.Linear(5, 4).weight,
    the_state_of_a_model=lambda: Net(nn.Linear(5, 4)).state_dict(),
    a_model_that_fits=lambda: Net(nn.Linear(5, 4)).fit(ROWS, LABELS),
    a_weight_compiled=lambda: jt.jit(lambda layer, x: x @ layer.weight)(nn.Linear(5, 4), ROWS),
)


@wrong.each
def test_wrong_programs(program: Callable[..., Any], tmp_path: Path) -> None:
    wrong.check(program, tmp_path)


def test_errors_of_layers_in_compiled_code_have_no_more_to_say() -> None:
    model = jt.nn.LSTM(4, 3, rng=0)
    with pytest.raises(jt.errors.ShapeError, match="give it the shape") as refused:
        jt.jit(lambda x, n: model(x, n))(np.ones((5, 2, 4), np.float32), np.ones(2, int))
    assert not getattr(refused.value, "__notes__", [])
