"""Python callables as backends: the C plug-in contract, filled with callbacks.

A registered callable is a candidate like any other: explain names it, tune races it, a route may send products to it. torch
is imported when one first runs.
SPDX-License-Identifier: Apache-2.0
"""
import ctypes as c
import dataclasses
import re
import sys
import threading
import traceback

from . import _context
from . import _library as L

_ABI = 1
_NESTED_MOST = 4  # runs of a callable inside its own
_OTHER = 25  # FP8R_REASON_OTHER: a reason in the backend's own words
DTYPE_NAMES = ("none", "e4m3", "e5m2", "bf16", "fp16", "fp32")
SCALE_NAMES = ("none", "tensor", "batch", "row")
LAYOUT_NAMES = ("inner", "inner_padded", "outer", "outer_padded", "strided")


class _Reason(c.Structure):
    _fields_ = [("code", c.c_int32), ("reserved", c.c_int32), ("subject", c.c_char_p), ("have", c.c_int64), ("need", c.c_int64)]


class _Capability(c.Structure):
    _fields_ = [("kind", c.c_int32), ("arch_min", c.c_int32), ("arch_max", c.c_int32), ("driver_min", c.c_int32),
                ("cpu_features", c.c_uint32), ("reserved", c.c_uint32)]


class _Operand(c.Structure):
    _fields_ = [("batch_stride", c.c_int64), ("row_stride", c.c_int64), ("col_stride", c.c_int64), ("dtype", c.c_int32),
                ("align_bytes", c.c_int32)]


class _Problem(c.Structure):
    _fields_ = [(name, c.c_int64) for name in ("batch", "m", "n", "k")]
    _fields_ += [(name, _Operand) for name in ("a", "b", "out", "scale_a", "scale_b", "bias")]
    _fields_ += [(name, c.c_int32) for name in ("scale_a_kind", "scale_b_kind", "layout_a", "layout_b", "layout_out",
                                                "accumulation", "numerics")]
    _fields_ += [("flags", c.c_uint32)]


_P = c.POINTER
_SUPPORTS = c.CFUNCTYPE(c.c_bool, c.c_void_p, _P(L.Facts), _P(_Problem), c.c_int, _P(_Reason))
_PICK = c.CFUNCTYPE(c.c_int, c.c_void_p, _P(L.Facts), _P(_Problem))
_PREPARE = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, _P(L.Facts), _P(_Problem), c.c_int, _P(c.c_void_p))
_DESTROY = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)
_RUN = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_void_p, _P(_Problem), c.c_int, _P(L.Pointers), c.c_void_p, c.c_size_t,
                   c.c_void_p)


class _Backend(c.Structure):
    _fields_ = [("abi_version", c.c_uint32), ("priority", c.c_int32), ("struct_size", c.c_size_t), ("name", c.c_char_p),
                ("description", c.c_char_p), ("rev", c.c_char_p), ("capabilities", _P(_Capability)),
                ("capability_count", c.c_size_t), ("configs", _P(c.c_char_p)), ("user", c.c_void_p), ("probe", c.c_void_p),
                ("library", c.c_void_p), ("supports", _SUPPORTS), ("numerics", c.c_void_p), ("pick", _PICK),
                ("horizon", c.c_void_p), ("workspace", c.c_void_p), ("prepare", _PREPARE), ("run", _RUN),
                ("destroy", _DESTROY), ("library_file", c.c_void_p), ("expect", c.c_void_p)]


@dataclasses.dataclass(frozen=True)
class Problem:
    """What `supports` is asked about. Its m is not told: the answer must hold for every one."""
    device: str
    arch: int
    batch: int
    n: int
    k: int
    a: str
    b: str
    out: str
    bias: str
    scale_a: str
    scale_b: str
    layout_a: str
    layout_b: str
    layout_out: str
    precise: bool
    invariant: bool


class _Registered:
    """One callable and all that C borrows of it."""

    def __init__(self, name, function, supports, description, rev, priority, devices):
        self.name, self.function, self.supports = name, function, supports
        self.sentences = {}  # reasons in C's hands
        self.here = threading.local()  # what this thread is in the middle of
        windows = [_Capability(kind=L.CPU) if device == "cpu" else _Capability(kind=L.CUDA, arch_min=10, arch_max=9999)
                   for device in devices]
        self.windows = (_Capability * len(windows))(*windows)
        self.configs = (c.c_char_p * 2)(b"call", None)
        self.texts = [L.text(each) for each in (name, description, str(rev))]
        self.callbacks = (_SUPPORTS(self._supports), _PICK(lambda *_: 0), _PREPARE(self._prepare), _RUN(self._run),
                          _DESTROY(lambda *_: None))
        self.struct = _Backend(abi_version=_ABI, priority=priority, struct_size=c.sizeof(_Backend), name=self.texts[0],
                               description=self.texts[1], rev=self.texts[2], capabilities=self.windows,
                               capability_count=len(windows), configs=self.configs, supports=self.callbacks[0],
                               pick=self.callbacks[1], prepare=self.callbacks[2], run=self.callbacks[3], destroy=self.callbacks[4])

    def _refuse(self, reason, sentence):
        text = self.sentences.setdefault(sentence, c.create_string_buffer(sentence.encode()))
        reason.contents.code, reason.contents.subject = _OTHER, c.cast(text, c.c_char_p)
        return False

    def _supports(self, _, facts, problem, config, reason):
        if getattr(self.here, "is_asked", False):
            return self._refuse(reason, "its supports asks what it supports")
        try:
            self.here.is_asked = True
            described = _describe(facts.contents, problem.contents)
            if described.a in ("bf16", "fp16"):
                return self._refuse(reason, f"takes fp8 operands only; a is {described.a}")
            answer = self.supports(described) if self.supports else True
            if answer and not isinstance(answer, str):
                return True
            return self._refuse(reason, answer or "does not take this problem")
        except BaseException as error:  # nothing may unwind into C
            return self._refuse(reason, f"its supports raised {type(error).__name__}: {error}")
        finally:
            self.here.is_asked = False

    def _prepare(self, _, services, facts, problem, config, state):
        device = facts.contents
        state[0] = 1 if device.kind == L.CPU else 2 + device.index  # where the operands will lie
        return L.OK

    def _run(self, _, services, state, problem, config, pointers, workspace, workspace_bytes, stream):
        depth = getattr(self.here, "depth", 0)
        try:
            self.here.depth, self.here.raised = depth + 1, ""
            if depth == _NESTED_MOST:  # before the interpreter's own limit, which C would not hear of
                raise RecursionError(f"{self.name} asks for products that come back to it")
            from . import _pointers
            device = ("cpu",) if state == 1 else ("cuda", state - 2)
            _pointers.call(self.function, device, problem.contents, pointers.contents, stream)
            return L.OK
        except BaseException as error:  # KeyboardInterrupt, too: it must not pass for a success
            self.here.raised = f"{type(error).__name__}: {error}"
            print(f"fp8route: backend {self.name} raised:", file=sys.stderr)
            traceback.print_exc()
            return L.DEVICE
        finally:
            self.here.depth = depth


_registered = {}
_lock = threading.Lock()


def _describe(facts, problem):
    names = {each: DTYPE_NAMES[getattr(problem, each).dtype] for each in ("a", "b", "out", "bias")}
    return Problem(device="cuda" if facts.kind == L.CUDA else "cpu", arch=facts.arch, batch=problem.batch, n=problem.n,
                   k=problem.k, scale_a=SCALE_NAMES[problem.scale_a_kind], scale_b=SCALE_NAMES[problem.scale_b_kind],
                   layout_a=LAYOUT_NAMES[problem.layout_a], layout_b=LAYOUT_NAMES[problem.layout_b],
                   layout_out=LAYOUT_NAMES[problem.layout_out], precise=problem.accumulation == L.PRECISE,
                   invariant=problem.numerics == L.BATCH_INVARIANT, **names)


def register_backend(name, fn, supports=None, *, description=None, rev="1", priority=5, devices=("cpu", "cuda")):
    """Makes a torch callable a candidate for every product from now on.

    fn(a, b, scale_a, scale_b, bias, out): tensors on the product's device, a [M, K], b [K, N], out [M, N] (three dimensions
    where there is a batch); scales of one element, [M, 1] and [1, N], or None; bias [N] or None. It writes out, or returns
    a tensor that is copied there, on the current stream.
    supports(problem): True, or False or a sentence where it does not take that Problem, whatever M; a True is a promise.
    rev: changes when results or speed may. priority: the order of defaults; below all but `reference` unless given.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"name is {name!r}: it must be of small letters, digits and _, and begin with a letter")
    if not callable(fn) or not (supports is None or callable(supports)):
        raise TypeError("fn and supports must be functions, supports may be None")
    if not -2 ** 31 <= priority < 2 ** 31:
        raise ValueError(f"priority is {priority}: it must fit 32 bits")
    if not devices or any(device not in ("cpu", "cuda") for device in devices):
        raise ValueError(f"devices is {devices!r}: it must hold cpu, cuda or both")
    made = _Registered(name, fn, supports, description or f"Python callable {getattr(fn, '__name__', name)}", rev, priority,
                       tuple(devices))
    with _lock:
        if name in _registered:
            raise ValueError(f"name is {name!r}: a backend of that name is registered already")
        _set({**_registered, name: made})


def unregister_backend(name):
    with _lock:
        if name not in _registered:
            raise ValueError(f"name is {name!r}: no backend of that name is registered")
        _set({key: value for key, value in _registered.items() if key != name})


_kept = []  # C may still hold what was unregistered


def _set(backends):
    if not _context.has_any():
        _context.context("cpu")  # so that a refusal comes now
    _context.renew([c.addressof(each.struct) for each in backends.values()])
    _kept.extend(_registered.values())
    _registered.clear()
    _registered.update(backends)


def registered():
    return list(_registered)


def raised(name):
    """What the callable of that name raised when this thread last ran it; "" where it did not, or there is none."""
    found = _registered.get(name)
    return getattr(found.here, "raised", "") if found else ""
