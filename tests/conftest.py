"""Settings shared by all tests. Fixtures of one file belong into that file."""

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings

# What several tests use lies in `helpers`; tests of GPUs borrow the cases of others.
_tests = Path(__file__).resolve().parent
sys.path.insert(0, str(_tests / "helpers"))
sys.path += sorted({str(test.parent) for test in _tests.rglob("test_*.py")})
from older_numpy import otherwise  # noqa: E402
from samples import chosen, code_changed, sampled, thinned  # noqa: E402

# Examples compile code, so a single one may be slow; a failing one prints how to run it again. On CI
# the examples are the same each time, so that a red run is the change's fault; elsewhere they are new.
settings.register_profile(
    "jitney",
    deadline=None,
    print_blob=True,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(  # for who asks only whether a test fails
    "unshrunk", settings.get_profile("jitney"), phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("jitney")

# Where Python is told to write no bytecode, as images of containers do, each process that a test starts
# would compile the package anew, which takes longer than most of them run; and pytest all tests.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(_tests.parent / ".pytest_cache" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

# Before jitney is imported: the tests neither read nor fill the user's cache of compiled code. The
# workers of pytest-xdist inherit the folder from their parent, so they share what they compile.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _folder = tempfile.TemporaryDirectory(prefix="jitney-tests-")  # removed when pytest ends
    os.environ["JITNEY_CACHE_DIR"] = _folder.name
# A shell that runs pytest in the background has it ignore Ctrl-C, which tests of long loops send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["JITNEY_VERIFY"] = "1"  # in processes that tests start


_LLVM_IS_OLD = tuple(map(int, version("llvmlite").split(".")[:2])) < (0, 48)


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "tests of GPUs: all, a sample, or by default all if their code has changed since main"
    parser.addoption("--gpu", choices=("all", "sample", "auto"), default="auto", help=text)
    text = (
        "code in tests: of most tests made quickly, of a fifth of all tests checked "
        "after each pass (default); or as for users, and all checked"
    )
    parser.addoption("--code", choices=("quick", "full"), default="quick", help=text)
    text = "combinations of parameters: each value of each and a fifth of them (default), or all"
    parser.addoption("--cases", choices=("each", "all"), default="each", help=text)


def pytest_configure(config: pytest.Config) -> None:
    if config.option.gpu == "auto":  # workers are told what came out
        named = any("gpu" in Path(argument.partition("::")[0]).parts for argument in config.args)
        config.option.gpu = "all" if named or code_changed(_tests.parent) else "sample"


def pytest_report_header(config: pytest.Config) -> str:
    return f"tests of GPUs: {config.option.gpu} (--gpu)"


def pytest_collection_finish(session: pytest.Session) -> None:
    """What belongs to pytest stays: no collection of garbage has to look at it again. And there are
    fewer of those: tracing makes many objects that live, and took a third longer."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 50, 50)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.cases == "each":
        items[:], left_out = thinned(items)
        config.hook.pytest_deselected(items=left_out)
    if config.option.gpu == "sample":
        items[:], left_out = sampled(items)
        config.hook.pytest_deselected(items=left_out)
    for item in items:
        if why := otherwise(item.nodeid):
            item.add_marker(pytest.mark.xfail(reason=why, strict=True))
    if _LLVM_IS_OLD:
        for item in items:
            if "gpu" in item.path.relative_to(_tests).parts:
                item.add_marker(pytest.mark.skip(reason="programs for GPUs need LLVM 22"))


_QUICK = ("tracer", "runtime", "solve", "nn", "optim", "train", "data")
_QUICK += ("test_benchmarks.py", "test_complex.py", "test_complex_ops.py", "test_documents.py")
# What is tested there is which machine code is made.
_FULL = ("codegen", "explain", "stages", "profiling", "kernels")
# Of parametrised tests there the first case and a fifth of the others have it as users have it.
_PARTLY = ("codegen",)


def _is_quick(request: pytest.FixtureRequest) -> bool:
    """Whether a test asks nothing of the care with which machine code is made."""
    rooms = request.path.relative_to(_tests).parts
    if rooms[0] in _PARTLY:
        indices = request.node.callspec.indices if hasattr(request.node, "callspec") else {}
        return any(indices.values()) and not chosen(f"full {request.node.nodeid}")
    return bool({rooms[0], rooms[-1]} & set(_QUICK)) and not set(rooms) & set(_FULL)


@pytest.fixture(autouse=True)
def _code_is_made_quickly(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests of the tracer ask which program is made, and what it gives: LLVM, which takes a third of
    their time, makes machine code of it with little care. That it does so with care is what the tests of
    the code generator, of whole programs and of random ones are for."""
    from jitney import config

    rooms = request.path.relative_to(_tests).parts
    wanted = request.config.option.code == "quick"
    quick = wanted and _is_quick(request)
    # Graphs and steps are checked after each pass: a sixth of the time.
    always = rooms[0] == "ir" or rooms[-1] == "test_verify_steps.py"
    verify = not wanted or always or chosen(request.node.nodeid)
    with config(quick=quick, verify=verify):
        yield


@pytest.fixture(autouse=True, scope="module")
def _collections_are_short(request: pytest.FixtureRequest) -> None:
    """Where tests collect garbage, only theirs is looked at: all that others left takes a second. What
    these left as garbage goes first, or threads and files that it holds would stay for ever."""
    if "gc" in vars(request.module):
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def _settings_stay(_code_is_made_quickly: None) -> Iterator[None]:
    """A test that leaves a setting behind fails itself, not the one that runs after it."""
    from jitney import config

    before = dict(config._set)
    yield
    left = {name: value for name, value in config._set.items() if before.get(name) != value}
    for name in left:
        setattr(config, name, before.get(name))
    assert not left, f"the test left settings changed: {left}"


_first_states: dict[int, Any] = {}


@pytest.fixture(autouse=True)
def _numbers_stay(request: pytest.FixtureRequest) -> None:
    """A module's generator starts anew for each test: which tests ran before decides no numbers."""
    for value in vars(request.module).values():
        if isinstance(value, np.random.Generator):
            state = value.bit_generator.state
            value.bit_generator.state = _first_states.setdefault(id(value), state)


@pytest.fixture
def all_cases(request: pytest.FixtureRequest) -> bool:
    """Whether a test that goes through combinations itself runs all, or a fifth (`samples.chosen`)."""
    return bool(request.config.option.cases == "all")


@pytest.fixture(params=("native", "python"))
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with native calls, and with the path that interpreters without them take."""
    if request.param == "python":
        monkeypatch.setenv("JITNEY_NATIVE_CALLS", "0")
    return str(request.param)


@pytest.fixture
def traced_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers among the arguments stay traced, also where tracing asks for them."""
    from jitney.tracer.jit.numbers import CompiledNumbers

    monkeypatch.setattr(CompiledNumbers, "settle", lambda self, analyse, work: work(analyse()))


@pytest.fixture
def gpu() -> Iterator[None]:
    """A GPU for this test: the emulated one, or with JITNEY_TEST_CUDA=on the machine's own."""
    from jitney import config

    real = os.environ.get("JITNEY_TEST_CUDA") == "on"
    with config(cuda=config.cuda if real else "emulate"):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Where LLVM is too old for programs of GPUs, tests that come to one have nothing to say."""
    try:
        yield
    except Exception as error:
        if "programs for GPUs need llvmlite" in str(error) and _LLVM_IS_OLD:
            pytest.skip(str(error))
        raise


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Sets the number of threads, for this test only."""
    from jitney.runtime.threads.pool import get_threads, set_threads

    before = get_threads()
    yield set_threads
    set_threads(before)
