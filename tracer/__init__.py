"""Python -> Graph: tracers, jit, the transformations as users call them, and the array functions.

From the lowest room to the highest; imports run down only, and a test holds this:

    messages        what went wrong, at which line of the user's
    data            what functions take and give: pytrees, dtypes, memory order
    records         structured arrays, as groups of their fields
    core            Tracer, Trace, views: what stands for arrays meanwhile
    devices         where programs run
    arrays          the table of array functions, and those that others are written with
    control         branches, loops, scans, callbacks
    containers      lists, dicts, sets, deques, heaps that grow while compiled code runs
    transforms      derivatives, batching
    indexing        x[index], x[index] = value
    functions       the other array functions;  linear_algebra, images: of these fields
    captures        what a function reads from outside: found, guarded, hashed
    host_random     NumPy's and Python's generators of random numbers
    autograph       Python's own control flow
    jit             the jitted function: its calls, specialisations, memory on disk
    interop         operators of arrays on a GPU, the array API
    kernels         functions of few elements as functions of arrays
    ops, sparse     functions of arrays that NumPy has no name for;  sparse matrices
    special, random SciPy's special functions;  random numbers
    typed           stubs: of the namespaces that the table of array functions makes

Nothing here generates code: graphs are handed to `runtime`. What gives tracers their operators is
imported when the first of them is made, and registered here, as no room below may know it.
"""

from ..ir.surface import ensure as ensure
from ..ir.surface import provides


@provides("trace")
def _arrays() -> None:
    from . import autograph, functions, host_random, images, linear_algebra  # noqa: F401
    from .autograph import runtime  # noqa: F401
    from .autograph.recursion import recursive  # noqa: F401
    from .core import asked, computations, conversions, tracing, views  # noqa: F401
    from .jit import traces  # noqa: F401

    tracing.serve_twins(autograph.convert)


@provides("special")
def _special() -> None:
    from . import special  # noqa: F401


@provides("ops")
def _ops() -> None:
    from . import ops  # noqa: F401


@provides("sparse")
def _sparse() -> None:
    from .sparse import matrices

    matrices.take_scipys()


@provides("graph function")
def _graph_functions() -> None:
    from .interop import graph_functions  # noqa: F401


@provides("device array")
def _devices() -> None:
    from .interop import device_functions  # noqa: F401
