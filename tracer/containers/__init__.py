"""Lists, dicts, sets, deques and heaps that grow while compiled code runs: what stands in for them.

Which containers have to be native shows while a function is traced: it is traced again then, and these
are native from where they are made on (`kinds`). A stand-in has the methods of the container that it
stands for, as effects on a native object (`ir.ops.control.stores`), and is a Python object again when
the function returns it (`leaving`). docs/decisions/0012-containers-are-native-objects.md.
"""

from . import boxes, deques, dicts, packed, sequences, sets  # noqa: F401  (they enter themselves into `kinds.CLASSES`)
