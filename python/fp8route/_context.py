"""Contexts: one a device, made when it is first needed and kept for the life of the process.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import ctypes as c
import dataclasses
import os
import sys
import threading

from . import _library as L

_lock = threading.RLock()
_contexts = {}
_retired = []  # replaced ones, which a call may still use: they stay
_lists = []  # of outside backends that a context borrows
_observers = []  # called with (kind, index, address) for every new context
_outside = []  # addresses of outside backends, in the order in which they were registered


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One row of an explanation: what it would run, or why it would not."""
    backend: str
    config: str
    numerics: str
    verdict: str
    reason: int
    sentence: str
    have: int
    need: int
    median_us: float
    gain_low: float
    gain_high: float


@dataclasses.dataclass(frozen=True)
class Explanation:
    source: str
    note: str
    candidates: tuple

    @property
    def chosen(self):
        """"backend:config" that would run, or None."""
        for candidate in self.candidates:
            if candidate.verdict == "chosen":
                return f"{candidate.backend}:{candidate.config}"
        return None

    def __str__(self):
        lines = [f"{self.chosen or 'nothing'} ({self.source}); {self.note}"]
        width = max([12, *(len(row.backend) for row in self.candidates)])
        lines += [f"  {row.backend:{width}} {row.verdict:9} {row.sentence}" for row in self.candidates]
        return "\n".join(lines)


def parse_device(device):
    """(kind, index) of "cpu", "cuda", "cuda:1", a pair, or an object with `type` and `index` such as torch.device."""
    if isinstance(device, tuple):
        return device
    name, index = getattr(device, "type", None), getattr(device, "index", None)
    if name is None:
        name, _, tail = str(device).partition(":")
        index = int(tail) if tail.isdecimal() and len(tail) < 10 else None if not tail else -1
    if name not in ("cpu", "cuda") or (index or 0) < 0:
        raise ValueError(f"device is {device}: it must be cpu, cuda or cuda:INDEX")
    return (L.CPU, 0) if name == "cpu" else (L.CUDA, index or 0)


def _create(kind, index, flags=0):
    rows = (c.c_void_p * max(1, len(_outside)))(*_outside)
    options = L.Options(struct_size=c.sizeof(L.Options), flags=flags, backends=c.cast(rows, c.c_void_p) if _outside else None,
                        backend_count=len(_outside))
    address = c.c_void_p()
    L.check(L.context_create(L.Device(kind, index), c.byref(options), c.byref(address)))
    _lists.append(rows)
    return address.value


def context(device="cpu"):
    """The address of a device's context."""
    key = parse_device(device)
    found = _contexts.get(key)
    if found:
        return found
    with _lock:
        if key not in _contexts:
            _contexts[key] = _create(*key)
            for observer in _observers:
                observer(*key, _contexts[key])
        return _contexts[key]


@contextlib.contextmanager
def unrouted(device="cpu"):
    """The address of a context that no route file decides for: what an untuned library takes."""
    address = _create(*parse_device(device), L.NO_ROUTE_FILES)
    try:
        yield address
    finally:
        L.context_destroy(address)


def observe(function):
    """function(kind, index, address) is told of every context, and of the one that takes its place."""
    with _lock:
        _observers.append(function)
        for key, address in _contexts.items():
            function(*key, address)


def has_any():
    return bool(_contexts)


def renew(outside=None):
    """Makes every context anew, with these outside backends (or those it has). All or nothing."""
    global _outside
    with _lock:
        before, _outside = _outside, _outside if outside is None else list(outside)
        try:
            made = {key: _create(*key) for key in _contexts}
        except L.Error:
            _outside = before
            raise
        _retired.extend(_contexts.values())
        _contexts.update(made)
        for key, address in made.items():
            for observer in _observers:
                observer(*key, address)


def current():
    """The addresses of the contexts in use."""
    with _lock:
        return list(_contexts.values())


def every():
    """Those in use, and those that others have taken the place of."""
    with _lock:
        return [*_retired, *_contexts.values()]


def close(addresses):
    """Ends contexts that others have taken the place of. No call may be under way in them."""
    named = sys.modules.get(f"{__package__}._named")
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        for index in range(torch.cuda.device_count()):
            torch.cuda.synchronize(index)
    with _lock:
        for address in addresses:
            if named is not None:
                named.forget(address)
            _retired.remove(address)
            L.context_destroy(address)


def routes_id(device="cpu"):
    """64 hexadecimal digits, equal where all decisions are."""
    digits = (c.c_char * 32)()
    L.context_routes_id(context(device), digits)
    return bytes(digits).hex()


def matmul_of(problem):
    """A product without data from text such as "8x6144x4096:bias"."""
    matmul = L.Matmul(struct_size=c.sizeof(L.Matmul))
    L.check(L.matmul_parse(L.text(problem), c.byref(matmul)))
    return matmul


def explain(problem, device="cpu", within=None):
    """What would run, and of every other backend why not. problem: text of the grammar. within: a context's address."""
    handle = c.c_void_p()
    if not isinstance(problem, (str, L.Matmul)):
        raise TypeError(f"problem is {problem!r}: it must be text such as '8x6144x4096:bias'")
    matmul = matmul_of(problem) if isinstance(problem, str) else problem
    L.check(L.explain(within or context(device), c.byref(matmul), c.byref(handle)))
    try:
        rows = []
        for i in range(L.explanation_count(handle)):
            row = L.explanation_candidate(handle, i).contents
            rows.append(Candidate(row.backend.decode(), row.config.decode(), row.numerics.decode(), L.VERDICTS[row.verdict],
                                  row.reason, row.sentence.decode(), row.have, row.need, row.median_us, row.gain_low,
                                  row.gain_high))
        return Explanation(L.explanation_source(handle).decode(), L.explanation_note(handle).decode(errors="replace"), tuple(rows))
    finally:
        L.explanation_destroy(handle)


def backends(device="cpu"):
    """A dictionary a backend: name, description, rev, library, configs, priority, usable, reason."""
    rows = []
    for i in range(L.context_backend_count(context(device))):
        info = L.BackendInfo(struct_size=c.sizeof(L.BackendInfo))
        L.check(L.context_backend(context(device), i, c.byref(info)))
        configs = []
        while info.configs and info.configs[len(configs)] is not None:
            configs.append(info.configs[len(configs)].decode())
        rows.append({"name": info.name.decode(), "description": info.description.decode(), "rev": info.rev.decode(),
                     "library": info.library.decode(), "configs": configs, "priority": info.priority,
                     "usable": bool(info.is_built and info.fits), "reason": info.sentence.decode()})
    return rows


def route_files(device="cpu"):
    files = []
    while True:
        name = L.context_route_file(context(device), len(files))
        if name is None:
            return files
        files.append(os.fsdecode(name))


def user_route_file(device="cpu"):
    """Where this user's routes for this machine belong, which a tune adds to; None where the environment names no place."""
    path = c.create_string_buffer(4096)
    try:
        L.check(L.context_user_route_file(context(device), path, len(path)))
    except L.Error as error:
        if error.status == "FP8R_ERROR_NOT_FOUND":
            return None
        raise
    return os.fsdecode(path.value)


def device_name(device="cpu"):
    return L.context_device(context(device)).contents.name.decode()
