"""`jt.nn`: modules, layers, recurrent networks, losses.

A module is an ordinary object whose attributes are arrays, other modules and settings; compiled code
reads and changes them as it does those of every object. This room uses public names only.
"""

import typing

import jitney as jt

from . import initializers as initializers
from . import losses as losses
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
from .attention import AttentiveRead as AttentiveRead
from .attention import KeyValueCache as KeyValueCache
from .attention import MultiHeadAttention as MultiHeadAttention
from .averages import EMA as EMA
from .combining import Flatten as Flatten
from .combining import Merge as Merge
from .combining import Residual as Residual
from .combining import SelectInput as SelectInput
from .combining import Sequential as Sequential
from .convolutions import Conv1d as Conv1d
from .convolutions import Conv2d as Conv2d
from .convolutions import Conv3d as Conv3d
from .convolutions import ConvTranspose1d as ConvTranspose1d
from .convolutions import ConvTranspose2d as ConvTranspose2d
from .convolutions import ConvTranspose3d as ConvTranspose3d
from .convolutions import DepthwiseConv1d as DepthwiseConv1d
from .convolutions import DepthwiseConv2d as DepthwiseConv2d
from .convolutions import DepthwiseConv3d as DepthwiseConv3d
from .convolutions import SeparableConv1d as SeparableConv1d
from .convolutions import SeparableConv2d as SeparableConv2d
from .dropout import Dropout as Dropout
from .initializers import seed as seed
from .linear import Embedding as Embedding
from .linear import Linear as Linear
from .module import Module as Module
from .module import modules as modules
from .module import unbuilt as unbuilt
from .normalization import BatchNorm as BatchNorm
from .normalization import GroupNorm as GroupNorm
from .normalization import InstanceNorm as InstanceNorm
from .normalization import LayerNorm as LayerNorm
from .normalization import RMSNorm as RMSNorm
from .normalization import SpectralNorm as SpectralNorm
from .normalization import normalize as normalize
from .pooling import AdaptiveAvgPool as AdaptiveAvgPool
from .pooling import AdaptiveMaxPool as AdaptiveMaxPool
from .pooling import AvgPool1d as AvgPool1d
from .pooling import AvgPool2d as AvgPool2d
from .pooling import AvgPool3d as AvgPool3d
from .pooling import GlobalAvgPool as GlobalAvgPool
from .pooling import GlobalMaxPool as GlobalMaxPool
from .pooling import MaxPool1d as MaxPool1d
from .pooling import MaxPool2d as MaxPool2d
from .pooling import MaxPool3d as MaxPool3d
from .recurrent.attention import AttentionCell as AttentionCell
from .recurrent.attention import BahdanauAttention as BahdanauAttention
from .recurrent.attention import LuongAttention as LuongAttention
from .recurrent.cells import GRUCell as GRUCell
from .recurrent.cells import LSTMCell as LSTMCell
from .recurrent.cells import RNNCell as RNNCell
from .recurrent.cells import RNNCore as RNNCore
from .recurrent.decoding import beam_search as beam_search
from .recurrent.decoding import generate as generate
from .recurrent.decoding import greedy as greedy
from .recurrent.decoding import repeat_rows as repeat_rows
from .recurrent.decoding import sample as sample
from .recurrent.layers import GRU as GRU
from .recurrent.layers import LSTM as LSTM
from .recurrent.layers import RNN as RNN
from .recurrent.loops import bidirectional as bidirectional
from .recurrent.loops import last_relevant as last_relevant
from .recurrent.loops import length_of as length_of
from .recurrent.loops import masked_mean as masked_mean
from .recurrent.loops import rnn as rnn
from .recurrent.loops import sequence_mask as sequence_mask
from .recurrent.wrappers import DropoutWrapper as DropoutWrapper
from .recurrent.wrappers import MultiRNN as MultiRNN
from .recurrent.wrappers import ResidualWrapper as ResidualWrapper
from .regularizers import L1 as L1
from .regularizers import L1L2 as L1L2
from .regularizers import L2 as L2
from .regularizers import regularization as regularization
from .selection import Mask as Mask
from .selection import Selection as Selection
from .selection import entries as entries
from .selection import everything as everything
from .selection import freeze as freeze
from .selection import path as path
from .selection import requires_grad as requires_grad
from .selection import select as select
from .selection import tag as tag
from .selection import trainable as trainable
from .selection import type as type
from .selection import where as where
from .specs import Summary as Summary
from .specs import init as init
from .specs import summary as summary
from .store import AUTO_REUSE as AUTO_REUSE
from .store import Scope as Scope
from .store import Store as Store
from .store import current_store as current_store
from .store import get_variable as get_variable
from .store import get_variable_scope as get_variable_scope
from .store import make_template as make_template
from .store import variable_scope as variable_scope
from .transformer import TransformerBlock as TransformerBlock
from .transformer import TransformerDecoder as TransformerDecoder
from .transformer import TransformerEncoder as TransformerEncoder
from .transformer import sinusoids as sinusoids

if not typing.TYPE_CHECKING:
    __getattr__ = jt.errors.elsewhere.of_modules(
        __name__,
        BCELoss="jt.nn.losses.log_loss(probabilities, labels)",
        BCEWithLogitsLoss="jt.nn.losses.sigmoid_cross_entropy(logits, labels)",
        BatchNorm1d="jt.nn.BatchNorm(features)",
        BatchNorm2d="jt.nn.BatchNorm(features)",
        BatchNormalization="jt.nn.BatchNorm()",
        CrossEntropyLoss="jt.nn.losses.sparse_softmax_cross_entropy(logits, labels)",
        Dense="jt.nn.Linear(units)",
        LayerNormalization="jt.nn.LayerNorm()",
        L1Loss="jt.nn.losses.mae(predictions, targets)",
        LazyLinear="jt.nn.Linear(units)",
        MSELoss="jt.nn.losses.mse(predictions, targets)",
        MaxPooling2D="jt.nn.MaxPool2d(2, channels_last=True)",
        Model="a class of jt.nn.Module with __call__, or jt.nn.Sequential(...)",
        ModuleDict="self.layers = {'a': jt.nn.Linear(3)}: dicts of modules are attributes",
        ModuleList="self.layers = [jt.nn.Linear(3), ...]: lists of modules are attributes",
        NLLLoss="jt.nn.losses.sparse_softmax_cross_entropy(logits, labels)",
        Parameter="self.w = np.zeros(3, np.float32): arrays of floats in attributes are trained",
        functional="jt.nn.relu, for functions are here; losses are in jt.nn.losses",
    )
