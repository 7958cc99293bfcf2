"""`jt.nn`: modules, layers, recurrent networks, losses.

A module is an ordinary object whose attributes are arrays, other modules and settings; compiled code
reads and changes them as it does those of every object. This room uses public names only.
"""

from .module import Module as Module
from .module import modules as modules
from .module import unbuilt as unbuilt

__all__ = [
    "Module",
    "modules",
    "unbuilt",
]
