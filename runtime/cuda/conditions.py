"""Loops and branches inside of CUDA graphs: the device itself decides how they go on.

    recorded = RecordedWalk(executable, stream, work)
    recorded.walk(plan)                            # while the stream is captured

A conditional node of a graph has a body, a graph of its own, and a condition, a number that a kernel
sets. A loop is its test, a kernel that sets the condition from the flag, and a node that runs the body,
the test and that kernel again while the condition holds. Nobody waits for the host.

Addresses in a graph are fixed, so what a loop carries is copied back after each iteration rather
than traded.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...codegen.cuda.program import Carry, KernelShape
from .driver import Context
from .modules import Module
from .plan import Branches, LoopPlan
from .walk import FAILURE_WORD, Walk

_FUNCTIONS = (
    "cuGraphConditionalHandleCreate",
    "cuGraphAddNode_v2",
    "cuStreamBeginCaptureToGraph",
    "cuStreamGetCaptureInfo_v3",
    "cuStreamUpdateCaptureDependencies_v2",
)
_LEAST_DRIVER = 12040
_RELAXED = 2  # CUstreamCaptureMode
_ASSIGN_DEFAULT = 1  # CU_GRAPH_COND_ASSIGN_DEFAULT
_SET_DEPENDENCIES = 1  # CU_STREAM_SET_CAPTURE_DEPENDENCIES
_CONDITIONAL = 13  # CU_GRAPH_NODE_TYPE_CONDITIONAL
IF, WHILE = 0, 1  # CUgraphConditionalNodeType

# Kernels that set a condition. The function that they call is the driver's own.
SETTERS = """\
.version 6.3
.target sm_75
.address_size 64
.extern .func cudaGraphSetConditional
(
    .param .b64 cudaGraphSetConditional_param_0,
    .param .b32 cudaGraphSetConditional_param_1
)
;
// condition = *flag != 0 and (failure == 0 or *failure == 0)
.visible .entry jitney_set_while(.param .u64 handle, .param .u64 flag, .param .u64 failure)
{
    .reg .pred %p, %q;
    .reg .b32 %r, %value;
    .reg .b64 %handle, %flag, %failure, %word;
    ld.param.u64 %handle, [handle];
    ld.param.u64 %flag, [flag];
    ld.param.u64 %failure, [failure];
    cvta.to.global.u64 %flag, %flag;
    ld.global.u8 %r, [%flag];
    setp.ne.u32 %p, %r, 0;
    setp.eq.u64 %q, %failure, 0;
    @%q bra set;
    cvta.to.global.u64 %failure, %failure;
    ld.global.u64 %word, [%failure];
    setp.eq.and.u64 %p, %word, 0, %p;
set:
    selp.u32 %value, 1, 0, %p;
    {
    .param .b64 param0;
    st.param.b64 [param0], %handle;
    .param .b32 param1;
    st.param.b32 [param1], %value;
    call.uni cudaGraphSetConditional, (param0, param1);
    }
    ret;
}
// condition = min(max(*index, 0), last) == way
.visible .entry jitney_set_branch(
    .param .u64 handle, .param .u64 index, .param .u32 last, .param .u32 way)
{
    .reg .pred %p;
    .reg .b32 %i, %last, %way, %value;
    .reg .b64 %handle, %index;
    ld.param.u64 %handle, [handle];
    ld.param.u64 %index, [index];
    ld.param.u32 %last, [last];
    ld.param.u32 %way, [way];
    cvta.to.global.u64 %index, %index;
    ld.global.u32 %i, [%index];
    max.s32 %i, %i, 0;
    min.s32 %i, %i, %last;
    setp.eq.u32 %p, %i, %way;
    selp.u32 %value, 1, 0, %p;
    {
    .param .b64 param0;
    st.param.b64 [param0], %handle;
    .param .b32 param1;
    st.param.b32 [param1], %value;
    call.uni cudaGraphSetConditional, (param0, param1);
    }
    ret;
}
"""
_ENTRIES = {"jitney_set_while": KernelShape((1, 1, 1)), "jitney_set_branch": KernelShape((1, 1, 1))}
_ONE = (1, 1, 1)


class NodeParameters(ctypes.Structure):
    """CUgraphNodeParams of a conditional node."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("reserved0", ctypes.c_int * 3),
        ("handle", ctypes.c_uint64),
        ("kind", ctypes.c_int),
        ("size", ctypes.c_uint),
        ("bodies", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("padding", ctypes.c_int64 * 25),
        ("reserved2", ctypes.c_int64),
    )


def are_supported(context: Context) -> bool:
    """Whether the driver knows conditional nodes."""
    return context.info.driver >= _LEAST_DRIVER and context.cuda.has(*_FUNCTIONS)


_modules: weakref.WeakKeyDictionary[Context, Module] = weakref.WeakKeyDictionary()


def _setters(context: Context) -> Module:
    module = _modules.get(context)
    if module is None:
        module = _modules[context] = context.load_image(SETTERS.encode(), _ENTRIES)
    return module


class RecordedWalk(Walk):
    """A walk that is captured; what it would decide becomes conditional nodes."""

    def _loop(self, loop: LoopPlan) -> None:
        status = self._status_location()
        failure = self.address(status[0]) + 8 * FAILURE_WORD if status else 0
        self._begin(loop.carries)
        condition = self._condition()
        arguments = struct.pack("<QQQ", condition, self.address(loop.flag), failure)
        self.walk(loop.test)
        self._set_condition("jitney_set_while", arguments)
        with self._body(condition, WHILE):
            self.walk(loop.body)
            self._copy_back(loop.carries)
            self.walk(loop.test)
            self._set_condition("jitney_set_while", arguments)

    def _copy_back(self, carries: Sequence[Carry]) -> None:
        for carry in carries:
            now, following = (self.bases[self._slots + k] for k in (carry.now, carry.next))
            self.context.copy(now, following, carry.nbytes, self.stream)

    def _branches(self, branches: Branches) -> None:
        index, last = self.address(branches.index), len(branches.ways) - 1
        conditions = [self._condition() for _ in branches.ways]
        for way, condition in enumerate(conditions):  # before a branch can overwrite the index
            self._set_condition(
                "jitney_set_branch", struct.pack("<QQii", condition, index, last, way)
            )
        for condition, plan in zip(conditions, branches.ways, strict=True):
            with self._body(condition, IF):
                self.walk(plan)

    def _set_condition(self, setter: str, arguments: bytes) -> None:
        function = _setters(self.context).function(setter)
        self.context.launch(function, _ONE, _ONE, 0, self.stream, arguments)

    def _captured(self) -> tuple[int, int, int]:
        """The graph that the stream is captured into, and what comes next in it depends on: a pointer
        to nodes and their number."""
        status, number = ctypes.c_int(), ctypes.c_uint64()
        graph, nodes, edges = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        count = ctypes.c_size_t()
        out = [ctypes.byref(v) for v in (status, number, graph, nodes, edges, count)]
        self.context.cuda.cuStreamGetCaptureInfo_v3(self.stream, *out)
        return graph.value or 0, nodes.value or 0, count.value

    def _condition(self) -> int:
        graph, _, _ = self._captured()
        handle = ctypes.c_uint64()
        self.context.cuda.cuGraphConditionalHandleCreate(
            ctypes.byref(handle), graph, self.context.handle, 0, _ASSIGN_DEFAULT
        )
        return handle.value

    @contextmanager
    def _body(self, condition: int, kind: int) -> Iterator[None]:
        """What is captured inside is the body of a conditional node."""
        cuda, outer = self.context.cuda, self.stream
        graph, nodes, count = self._captured()
        parameters = NodeParameters(type=_CONDITIONAL, handle=condition, kind=kind, size=1)
        parameters.context = self.context.handle
        node = ctypes.c_void_p()
        added: Any = ctypes.byref(node)
        cuda.cuGraphAddNode_v2(added, graph, nodes, None, count, ctypes.byref(parameters))
        cuda.cuStreamUpdateCaptureDependencies_v2(outer, added, None, 1, _SET_DEPENDENCIES)
        body = ctypes.c_void_p.from_address(parameters.bodies).value
        inner = self.context.create_stream()
        try:
            cuda.cuStreamBeginCaptureToGraph(inner, body, None, None, 0, _RELAXED)
            self.stream = inner
            try:
                yield
            finally:
                self.stream = outer
                ended = ctypes.c_void_p()
                code = cuda.functions["cuStreamEndCapture"](inner, ctypes.byref(ended))
            if code:
                raise cuda.error("cuStreamEndCapture", code)
        finally:
            self.context.destroy_stream(inner)
