"""What users of checkpoints, trainers and metrics do wrong, and what they are told."""

import json
import pickle

import numpy as np
from wrong_programs import WrongPrograms

import jitney as jt
from jitney import data, nn, optim, train
from jitney.train import metrics

wrong = WrongPrograms(__file__)
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(6, 2)
BATCHES = [(X[:3], X[:3, :1]), (X[3:], X[3:, :1])]
TREE = {"w": np.zeros(3)}
THREE = np.array([0, 1, 1])
Trainer, Linear, mse = train.Trainer, nn.Linear, nn.losses.mse


def trainer(**settings):
    return Trainer(Linear(2, 1, rng=0), optim.sgd(0.1), mse, **settings)


def saved(folder, tree=TREE):
    return train.save(folder / "one", tree)


def cyclic():
    tree = {}
    tree["self"] = [tree]
    return tree


def hostile(folder, entry):
    header = json.dumps({"w": entry}).encode()
    (folder / "one").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    return folder / "one"


wrong.add(
    a_fit_without_an_end=lambda: trainer().fit(BATCHES),
    a_fit_of_inputs_and_targets=lambda: trainer().fit(X, X[:, 0], epochs=1),
    a_fit_of_no_batches=lambda: trainer().fit([], epochs=1),
    a_fit_of_nothing=lambda: trainer().fit(None, epochs=1),
    a_fit_of_an_array=lambda: trainer().fit(X, epochs=1),
    an_iterator_for_two_passes=lambda: trainer().fit(iter(BATCHES), epochs=2),
    an_iterator_for_unknown_sizes=lambda: Trainer(Linear(1), optim.sgd(0.1), mse).fit(
        iter(BATCHES), epochs=1
    ),
    rows_for_columns=lambda: trainer().fit([(X, X[:, 0])], epochs=1),
    batches_without_targets=lambda: trainer().fit([X], epochs=1),
    a_dict_for_a_model_of_arrays=lambda: trainer().fit([{"x": X, "y": X}], epochs=1),
    a_loss_that_is_nan=lambda: trainer().fit([(X * np.nan, X[:, :1])], epochs=1),
    a_loss_of_a_vector=lambda: Trainer(Linear(2, 1), optim.sgd(0.1), lambda y, t: y - t).fit(
        BATCHES, epochs=1
    ),
    an_optimiser_by_its_name=lambda: Trainer(Linear(2, 1), "adam", mse),
    a_loss_by_its_name=lambda: Trainer(Linear(2, 1), optim.sgd(0.1), "mse"),
    metrics_by_their_names=lambda: trainer(metrics=["accuracy"]),
    a_class_for_a_metric=lambda: trainer(metrics={"accuracy": metrics.Accuracy}),
    one_hook=lambda: trainer(hooks=train.Log(10)),
    a_class_for_a_hook=lambda: trainer(hooks=[train.Log]),
    a_function_without_its_params=lambda: Trainer(lambda p, x: x, optim.sgd(0.1), mse).fit(
        BATCHES, epochs=1
    ),
    an_optimiser_of_another_model=lambda: Trainer(Linear(2, 1), optim.SGD(Linear(2, 1)), mse).fit(
        BATCHES, epochs=1
    ),
    no_batches_accumulated=lambda: trainer(accumulate=0),
    nothing_to_evaluate=lambda: trainer().evaluate([]),
    no_path_to_save_to=lambda: trainer().save(),
    summaries_without_a_folder=lambda: trainer(hooks=[train.Summaries()]).fit(BATCHES, epochs=1),
    a_result_by_kerass_name=lambda: trainer(hooks=[train.EarlyStop("val_loss")]).fit(
        BATCHES, epochs=1, validate=BATCHES
    ),
    something_every_0_steps=lambda: train.Log(0),
    a_profile_that_ends_before_it_begins=lambda: train.Profile(3, 2, "x"),
    a_rate_that_is_fixed=lambda: trainer(hooks=[train.LearningRate(lambda n: 0.1)]).fit(
        BATCHES, epochs=1
    ),
    settings_that_are_no_dataclass=lambda: train.parse_settings(dict, []),
    an_evaluation_beside_nothing=lambda: train.Experiment(trainer()).continuous_eval(),
    a_set_saved=lambda p: train.save(p / "one", {"names": {"a"}}),
    texts_saved=lambda p: train.save(p / "one", {"names": np.array(["a", "b"])}),
    objects_saved=lambda p: train.save(p / "one", {"x": [np.array([None])]}),
    long_doubles_saved=lambda p: train.save(p / "one", np.longdouble(1)),
    shapes_saved=lambda p: train.save(p / "one", {"w": jt.ShapeDtype((2,), np.float64)}),
    a_circle_saved=lambda p: train.save(p / "one", cyclic()),
    a_key_that_is_a_set=lambda p: train.save(p / "one", {"x": {frozenset(): 1}}),
    a_folder_without_a_step=lambda p: train.save(p, TREE),
    a_file_with_a_step=lambda p: train.save(saved(p), TREE, step=1),
    a_step_below_0=lambda p: train.save(p, TREE, step=-1),
    a_step_in_words=lambda p: train.save(p, TREE, step="last"),
    nothing_kept=lambda p: train.save(p, TREE, step=1, keep=0),
    the_tree_before_the_path=lambda p: train.save(TREE, p / "one"),
    a_file_that_is_not_there=lambda p: train.restore(p / "none.safetensors"),
    a_folder_without_checkpoints=lambda p: train.restore(p),
    both_places=lambda p: train.restore(saved(p), TREE, into=TREE),
    a_part_of_no_tree=lambda p: train.restore(saved(p), only="w"),
    a_part_that_is_not_there=lambda p: train.restore(saved(p), TREE, only="encoder"),
    other_shapes_and_names=lambda p: train.restore(
        saved(p, {"w": np.ones(3), "v": np.ones(1)}), {"w": np.ones(4), "u": np.ones(1)}
    ),
    another_dtype=lambda p: train.restore(saved(p), {"w": np.ones(3, np.float32)}),
    another_kind=lambda p: train.restore(saved(p, {"w": 1}), TREE),
    a_name_with_a_fault=lambda p: train.restore(
        saved(p, {"my_v2": np.ones(3)}), TREE, rename={"my_v": "w"}
    ),
    two_of_one_name=lambda p: train.restore(
        saved(p, {**TREE, "v": np.ones(3)}), TREE, rename={"v": "w"}
    ),
    stars_that_are_more=lambda p: train.restore(saved(p), TREE, rename={"a*": "*b*"}),
    names_in_a_list=lambda p: train.restore(saved(p), TREE, rename=[("w", "v")]),
    an_array_that_is_read_only=lambda p: train.restore(
        saved(p), into={"w": np.broadcast_to(1.0, (3,))}
    ),
    another_generator=lambda p: train.restore(
        saved(p, {"rng": np.random.default_rng(0)}),
        into={"rng": np.random.Generator(np.random.MT19937())},
    ),
    an_iterator_in_a_new_tree=lambda p: train.restore(
        saved(p, {"at": iter(data.range(3))}), {"at": iter(data.range(3))}
    ),
    labels_of_another_number=lambda: metrics.Accuracy().update(THREE, THREE[:2]),
    predictions_before_labels=lambda: metrics.Accuracy().update(np.zeros((3, 2)), THREE),
    an_average_of_three_classes=lambda: metrics.Precision(3),
    an_average_of_another_kind=lambda: metrics.F1(3, average="samples"),
    a_label_that_is_no_class=lambda: metrics.Confusion(3).update(np.array([0, 3]), THREE[:2]),
    a_label_of_minus_one=lambda: metrics.Confusion(3).update(np.array([0, -1]), THREE[:2]),
    scores_of_both_classes=lambda: metrics.AUC().update(THREE, np.zeros((3, 2))),
    logits_for_scores=lambda: metrics.AUC().update(THREE, np.array([-1.0, 2.0, 5.0])),
    a_third_class=lambda: metrics.AUC().update(THREE + 1, np.full(3, 0.5)),
    a_curve_in_capitals=lambda: metrics.AUC("ROC"),
    classes_for_scores=lambda: metrics.TopKAccuracy(2).update(THREE, THREE),
    a_word_beyond_the_last=lambda: metrics.Perplexity().update(np.array([8]), np.zeros((1, 8))),
    metrics_of_other_settings=lambda: metrics.Confusion(2) + metrics.Confusion(3),
    a_number_added=lambda: metrics.Mean() + 1.0,
    weights_of_another_number=lambda: metrics.Mean().update(np.ones(3), np.ones(2)),
    columns_for_rows=lambda: metrics.MeanSquaredError().update(np.ones((3, 1)), np.ones(3)),
)


@wrong
def a_model_of_another_size_resumed(folder):
    trainer(path=folder).fit(BATCHES, epochs=1)
    Trainer(Linear(2, 2), optim.sgd(0.1), mse, path=folder).fit(BATCHES, epochs=2)


@wrong
def another_optimiser_resumed(folder):
    trainer(path=folder).fit(BATCHES, epochs=1)
    Trainer(Linear(2, 1), optim.adam(0.1), mse, path=folder).fit(BATCHES, epochs=2)


@wrong
def shorter_data_resumed(folder):
    trainer(path=folder).fit([*BATCHES, *BATCHES], steps=3)
    trainer(path=folder).fit(BATCHES, steps=9)


@wrong
def settings_that_are_damaged(folder):
    (folder / "settings.json").write_text("{")
    train.load_settings(folder)


@wrong
def a_file_that_is_cut_off(folder):
    file = saved(folder)
    file.write_bytes(file.read_bytes()[:-5])
    train.restore(file)


@wrong
def a_byte_that_changed(folder):
    file = saved(folder)
    file.write_bytes(file.read_bytes()[:-1] + b"\1")
    train.restore(file)


@wrong
def a_pickle(folder):
    (folder / "one").write_bytes(pickle.dumps(TREE))
    train.restore(folder / "one")


@wrong
def an_archive_of_numpys(folder):
    np.savez(folder / "one.npz", **TREE)
    train.restore(folder / "one.npz")


@wrong
def a_file_that_claims_too_much(folder):
    entry = {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}
    train.restore(hostile(folder, entry))


@wrong
def a_file_with_code(folder):
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], "code": "import os"}
    train.restore(hostile(folder, entry))


wrong.add(
    a_callback_of_keras=lambda: train.EarlyStopping(monitor="loss"),
    a_saver=lambda: train.Saver(),
    a_trainer_that_is_compiled=lambda: trainer().compile(optimizer="adam"),
)


@wrong.each
def test_wrong_programs(program, tmp_path):
    wrong.check(program, tmp_path)
