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

__all__ = [
    "Module",
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hardshrink",
    "hardtanh",
    "identity",
    "initializers",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "modules",
    "relu",
    "relu6",
    "seed",
    "selu",
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
