"""Networks over sequences: cells, the loop over them, layers of them, attention, decoders.

A cell is one step: `y, state = cell(x, state)`. `rnn` runs it over a sequence with rows of different
lengths; everything else here is a cell, is made of `rnn`, or decodes what a step predicts.
"""

from .attention import AttentionCell as AttentionCell
from .attention import BahdanauAttention as BahdanauAttention
from .attention import LuongAttention as LuongAttention
from .cells import GRUCell as GRUCell
from .cells import RNNCell as RNNCell
from .cells import RNNCore as RNNCore
from .decoding import beam_search as beam_search
from .decoding import generate as generate
from .decoding import greedy as greedy
from .decoding import repeat_rows as repeat_rows
from .decoding import sample as sample
from .layers import GRU as GRU
from .layers import LSTM as LSTM
from .layers import RNN as RNN
from .lengths import last_relevant as last_relevant
from .lengths import length_of as length_of
from .lengths import masked_mean as masked_mean
from .lengths import sequence_mask as sequence_mask
from .loops import bidirectional as bidirectional
from .loops import rnn as rnn
from .lstm import LSTMCell as LSTMCell
from .wrappers import DropoutWrapper as DropoutWrapper
from .wrappers import MultiRNN as MultiRNN
from .wrappers import ResidualWrapper as ResidualWrapper
