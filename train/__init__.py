"""`jt.train`: checkpoints, metrics, and a loop over data with hooks.

This room uses public names only.
"""

import typing

import jitney as jt

from . import metrics as metrics
from .checkpoint_file import CheckpointError as CheckpointError
from .checkpoints import describe as describe
from .checkpoints import latest as latest
from .checkpoints import save as save
from .checkpoints import steps as steps
from .checkpoints import wait as wait
from .experiment import Experiment as Experiment
from .experiment import main as main
from .filling import Report as Report
from .hooks import EarlyStop as EarlyStop
from .hooks import Hook as Hook
from .hooks import LearningRate as LearningRate
from .hooks import Log as Log
from .hooks import Profile as Profile
from .hooks import Progress as Progress
from .hooks import ReduceRate as ReduceRate
from .hooks import SaveCheckpoints as SaveCheckpoints
from .hooks import StopAtNaN as StopAtNaN
from .hooks import Summaries as Summaries
from .hooks import Validate as Validate
from .places import arrays as arrays
from .restoring import restore as restore
from .restoring import restore_partial as restore_partial
from .settings import load_settings as load_settings
from .settings import parse_settings as parse_settings
from .trainer import Trainer as Trainer

if not typing.TYPE_CHECKING:
    __getattr__ = jt.errors.elsewhere.of_modules(
        __name__,
        Checkpoint="jt.train.save(folder, tree), and jt.train.restore(folder, into=tree)",
        EarlyStopping="jt.train.EarlyStop(patience=3)",
        Estimator="jt.train.Trainer(model, rule, loss, path=folder)",
        ModelCheckpoint="jt.train.SaveCheckpoints(steps=100)",
        ReduceLROnPlateau="jt.train.ReduceRate()",
        Saver="jt.train.save(folder, tree), and jt.train.restore(folder, into=tree)",
        TensorBoard="jt.train.Summaries(folder)",
        latest_checkpoint="jt.train.latest(folder)",
    )
