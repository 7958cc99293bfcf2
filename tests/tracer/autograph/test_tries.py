"""`try` around traced code: handlers run where the compiled function fails, or it is refused."""

import contextlib
import copy
import math
from typing import Any

import numpy as np
import pytest
from try_programs import PROGRAMS, REGULAR, SINGULAR, LinAlgError, X, power

import jitney as jt
from jitney.ir.interpreter import evaluate
from jitney.ir.passes.failures import failures, first_failure, tellable
from jitney.ir.text_parser import parse_graph

INDICES = [np.array([0, 1]), np.array([7, 0]), np.array([-2, -9])]


def outcome(f, a, i):
    a = copy.deepcopy(a)
    try:
        return "", f(a, i), a
    except (RuntimeError, ValueError, IndexError, LinAlgError) as error:
        return f"{type(error).__name__}: {error}".splitlines()[0], None, None


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_handlers_run(f):
    compiled = jt.jit(f)
    for a in (REGULAR, SINGULAR):
        for i in INDICES:
            error, result, left = outcome(compiled, a, i)
            error_of_python, wanted, left_by_python = outcome(f, a, i)
            assert (error[:12], error == "") == (error_of_python[:12], error_of_python == "")
            if not error:
                np.testing.assert_allclose(left, left_by_python)
                for one, other in zip(np.atleast_1d(result), np.atleast_1d(wanted), strict=True):
                    np.testing.assert_allclose(one, other, atol=1e-14)


def inside_of_a_statement(a, i):
    y = 0
    try:
        if a[0, 0] >= 0:
            y = 1
            np.linalg.cholesky(a)
    except LinAlgError:
        return y
    return y - 2


def counted(n):
    if n < 0:
        raise ValueError("negative")
    try:
        return counted(n - 1) + 1
    except ValueError:
        return 7


def around_its_own_call(a, i):
    return counted(i[1])


def of_any_class(a, i):
    try:
        return power(a[0, 0], i[1])
    except Exception:
        return -1.0


def says_what(a, i):
    try:
        v = a[i[0], 0]
    except IndexError as error:
        v = float(len(str(error)))
    return v


class Counter:
    def __init__(self):
        self.n = 0

    def read(self, a, i):
        self.n += 1
        return a[i[0], 0]


counter = Counter()


def changes(a, i):
    try:
        v = counter.read(a, i)
    except IndexError:
        v = 0.0
    return v


def in_a_branch(a, i):
    try:
        v = len(3) if a[0, 0] > 1 else 1.0
    except TypeError:
        v = 5.0
    return v


def suppressed(a, i):
    y = a
    with contextlib.suppress(LinAlgError):
        y = np.linalg.inv(a)
    return y


REFUSED = {
    suppressed: "contextlib.suppress has no second way",
    inside_of_a_statement: "gives y a value",
    around_its_own_call: "inside of its own call",
    of_any_class: "how deep it is called",
    says_what: "handler asks for it",
    changes: "changes arrays or objects",
    in_a_branch: "TypeError is raised in a branch",
}


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_what_cannot_be_run_again_is_refused(f):
    with pytest.raises(jt.errors.TransformError, match=REFUSED[f]):
        jt.jit(f)(REGULAR, INDICES[0])


def test_suppressed_while_tracing():
    def f(x):
        y = x
        with contextlib.suppress(KeyError):
            y = {"one": 1.0}["two"]
        return y * 2

    assert jt.jit(f)(3.0) == 6.0


def test_transformations():
    def f(a):
        try:
            y = np.linalg.inv(a)
        except LinAlgError:
            y = a * 3
        return y.sum()

    both = np.stack([REGULAR, SINGULAR])
    inverse = np.linalg.inv(REGULAR)
    np.testing.assert_allclose(jt.jit(jt.vmap(f))(both), [inverse.sum(), 0.0])
    gradients = [-np.outer(inverse.sum(axis=0), inverse.sum(axis=1)), np.full((2, 2), 3.0)]
    np.testing.assert_allclose(jt.jit(jt.vmap(jt.grad(f)))(both), gradients)


def test_first_failure():
    graph = parse_graph(
        """
        graph f(%x: f64[3], %i: i64[2], %j: i64[]) -> f64[] {
          %a = gather %x, %i axes=[0] mode="check" names=[0] : f64[2]
          %s = sum %a axes=[0] : f64[]
          %b = gather %x, %j axes=[0] mode="check" names=[0] : f64[]
          %r = add %s, %b : f64[]
          return %r
        }
        """
    )
    ops = [op for op, kind in failures(graph.ops)]
    assert ops == list(tellable(graph.ops))
    told = first_failure(graph, {op: k for k, op in enumerate(ops)})
    for i, j, number in [([0, -3], 2, -1), ([0, 3], 9, 0), ([-4, 0], 0, 0), ([1, 1], -4, 1)]:
        (which,) = evaluate(told, [X, np.array(i), np.array(j)])
        assert which == number


def test_a_tree_that_other_threads_disturb_is_parsed_again(monkeypatch):
    from jitney.tracer.autograph.syntax import origin

    failures = [SystemError("AST constructor recursion depth mismatch")] * 2
    parse = origin.ast.parse

    def disturbed(text):
        if failures:
            raise failures.pop()
        return parse(text)

    monkeypatch.setattr(origin.ast, "parse", disturbed)
    (definition,) = origin._definitions("def f(x):\n    return x + 17\n")[1]
    assert definition.name == "f"
    assert not failures


def test_what_only_finally_reads_is_kept():
    def f(a, told):
        t = float(a[0])
        try:
            t = math.log(t)
        except ValueError:
            t = 0.5
        finally:
            told[0] = t
        return 1

    for x in (2.0, -1.0):
        told, want = np.zeros(1), np.zeros(1)
        assert jt.jit(f)(np.array([x]), told) == f(np.array([x]), want)
        assert told == want


class Account:
    def __init__(self, balance):
        self.balance, self.count = balance, 0

    def take(self, x):
        if x > self.balance:
            raise ValueError("not enough")
        self.balance -= x
        self.count += 1

    def take_and_count(self, x):
        self.count += 1
        if x > self.balance:
            raise ValueError("not enough")
        self.balance -= x


def push(buffer, n, x):
    if n[0] >= len(buffer):
        raise IndexError("full")
    buffer[n[0]] = x
    n[0] += 1


def test_what_fails_before_anything_is_changed():
    def taken(xs):
        account, refused = Account(10.0), 0
        for x in xs:
            try:
                account.take(x)
            except ValueError:
                refused += 1
        return account.balance, account.count, refused

    def pushed(xs):
        buffer, n, lost = np.zeros(3), np.zeros(1, int), 0
        for x in xs:
            try:
                push(buffer, n, x)
            except IndexError:
                lost += 1
        return buffer, n, lost

    xs = np.array([3.0, 9.0, 4.0, 5.0, 2.0])
    for f in (taken, pushed):
        np.testing.assert_equal(jt.jit(f)(xs), f(xs))

    def counted(xs):
        account = Account(10.0)
        try:
            account.take_and_count(xs[0])
        except ValueError:
            account.balance = 0.0
        return account.balance, account.count

    with pytest.raises(jt.errors.TransformError, match="changes arrays or objects"):
        jt.jit(counted)(xs)


class Empty(Exception):
    """A user's exception, with arguments of its own."""

    def __init__(self, what: str, left: int) -> None:
        super().__init__(what, left)
        self.left = left


class Full(Empty):
    pass


class Items:
    def __init__(self) -> None:
        self.items: list[int] = []

    def push(self, x: int) -> None:
        if len(self.items) > 3:
            raise Full("full", 3)
        self.items.append(x)

    def pop(self) -> int:
        if not self.items:
            raise Empty("empty", 0)
        return self.items.pop()


def users_exceptions(xs: list[int]) -> Any:
    """What a `raise` of a user's class, reached or not, is caught by."""
    found, under, total, left = Items(), 0, 0, []
    for x in xs:
        try:
            if x < 5:
                found.push(x)
            else:
                total += found.pop()
        except Full as error:
            left.append(error.left)
        except Empty:
            under += 1
    return found.items, under, total, left


def with_values(xs: list[int]) -> int:
    count = 0
    for x in xs:
        try:
            if x == 7:
                raise Empty("seven", x)
            count += x
        except ValueError:
            count -= 100
        except Empty:
            count += 1000
    return count


def uncaught(xs: list[int]) -> int:
    count = 0
    for x in xs:
        try:
            if x == 9:
                raise Full("nine", 9)
            if x == 7:
                raise Empty("seven", 7)
            count += x
        except Full:
            count += 1
    return count


@pytest.mark.parametrize("function", [users_exceptions, with_values, uncaught])
def test_exceptions_of_users_are_caught(function: Any) -> None:
    compiled = jt.jit(function)
    for seed in (0, 1, 2):
        xs = np.random.RandomState(seed).randint(0, 10, 20 + seed).tolist()
        if seed == 2 and function is uncaught:
            xs = [1, 9, 2, 9]
        if function is uncaught and 7 in xs:
            with pytest.raises(Empty, match="seven"):
                compiled(xs)
        else:
            assert compiled(xs) == function(xs)
