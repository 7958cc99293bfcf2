"""`jt.solve`: roots, minima, linear systems and differential equations, to be differentiated through.

Names, arguments and results are SciPy's. Solvers run as one native function; solutions are
differentiated as what solves their equation (`jt.implicit`), not through the iterations. What is called
with plain arrays is compiled at the first call with these functions and shapes. `docs/guides/solve.md`
is the guide. This room uses public names only.
"""

import typing

import jitney as jt

from . import stats as stats
from .common import dense_solve as dense_solve
from .descent import InverseHessian as InverseHessian
from .descent import wolfe_search as wolfe_search
from .fitting import curve_fit as curve_fit
from .fitting import least_squares as least_squares
from .implicit import custom_linear_solve as custom_linear_solve
from .implicit import custom_root as custom_root
from .linear import bicgstab as bicgstab
from .linear import cg as cg
from .linear import gmres as gmres
from .minimizing import minimize as minimize
from .ode import OdeSolution as OdeSolution
from .ode import solve_ivp as solve_ivp
from .quadrature import quad as quad
from .results import OptimizeResult as OptimizeResult
from .roots import fsolve as fsolve
from .roots import root as root
from .scalars import bisect as bisect
from .scalars import brentq as brentq
from .scalars import newton as newton
from .scalars import root_scalar as root_scalar

if not typing.TYPE_CHECKING:
    __getattr__ = jt.errors.elsewhere.of_modules(
        __name__,
        diffeqsolve="jt.solve.solve_ivp(f, (start, end), y)",
        odeint="jt.solve.solve_ivp(f, (start, end), y, t_eval=times); f is of (t, y)",
        root_find="jt.solve.root(f, x)",
        trapezoid="jt.trapezoid(y, x)",
    )
