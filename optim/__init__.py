"""`jt.optim`: optimisers and schedules, as functions over trees (Optax's way) and in place (PyTorch's).

This room uses public names only.
"""

import typing

import jitney as jt

from .classes import SGD as SGD
from .classes import Adadelta as Adadelta
from .classes import Adagrad as Adagrad
from .classes import Adam as Adam
from .classes import AdamW as AdamW
from .classes import Lion as Lion
from .classes import RMSprop as RMSprop
from .inplace import Optimizer as Optimizer
from .lbfgs import LBFGS as LBFGS
from .lbfgs import lbfgs as lbfgs
from .lbfgs import scale_by_lbfgs as scale_by_lbfgs
from .optimizers import adadelta as adadelta
from .optimizers import adagrad as adagrad
from .optimizers import adam as adam
from .optimizers import adamw as adamw
from .optimizers import amsgrad as amsgrad
from .optimizers import lion as lion
from .optimizers import rmsprop as rmsprop
from .optimizers import sgd as sgd
from .rules import scale_by_adadelta as scale_by_adadelta
from .rules import scale_by_adam as scale_by_adam
from .rules import scale_by_amsgrad as scale_by_amsgrad
from .rules import scale_by_lion as scale_by_lion
from .rules import scale_by_rms as scale_by_rms
from .rules import scale_by_rss as scale_by_rss
from .rules import trace as trace
from .scaling import add_decayed_weights as add_decayed_weights
from .scaling import clip as clip
from .scaling import clip_by_global_norm as clip_by_global_norm
from .scaling import clip_by_norm as clip_by_norm
from .scaling import clip_weights as clip_weights
from .scaling import global_norm as global_norm
from .scaling import scale as scale
from .scaling import scale_by_learning_rate as scale_by_learning_rate
from .scaling import scale_by_schedule as scale_by_schedule
from .schedules import constant_schedule as constant_schedule
from .schedules import cosine_decay_schedule as cosine_decay_schedule
from .schedules import cosine_onecycle_schedule as cosine_onecycle_schedule
from .schedules import exponential_decay as exponential_decay
from .schedules import inverse_time_decay as inverse_time_decay
from .schedules import join_schedules as join_schedules
from .schedules import linear_schedule as linear_schedule
from .schedules import one_cycle as one_cycle
from .schedules import piecewise_constant_schedule as piecewise_constant_schedule
from .schedules import polynomial_schedule as polynomial_schedule
from .schedules import warmup_cosine_decay_schedule as warmup_cosine_decay_schedule
from .transform import Transform as Transform
from .transform import apply_updates as apply_updates
from .transform import by_leaf as by_leaf
from .transform import chain as chain
from .transform import identity as identity
from .wrappers import accumulate as accumulate
from .wrappers import all_finite as all_finite
from .wrappers import apply_if_finite as apply_if_finite
from .wrappers import by_group as by_group
from .wrappers import masked as masked
from .wrappers import scale_loss as scale_loss
from .wrappers import with_masters as with_masters

if not typing.TYPE_CHECKING:
    __getattr__ = jt.errors.elsewhere.of_modules(
        __name__,
        CosineAnnealingLR="jt.optim.cosine_decay_schedule(rate, steps) where the rate is given",
        GradientTransformation="jt.optim.Transform",
        MultiSteps="jt.optim.accumulate(rule, every)",
        lr_scheduler="jt.optim.Adam(model, schedule): a schedule of jt.optim is a rate",
        multi_transform="jt.optim.by_group(default, (mask, rule))",
    )
