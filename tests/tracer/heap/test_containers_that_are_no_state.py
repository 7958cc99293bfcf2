"""Traced values in containers of outside that are no state: errors name them, nothing is left."""

from __future__ import annotations

from collections import ChainMap, UserDict, UserList
from queue import Queue
from typing import Any

import numpy as np
import pytest

import jitney as jt

X = np.array([1.0, 2.0, -3.0])


class Registry:
    cache: dict[str, Any] = {}  # noqa: RUF012
    log: list[Any] = []  # noqa: RUF012


class Numbers(list):
    pass


class Names(dict):
    pass


NUMBERS, NAMES, QUEUE, CHAIN = Numbers(), Names(), Queue(), ChainMap({}, {})
USER_DICT, USER_LIST = UserDict(), UserList()


def of_a_class(x):
    Registry.cache["k"] = x.sum()


def log_of_a_class(x):
    Registry.log.append(x.sum())


def of_a_list(x):
    NUMBERS.append(x.sum())


def of_a_dict(x):
    NAMES["k"] = (x.sum(), 1)


def of_a_queue(x):
    QUEUE.put(x.sum())


def of_a_chain(x):
    CHAIN["k"] = x.sum()


def of_a_users_dict(x):
    USER_DICT["k"] = x.sum()


def of_a_users_list(x):
    USER_LIST.append(x.sum())


CASES = {
    of_a_class: "Registry.cache, a dict",
    log_of_a_class: "Registry.log, a list",
    of_a_list: "NUMBERS, a Numbers",
    of_a_dict: "NAMES, a Names",
    of_a_queue: "QUEUE, a Queue",
    of_a_chain: "CHAIN, a ChainMap",
    of_a_users_dict: "USER_DICT, a UserDict",
    of_a_users_list: "USER_LIST, a UserList",
}


@pytest.mark.parametrize("f", CASES)
def test_they_are_named(f: Any) -> None:
    first = f.__code__.co_firstlineno
    with pytest.raises(jt.errors.OuterMutationError, match=CASES[f]) as caught:
        jt.jit(f)(X)
    assert f"test_containers_that_are_no_state.py:{first + 1}" in str(caught.value)
    holders = (Registry.cache, Registry.log, NUMBERS, NAMES, CHAIN, USER_DICT, USER_LIST)
    assert not any(holders)
    assert QUEUE.empty()


def test_known_values_may_go_there() -> None:
    def f(x):
        NAMES["shape"] = x.shape
        return x * 2

    np.testing.assert_array_equal(jt.jit(f)(X), X * 2)
    assert NAMES.pop("shape") == (3,)
