"""What a user can do wrong, one class per kind: `except jt.errors.ShapeError`.

Libraries raise them by `complain`, with the user's line and a remedy, as the compiler does, and name
other lines as it does: `str(SourceLine(file, line))`, or `shown_file(file)` where folders are too long.
"""

from .ir.graph import SourceLine as SourceLine
from .tracer.messages import elsewhere as elsewhere
from .tracer.messages.errors import ArgumentError as ArgumentError
from .tracer.messages.errors import ArrayTruthError as ArrayTruthError
from .tracer.messages.errors import AxisBoundsError as AxisBoundsError
from .tracer.messages.errors import BoundsError as BoundsError
from .tracer.messages.errors import CarryError as CarryError
from .tracer.messages.errors import CaseError as CaseError
from .tracer.messages.errors import CastingError as CastingError
from .tracer.messages.errors import ConflictError as ConflictError
from .tracer.messages.errors import DTypeError as DTypeError
from .tracer.messages.errors import DynamicShapeError as DynamicShapeError
from .tracer.messages.errors import EndlessRecursionError as EndlessRecursionError
from .tracer.messages.errors import ExportError as ExportError
from .tracer.messages.errors import FailedAssertion as FailedAssertion
from .tracer.messages.errors import FallbackWarning as FallbackWarning
from .tracer.messages.errors import ImpureFunctionError as ImpureFunctionError
from .tracer.messages.errors import InPlaceError as InPlaceError
from .tracer.messages.errors import IntegerOverflowError as IntegerOverflowError
from .tracer.messages.errors import JitneyError as JitneyError
from .tracer.messages.errors import LeakedTracerError as LeakedTracerError
from .tracer.messages.errors import LinearAlgebraError as LinearAlgebraError
from .tracer.messages.errors import NonFiniteError as NonFiniteError
from .tracer.messages.errors import OuterMutationError as OuterMutationError
from .tracer.messages.errors import ReadOnlyError as ReadOnlyError
from .tracer.messages.errors import RecompileWarning as RecompileWarning
from .tracer.messages.errors import Refusal as Refusal
from .tracer.messages.errors import SettingError as SettingError
from .tracer.messages.errors import ShapeError as ShapeError
from .tracer.messages.errors import StaticArgumentError as StaticArgumentError
from .tracer.messages.errors import TensorArrayError as TensorArrayError
from .tracer.messages.errors import TracerAttributeError as TracerAttributeError
from .tracer.messages.errors import TracerBoolError as TracerBoolError
from .tracer.messages.errors import TracerConversionError as TracerConversionError
from .tracer.messages.errors import TracerIndexError as TracerIndexError
from .tracer.messages.errors import TracerIterationError as TracerIterationError
from .tracer.messages.errors import TransformError as TransformError
from .tracer.messages.errors import UnboundAxisError as UnboundAxisError
from .tracer.messages.errors import UnboundedLengthError as UnboundedLengthError
from .tracer.messages.errors import UndefinedVariableError as UndefinedVariableError
from .tracer.messages.errors import UnsupportedFunctionError as UnsupportedFunctionError
from .tracer.messages.errors import complain as complain
from .tracer.messages.errors import describe as describe
from .tracer.messages.errors import naming_lines as naming_lines
from .tracer.messages.errors import note_line as note_line
from .tracer.messages.source import shown_file as shown_file
from .tracer.messages.source import user_line as user_line
