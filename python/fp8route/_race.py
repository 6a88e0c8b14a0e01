"""One problem's operands, and a candidate's time on them.

Operands are made by the problem's own strides, random, in copies that together exceed the caches; a candidate is a plan of
the C library, so that a callable and a built-in backend are reached in the same way.
SPDX-License-Identifier: Apache-2.0
"""
import ctypes as c
import time

import torch

from . import _backends, _context, _pointers
from . import _library as L

_OPERANDS = ("a", "b", "out", "scale_a", "scale_b", "bias")
_ALIGN = 256
_BYTES_MOST = 6 << 30
_HALF_ULP = {L.BF16: 2.0 ** -8, L.FP16: 2.0 ** -11, L.FP32: 2.0 ** -24}


def _describe(problem):
    matmul = _context.matmul_of(problem)
    for name in _OPERANDS:
        getattr(matmul, name).data = None  # packed memory of our own is aligned to 256 bytes
    return matmul


def _plan(matmul, name, device):
    plan = c.c_void_p()
    L.check(L.plan_create(_context.context(device), c.byref(matmul), name.encode(), c.byref(plan)))
    return plan


def prepares(problem, name, device):
    """Does that configuration take the problem?"""
    try:
        L.plan_destroy(_plan(_describe(problem), name, device))
        return True
    except L.Error:
        return False


def _span(matrix):
    return ((matrix.batch - 1) * matrix.batch_stride + (matrix.rows - 1) * matrix.row_stride
            + (matrix.cols - 1) * matrix.col_stride + 1)


def _cache_bytes(device):
    facts = L.context_device(_context.context(device)).contents
    return (4 if facts.kind == L.CPU else 5) * facts.last_level_bytes


class Race:
    """A problem's candidates by number."""

    def __init__(self, problem, names, device, cold, is_graph, seed):
        self.matmul, self.device, self.is_graph = _describe(problem), torch.device(device), is_graph
        self.names = list(names)
        self.plans = [_plan(self.matmul, name, device) for name in names]
        self.workspaces = [self._memory(torch.uint8, max(1, L.plan_workspace(plan))) for plan in self.plans]
        generator = torch.Generator().manual_seed(seed)
        size = sum(_span(getattr(self.matmul, name)) * self._bytes(name) for name in _OPERANDS if self._is_there(name))
        wanted = _cache_bytes(device) if cold else 0
        copies = min(max(1, -(-wanted // size)), max(1, _BYTES_MOST // size), 4096)
        first = {name: self._random(name, generator) for name in _OPERANDS if self._is_there(name)}
        self.sets = [first] + [{name: self._memory(each.dtype, each.numel()).copy_(each) for name, each in first.items()}
                               for _ in range(copies - 1)]
        self.pointers = [self._pointers(operands) for operands in self.sets]
        self.turn, self.graphs, self.expected, self.copy_us = 0, {}, None, None
        self.source = first["a"].view(torch.uint8).clone() if is_graph else None
        self.stream = torch.cuda.Stream(self.device) if is_graph else None

    def __del__(self):
        for plan in getattr(self, "plans", ()):
            L.plan_destroy(plan)

    def _is_there(self, name):
        return getattr(self.matmul, name).dtype != L.NONE

    def _bytes(self, name):
        return _pointers._DTYPES[getattr(self.matmul, name).dtype].itemsize

    def _memory(self, dtype, count):
        """Aligned as the plans are."""
        size = count * dtype.itemsize
        space = torch.empty(size + _ALIGN, dtype=torch.uint8, device=self.device)
        return space[-space.data_ptr() % _ALIGN:][:size].view(dtype)

    def _random(self, name, generator):
        matrix = getattr(self.matmul, name)
        count, dtype = _span(matrix), _pointers._DTYPES[matrix.dtype]
        if name.startswith("scale"):
            values = torch.rand(count, generator=generator) * 0.9 + 0.1
        else:
            values = torch.randn(count, generator=generator)
        return self._memory(dtype, count).copy_(values.to(dtype))

    def _pointers(self, operands):
        given = L.Pointers(struct_size=c.sizeof(L.Pointers), m=self.matmul.a.rows)
        for name, tensor in operands.items():
            setattr(given, name, tensor.data_ptr())
        return given

    def _view(self, name):
        if not self._is_there(name):
            return None
        matrix = getattr(self.matmul, name)
        return self.sets[0][name].as_strided((matrix.batch, matrix.rows, matrix.cols),
                                             (matrix.batch_stride, matrix.row_stride, matrix.col_stride))

    def _run(self, number, pointers):
        space = self.workspaces[number]
        stream = torch.cuda.current_stream(self.device).cuda_stream if self.is_graph else None
        L.check(L.plan_run(self.plans[number], c.byref(pointers), space.data_ptr(), space.numel(), stream))

    def _expect(self):
        """The exact result, and the sum of magnitudes."""
        a, b = self._view("a"), self._view("b").double()
        if a.dtype in (torch.bfloat16, torch.float16):
            amax = a.float().abs().amax(2, keepdim=True)
            scale = (amax / torch.full_like(amax, 448)).clamp(min=2.0 ** -126)  # by a number, a GPU multiplies instead
            scale = torch.where(amax == 0, torch.ones_like(amax), scale)
            a = (a.float() * (1 / scale)).clamp(-448, 448).to(torch.float8_e4m3fn).double() * scale.double()
        a = a.double()
        exact, size = a @ b, a.abs() @ b.abs()
        for name in ("scale_b", "scale_a"):
            if self._is_there(name):
                exact, size = exact * self._view(name).double(), size * self._view(name).double()
        if self._is_there("bias"):
            exact, size = exact + self._view("bias").double(), size + self._view("bias").double().abs()
        return exact, size

    def verify(self, number):
        """"" where every element is right, else what is wrong."""
        if self.expected is None:
            self.expected = self._expect()
        exact, size = self.expected
        out = self._view("out")
        out.fill_(float("nan"))
        try:
            self._run(number, self.pointers[0])
        except L.Error as error:
            raised = _backends.raised(self.names[number].partition(":")[0])
            return f"it raised {raised}" if raised else str(error)
        if self.is_graph:
            torch.cuda.synchronize(self.device)
        bound = size * 2.0 ** -9 + exact.abs() * _HALF_ULP[self.matmul.out.dtype] + 1e-6
        bad = ~((out.double() - exact).abs() <= bound)
        return f"wrong in {int(bad.sum())} of {bad.numel()} elements" if bad.any() else ""

    def _next(self):
        self.turn = (self.turn + 1) % len(self.pointers)
        return self.pointers[self.turn]

    def time(self, number):
        """Microseconds of one run."""
        if self.is_graph:
            return self._time_graph(number)
        given = self._next()
        begin = time.perf_counter_ns()
        self._run(number, given)
        return (time.perf_counter_ns() - begin) / 1000

    def _calls(self):
        """Of a graph: through all sets, in two halves."""
        return max(16, len(self.pointers) + len(self.pointers) % 2)

    def _produce(self, operands):
        """Writes a as it is, by a kernel, which copy_ is not."""
        torch.bitwise_or(self.source, 0, out=operands["a"].view(torch.uint8))

    def _captured(self, number):
        """A graph of a candidate, half of its calls behind a kernel that writes a. None: of those kernels."""
        graph, calls = torch.cuda.CUDAGraph(), self._calls()
        # torch's own stream for captures belongs to the device that captured first, and records nothing of another's.
        with torch.cuda.graph(graph, stream=self.stream):
            for call in range(calls):
                pointers = self._next()
                if number is None or call >= calls // 2:
                    self._produce(self.sets[self.turn])
                if number is not None:
                    self._run(number, pointers)
        graph.replay()
        return graph

    def _replay(self, graph):
        """Microseconds of a call."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1000 / self._calls()

    def _time_graph(self, number):
        with torch.cuda.device(self.device):
            if self.copy_us is None:
                self._produce(self.sets[0])  # once outside of a capture, in which its code might not be loaded
                copies = self._captured(None)
                self.copy_us = sorted(self._replay(copies) for _ in range(7))[3]
            if number not in self.graphs:
                self.graphs[number] = self._captured(number)
            return max(self._replay(self.graphs[number]) - self.copy_us / 2, 0.001)


def release():
    """Gives the operands' memory back."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
