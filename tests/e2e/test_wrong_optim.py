"""What users of optimisers and schedules do wrong, and what they are told."""

import numpy as np
import pytest
from wrong_programs import WrongPrograms

import jitney as jt
from jitney import optim

wrong = WrongPrograms(__file__)
PARAMS = {"w": np.ones((2, 3)), "layers": [np.ones(2), np.ones(3)]}
ADAM = optim.adam(1e-3)
STATE = ADAM.init(PARAMS)
ROWS = np.ones((1, 2), np.float32)
FROZEN = jt.nn.freeze(jt.nn.Linear(2, 3))


def grads(**changes):
    return {**PARAMS, **changes}


wrong.add(
    another_key=lambda: ADAM.update({"v": np.ones(3), "layers": PARAMS["layers"]}, STATE, PARAMS),
    fewer_layers=lambda: ADAM.update(grads(layers=[np.ones(2)]), STATE, PARAMS),
    a_tuple_for_a_list=lambda: ADAM.update(grads(layers=(1.0, 2.0)), STATE, PARAMS),
    a_gradient_of_another_shape=lambda: ADAM.update(grads(w=np.ones(3)), STATE, PARAMS),
    a_gradient_of_integers=lambda: ADAM.update(grads(w=np.ones((2, 3), int)), STATE, PARAMS),
    a_state_of_other_parameters=lambda: ADAM.update(np.ones(2), STATE, np.ones(2)),
    gradients_of_nothing=lambda: optim.SGD(PARAMS).step({"w": None, "layers": [None, None]}),
    updates_of_nothing=lambda: optim.apply_updates(PARAMS, {"w": None, "layers": [None, None]}),
    nothing_to_train=lambda: optim.SGD({"n": np.arange(3)}),
    sizes_not_known=lambda: optim.SGD([jt.nn.Linear(2, 3), jt.nn.Linear(4)]),
    a_number_in_place=lambda: optim.SGD({"w": 1.0}),
    decay_without_parameters=lambda: optim.add_decayed_weights(0.1).update([1.0], {}),
    masters_without_parameters=lambda: optim.with_masters(optim.sgd(0.1)).update([1.0], {}),
    a_rate_in_words=lambda: optim.sgd("fast"),
    a_rate_for_each_leaf=lambda: optim.adam(np.ones(3)),
    a_schedule_of_arrays=lambda: optim.SGD(np.ones(2), lambda step: np.ones(2)).step(np.ones(2)),
    a_number_as_schedule=lambda: optim.scale_by_schedule(0.1),
    a_schedule_assigned=lambda: setattr(optim.SGD(np.ones(2)), "lr", lambda step: 0.1),
    no_decay=lambda: optim.adam(0.1, b1=1.5),
    no_memory=lambda: optim.lbfgs(0.1, 0),
    lbfgs_without_parameters=lambda: optim.scale_by_lbfgs().update([1.0], {}),
    another_line_search=lambda: optim.LBFGS(np.ones(2), line_search_fn="armijo"),
    nesterov_without_momentum=lambda: optim.SGD(np.ones(2), nesterov=True),
    a_class_in_a_chain=lambda: optim.chain(optim.clip(1.0), optim.Adam),
    an_unknown_option=lambda: optim.Adam(np.ones(2), groups=[(True, {"rate": 1.0})]),
    a_mask_of_another_tree=lambda: optim.masked(ADAM, {"w": True}).init(PARAMS),
    clipping_to_nothing=lambda: optim.clip_by_global_norm(0.0),
    weights_nowhere=lambda: optim.clip_weights(0.1, -0.1),
    no_calls_accumulated=lambda: optim.accumulate(ADAM, 0),
    a_decay_in_no_steps=lambda: optim.exponential_decay(0.1, 0, 0.5),
    a_negative_decay=lambda: optim.exponential_decay(0.1, 10, -0.5),
    boundaries_too_many=lambda: optim.join_schedules([lambda n: 1.0], [3]),
    boundaries_out_of_order=lambda: optim.join_schedules([lambda n: 1.0] * 3, [5, 3]),
    all_warm_up=lambda: optim.warmup_cosine_decay_schedule(0.0, 1.0, 100, 100),
    another_way_to_anneal=lambda: optim.one_cycle(0.1, 100, anneal_strategy="exp"),
    a_cycle_of_one_part=lambda: optim.one_cycle(0.1, 100, pct_start=1.0),
    options_by_keras_names=lambda: optim.Adam(PARAMS, learning_rate=1e-3),
    lists_of_dicts_for_groups=lambda: optim.SGD([{"params": [np.ones(2)], "lr": 0.1}], lr=0.1),
    groups_by_name=lambda: optim.SGD(PARAMS, groups={"w": {"lr": 0.1}}),
    a_group_for_nothing=lambda: optim.SGD(FROZEN, groups=[(jt.nn.path("head/*"), {"lr": 0.1})]),
    state_and_gradients_swapped=lambda: ADAM.update(ADAM.init(PARAMS), PARAMS),
    a_state_that_was_not_taken_apart=lambda: optim.apply_updates(PARAMS, ADAM.update(PARAMS, STATE)),
    a_state_of_another_rule=lambda: ADAM.update(PARAMS, optim.sgd(1e-3, 0.9).init(PARAMS), PARAMS),
    a_rate_below_0=lambda: optim.sgd(-0.1),
    a_rate_that_is_nan=lambda: optim.SGD(PARAMS, float("nan")),
    a_rate_assigned_in_words=lambda: setattr(optim.SGD(PARAMS), "lr", "fast"),
    one_beta=lambda: optim.Adam(PARAMS, 1e-3, betas=0.9),
    a_momentum_above_1=lambda: optim.SGD(PARAMS, 0.1, momentum=1.5),
    a_weight_decay_below_0=lambda: optim.adamw(1e-3, weight_decay=-1),
    a_loss_for_gradients=lambda: optim.SGD(PARAMS).step(np.float64(3.0)),
    a_loss_that_was_computed=lambda: optim.SGD(PARAMS).minimize(3.0),
    a_loss_of_a_vector=lambda: optim.SGD(PARAMS).minimize(lambda p: p["w"]),
    a_class_for_a_rule=lambda: optim.Optimizer(PARAMS, optim.SGD),
    a_number_for_a_rule=lambda: optim.Optimizer(PARAMS, 0.1),
    a_list_in_a_chain=lambda: optim.chain([optim.clip(1.0), optim.sgd(0.1)]),
    a_mask_without_its_rule=lambda: optim.by_group(optim.sgd(0.1), {"w": True}),
    half_a_call_accumulated=lambda: optim.accumulate(ADAM, 2.5),
    a_scale_below_0=lambda: optim.scale_loss(ADAM, initial=-1.0),
    parameters_that_are_read_only=lambda: optim.SGD(np.broadcast_to(1.0, (2,))),
    a_model_that_is_frozen=lambda: optim.SGD(FROZEN).minimize(lambda model: model(ROWS).sum()),
)  # fmt: skip


wrong.add(
    a_scheduler_of_pytorch=lambda: optim.lr_scheduler.StepLR(None, 3),
    gradients_that_are_zeroed=lambda: optim.SGD({"w": np.ones(2)}, 0.1).zero_grad(),
    an_object_as_a_rule=lambda: optim.SGD({"w": np.ones(2)}, 0.1).init({"w": np.ones(2)}),
)


@wrong.each
def test_wrong_programs(program, tmp_path):
    wrong.check(program, tmp_path)


def test_the_line_is_the_users_in_compiled_code_too():
    opt = optim.Optimizer({"w": np.ones(2)}, optim.sgd(0.1))
    with pytest.raises(jt.errors.ShapeError, match=r"test_wrong_optim\.py"):
        jt.jit(lambda: opt.step({"w": np.ones(3)}))()
