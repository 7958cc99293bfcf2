"""What users of `jt.data` do wrong, and what they are told."""

import os

import numpy as np
from wrong_programs import WrongPrograms

from jitney import data

wrong = WrongPrograms(__file__)
FIVE = data.range(5)
INTS, BYTES = data.FixedLen((), np.int64), data.FixedLen((), bytes)
ONE = data.example({"x": 1})


def given(*elements):
    return data.from_generator(lambda: elements)


def written(folder, content):
    (folder / "one").write_bytes(content)
    return folder / "one"


def records(folder, compression=None):
    with data.RecordWriter(folder / "one", compression) as writer:
        writer.write(b"hello" * 100)
    return (folder / "one").read_bytes()


def inverse(x):
    return 1 // (x - 3)


wrong.add(
    elements_of_two_shapes=lambda: list(given(np.zeros(3), np.zeros(4)).batch(2)),
    lists_of_two_lengths=lambda: list(given({"x": [1, 2]}, {"x": [1]}).batch(2)),
    elements_of_two_trees=lambda: list(given({"x": 1}, {"y": 1}).batch(2)),
    numbers_and_texts=lambda: list(given(1, "a").batch(2)),
    padding_of_two_ranks=lambda: list(given(np.zeros(3), np.zeros((1, 1))).padded_batch(2)),
    padding_to_a_shorter_shape=lambda: list(given({"x": np.zeros(3)}).padded_batch(2, {"x": (2,)})),
    padding_that_is_no_such_number=lambda: list(
        given(np.zeros(3, np.uint8)).padded_batch(2, values=-1)
    ),
    padding_with_a_text=lambda: list(given(np.ones(1), np.ones(3)).batch(2, pad="<pad>")),
    padding_for_another_key=lambda: list(given({"x": np.zeros(3)}).padded_batch(2, {"y": (2,)})),
    ragged_features_in_a_batch=lambda: list(given({"x": data.split(["a"])}).batch(2)),
    numbers_taken_apart=lambda: list(FIVE.unbatch()),
    rows_of_two_lengths_taken_apart=lambda: list(
        given({"x": np.zeros(3), "y": np.zeros(2)}).unbatch()
    ),
    a_number_for_an_array=lambda: data.from_arrays({"x": 3}),
    arrays_of_two_lengths=lambda: data.from_arrays({"x": np.zeros((5, 2)), "y": np.zeros(4)}),
    a_list_of_rows_of_two_lengths=lambda: data.from_arrays([[1], [1, 2]]),
    no_arrays=lambda: data.from_arrays({}),
    the_shape_of_nothing=lambda: data.from_arrays(np.zeros((0, 3))).element_spec,
    a_batch_of_0=lambda: FIVE.batch(0),
    a_batch_of_fractions=lambda: FIVE.batch(2.5),
    fewer_than_none=lambda: FIVE.take(-1),
    a_shard_beyond_the_last=lambda: FIVE.shard(2, 2),
    a_stream_shuffled_as_a_whole=lambda: given(1, 2).shuffle(),
    a_buffer_that_is_never_full=lambda: FIVE.shuffle(3, min_after=3),
    a_seed_in_words=lambda: FIVE.shuffle(seed="a"),
    boundaries_that_fall=lambda: FIVE.bucket_by_length(len, [3, 2], 1),
    sizes_for_fewer_buckets=lambda: FIVE.bucket_by_length(len, [3], [1]),
    numbers_without_a_length=lambda: list(FIVE.bucket_by_length(len, [3], 2)),
    windows_that_stand_still=lambda: FIVE.window(2, shift=0),
    the_length_of_a_stream=lambda: len(given(1, 2)),
    the_length_of_what_does_not_end=lambda: len(FIVE.repeat()),
    processes_without_workers=lambda: FIVE.map(abs, processes=True),
    an_unknown_kind_of_processes=lambda: FIVE.map(abs, workers=1, processes="threads"),
    a_text_for_a_function=lambda: FIVE.map("parse"),
    a_worker_that_raises=lambda: list(FIVE.map(inverse, workers=2)),
    an_element_that_raises_in_a_batch=lambda: list(FIVE.map(inverse).batch(4).prefetch(2)),
    a_worker_that_dies=lambda: list(FIVE.map(lambda x: os._exit(3), workers=1, processes="fork")),
    a_function_that_cannot_be_sent=lambda: list(
        FIVE.map(lambda x: x, workers=1, processes="spawn")
    ),
    a_function_that_does_not_draw=lambda: list(FIVE.map(lambda x: x, seed=0)),
    a_list_for_a_dataset=lambda: list(FIVE.flat_map(lambda x: [x, x])),
    an_array_for_a_truth=lambda: list(data.from_arrays(np.ones((3, 2))).filter(lambda x: x > 2)),
    a_list_for_a_key=lambda: list(FIVE.group_by_window(lambda x: [x], 2)),
    arrays_zipped=lambda: data.zip(FIVE, np.zeros(3)),
    a_list_added=lambda: FIVE + [1],
    a_list_for_a_generator=lambda: data.from_generator([1]),
    a_device_that_is_not_there=lambda: list(FIVE.batch(2).prefetch(1, device="gpu:7")),
    a_set_in_a_cache=lambda p: list(given({1, 2}).cache(p / "cache")),
    no_files=lambda p: data.files(p / "*.png"),
    no_file=lambda p: data.tfrecord(p / "train.tfrecord"),
    text_for_records=lambda p: list(data.tfrecord(written(p, b"hello world, this is text"))),
    a_compression_in_small_letters=lambda p: data.tfrecord(written(p, b""), compression="gzip"),
    records_that_are_not_compressed=lambda p: (
        records(p) and list(data.tfrecord(p / "one", compression="GZIP"))
    ),
    records_that_are_cut_off=lambda p: list(data.tfrecord(written(p, records(p)[:-3]))),
    compressed_records_that_are_cut_off=lambda p: list(
        data.tfrecord(written(p, records(p, "GZIP")[:-10]))
    ),
    a_folder_that_is_not_there=lambda p: data.RecordWriter(p / "none" / "a"),
    a_text_for_a_record=lambda p: data.RecordWriter(p / "one").write("text"),
    complex_features=lambda: data.example({"x": 1j}),
    features_of_two_kinds=lambda: data.example({"x": [1, "a"]}),
    features_of_two_lengths=lambda: data.example({"x": [[1, 2], [3]]}),
    a_feature_that_is_missing=lambda: data.parse_example(ONE, {"label": INTS}),
    a_feature_that_is_missing_in_a_batch=lambda: data.parse_examples(
        [ONE, data.example({"y": 1})], {"x": INTS}
    ),
    a_feature_of_another_kind=lambda: data.parse_example(ONE, {"x": BYTES}),
    a_feature_of_another_length=lambda: data.parse_example(
        ONE, {"x": data.FixedLen((2,), np.int64)}
    ),
    a_number_that_is_too_large=lambda: data.parse_example(
        data.example({"x": 300}), {"x": data.FixedLen((), np.uint8)}
    ),
    a_dtype_for_a_feature=lambda: data.parse_example(ONE, {"x": np.int64}),
    an_unknown_layout=lambda: data.parse_examples([ONE], {"x": data.VarLen(np.int64, "dense")}),
    a_sequence_of_fixed_length=lambda: data.parse_sequence_example(
        data.sequence_example({}, {"x": [[1], [2]]}), {}, {"x": INTS}
    ),
    a_value_that_is_missing=lambda p: list(data.csv(written(p, b"a,b\n1,x\n,y\n"))),
    a_row_that_is_shorter=lambda p: list(data.csv(written(p, b"a,b\n1\n"))),
    a_column_that_is_not_there=lambda p: list(data.csv(written(p, b"a,b\n1,x\n"), columns=["c"])),
    a_column_of_another_dtype=lambda p: list(
        data.csv(written(p, b"a,b\n1,x\n"), dtypes={"b": np.float64})
    ),
    text_of_another_encoding=lambda p: list(data.text_lines(written(p, b"one\ncaf\xe9\n"))),
    an_encoding_of_two_bytes=lambda p: data.text_lines(written(p, b""), encoding="utf-16"),
    numbers_that_are_not_whole=lambda p: data.memmap(written(p, bytes(10)), np.float32, (2,)),
    text_for_a_picture=lambda: data.decode_image(b"hello"),
    five_channels=lambda: data.decode_image(b"hello", channels=5),
    one_number_for_a_size=lambda: data.resize_image(np.zeros((4, 4, 3), np.uint8), 8),
    a_batch_of_pictures=lambda: data.resize_image(np.zeros((2, 4, 4, 3), np.uint8), (8, 8)),
    a_part_that_is_larger=lambda: data.crop(np.zeros((4, 4, 3)), (8, 8)),
    floats_for_pixels=lambda: data.encode_image(np.zeros((4, 4, 3))),
    a_word_for_a_number=lambda: data.to_numbers(["1", "two"]),
    a_token_twice=lambda: data.Vocabulary(["a", "b", "a"]),
    an_unknown_token=lambda: data.Vocabulary(["a", "b"]).ids(["c"]),
    a_number_of_no_token=lambda: data.Vocabulary(["a", "b"]).words([2]),
    an_unknown_special_token=lambda: data.ByteTokenizer().encode("a", "<end>"),
    a_state_of_another_dataset=lambda: FIVE.batch(2).iterator(FIVE.iterator().state()),
    a_step_for_a_state=lambda: FIVE.iterator({"step": 3}),
    a_state_that_is_damaged=lambda: FIVE.map(abs).iterator(
        {**FIVE.map(abs).iterator().state(), "at": {"a": 1}}
    ),
)


@wrong
def a_generator_that_raises():
    def rows(n):
        yield n
        raise OSError("socket closed")

    list(data.from_generator(rows, 3))


@wrong
def a_generator_that_is_called():
    def rows():
        yield 1

    data.from_generator(rows())


@wrong
def a_state_of_longer_data():
    it = given(*range(9)).iterator()
    list(it)
    list(given(1, 2, 3).iterator(it.state()))


@wrong
def a_cache_of_another_dataset(folder):
    list(FIVE.cache(folder / "cache"))
    list(FIVE.map(abs).cache(folder / "cache"))


@wrong
def an_iterator_that_is_closed():
    it = iter(FIVE)
    it.close()
    next(it)


wrong.add(
    a_loader_of_pytorch=lambda: data.DataLoader(np.ones((3, 2)), batch_size=2),
    slices_of_tensorflow=lambda: data.from_tensor_slices(np.ones((3, 2))),
    an_iterator_of_tensorflow=lambda: data.range(3).as_numpy_iterator(),
)


@wrong.each
def test_wrong_programs(program, tmp_path):
    wrong.check(program, tmp_path)
