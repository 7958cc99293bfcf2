"""`jt.data`: datasets, iterators whose position can be saved, and the files that they read.

    train = jt.data.tfrecord("train-*.tfrecord").shuffle(10_000, seed=0).map(parse, workers=2).batch(32)
    it = iter(train.prefetch(2))
    for batch in it:
        step(batch)
        saved = it.state()  # small, for JSON; train.prefetch(2).iterator(saved) goes on exactly there

One idea: a source is a pull iterator with a state, and a transformation wraps it (`steps.py`). What can
be had in any order (`rows.py`) is shuffled and batched by index. `docs/guides/data.md` is the guide.

Files other than text and `.npy` are read by packages of `pip install "jitney[data]"`. This room uses
public names only.
"""

import typing

import jitney as jt

from .dataset import Dataset as Dataset
from .errors import DataError as DataError
from .errors import WorkerError as WorkerError
from .features import FixedLen as FixedLen
from .features import FixedLenSequence as FixedLenSequence
from .features import Ragged as Ragged
from .features import Sparse as Sparse
from .features import VarLen as VarLen
from .features import parse_example as parse_example
from .features import parse_examples as parse_examples
from .features import parse_sequence_example as parse_sequence_example
from .iterators import Iterator as Iterator
from .messages import example as example
from .messages import feature as feature
from .messages import sequence_example as sequence_example
from .pictures import crop as crop
from .pictures import decode_image as decode_image
from .pictures import encode_image as encode_image
from .pictures import flip as flip
from .pictures import resize_image as resize_image
from .records import RecordWriter as RecordWriter
from .sources import arrow as arrow
from .sources import csv as csv
from .sources import files as files
from .sources import from_arrays as from_arrays
from .sources import from_generator as from_generator
from .sources import memmap as memmap
from .sources import range as range
from .sources import read_file as read_file
from .sources import text_lines as text_lines
from .sources import tfrecord as tfrecord
from .sources import zip as zip
from .strings import ByteTokenizer as ByteTokenizer
from .strings import Vocabulary as Vocabulary
from .strings import split as split
from .strings import to_numbers as to_numbers

if not typing.TYPE_CHECKING:
    __getattr__ = jt.errors.elsewhere.of_modules(
        __name__,
        AUTOTUNE="a number: dataset.map(function, workers=2), dataset.prefetch(2)",
        DataLoader="jt.data.from_arrays(arrays).shuffle(seed=0).batch(32)",
        TFRecordDataset="jt.data.tfrecord(paths)",
        TensorDataset="jt.data.from_arrays((x, y))",
        TextLineDataset="jt.data.text_lines(paths)",
        from_tensor_slices="jt.data.from_arrays(arrays)",
        parse_single_example="jt.data.parse_example(record, features)",
    )
