"""`jt.nn`: modules, layers, recurrent networks, losses.

A module is an ordinary object whose attributes are arrays, other modules and settings; compiled code
reads and changes them as it does those of every object. This room uses public names only.
"""

from . import initializers as initializers
from .activations import celu as celu
from .activations import elu as elu
from .activations import gelu as gelu
from .activations import glu as glu
from .activations import hard_sigmoid as hard_sigmoid
from .activations import hard_silu as hard_silu
from .activations import hard_swish as hard_swish
from .activations import hardshrink as hardshrink
from .activations import hardtanh as hardtanh
from .activations import identity as identity
from .activations import leaky_relu as leaky_relu
from .activations import log_sigmoid as log_sigmoid
from .activations import log_softmax as log_softmax
from .activations import mish as mish
from .activations import relu as relu
from .activations import relu6 as relu6
from .activations import selu as selu
from .activations import sigmoid as sigmoid
from .activations import silu as silu
from .activations import softmax as softmax
from .activations import softmin as softmin
from .activations import softplus as softplus
from .activations import softshrink as softshrink
from .activations import softsign as softsign
from .activations import swish as swish
from .activations import tanh as tanh
from .activations import tanhshrink as tanhshrink
from .activations import threshold as threshold
from .initializers import seed as seed
from .module import Module as Module
from .module import modules as modules
from .module import unbuilt as unbuilt
from .recurrent import GRU as GRU
from .recurrent import LSTM as LSTM
from .recurrent import RNN as RNN
from .recurrent import AttentionCell as AttentionCell
from .recurrent import BahdanauAttention as BahdanauAttention
from .recurrent import DropoutWrapper as DropoutWrapper
from .recurrent import GRUCell as GRUCell
from .recurrent import LSTMCell as LSTMCell
from .recurrent import LuongAttention as LuongAttention
from .recurrent import MultiRNN as MultiRNN
from .recurrent import ResidualWrapper as ResidualWrapper
from .recurrent import RNNCell as RNNCell
from .recurrent import RNNCore as RNNCore
from .recurrent import beam_search as beam_search
from .recurrent import bidirectional as bidirectional
from .recurrent import generate as generate
from .recurrent import greedy as greedy
from .recurrent import last_relevant as last_relevant
from .recurrent import length_of as length_of
from .recurrent import masked_mean as masked_mean
from .recurrent import repeat_rows as repeat_rows
from .recurrent import rnn as rnn
from .recurrent import sample as sample
from .recurrent import sequence_mask as sequence_mask

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "AttentionCell",
    "BahdanauAttention",
    "DropoutWrapper",
    "GRUCell",
    "LSTMCell",
    "LuongAttention",
    "Module",
    "MultiRNN",
    "RNNCell",
    "RNNCore",
    "ResidualWrapper",
    "beam_search",
    "bidirectional",
    "celu",
    "elu",
    "gelu",
    "generate",
    "glu",
    "greedy",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hardshrink",
    "hardtanh",
    "identity",
    "initializers",
    "last_relevant",
    "leaky_relu",
    "length_of",
    "log_sigmoid",
    "log_softmax",
    "masked_mean",
    "mish",
    "modules",
    "relu",
    "relu6",
    "repeat_rows",
    "rnn",
    "sample",
    "seed",
    "selu",
    "sequence_mask",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "swish",
    "tanh",
    "tanhshrink",
    "threshold",
    "unbuilt",
]
