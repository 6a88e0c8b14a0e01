"""Products on a backend that the caller names: plans, kept by what they are for.

SPDX-License-Identifier: Apache-2.0
"""
import collections
import ctypes as c
import sys
import threading

import torch

from . import _context
from . import _library as L

_PLANS_MOST = 512
_lock = threading.Lock()
_plans = collections.OrderedDict()
_OPERANDS = ("a", "b", "out", "scale_a", "scale_b", "bias")


class _Plan:
    """The library's plan. It ends with the last reference: of the list, or of a call that still runs it."""

    def __init__(self, context, backend, matmul):
        made = c.c_void_p()
        self.address = None
        L.check(L.plan_create(context, c.byref(matmul), L.text(backend), c.byref(made)))
        self.address = made.value

    def end(self):
        address, self.address = self.address, None
        if address:
            L.plan_destroy(address)

    def __del__(self, _is_finalizing=sys.is_finalizing):
        if not _is_finalizing():
            self.end()


def _alignment(address):
    address = (address or 0) | 256
    return address & -address


def _plan(context, backend, matmul):
    """The plan for this product: everything but where its operands lie. Pointers lend it their alignment."""
    pointers = [getattr(matmul, name).data for name in _OPERANDS]
    for name, pointer in zip(_OPERANDS, pointers):
        getattr(matmul, name).data = _alignment(pointer) % 256 or None
    key = (context, backend, bytes(matmul))
    with _lock:
        plan = _plans.get(key)
        if plan is not None:
            _plans.move_to_end(key)
    if plan is None:
        plan, oldest = _Plan(context, backend, matmul), None
        with _lock:
            plan = _plans.setdefault(key, plan)
            if len(_plans) > _PLANS_MOST:
                _, oldest = _plans.popitem(last=False)
        del oldest  # without the lock: it may end here
    return plan, pointers


def forget(context):
    """Ends the plans of a context that is about to end."""
    with _lock:
        gone = [key for key in _plans if key[0] == context]
        ended = [_plans.pop(key) for key in gone]
    for plan in ended:
        plan.end()


def run(backend, matmul, device, stream):
    """Runs a described product, with its data pointers set, on that backend ("name" or "name:config")."""
    m = matmul.a.rows
    plan, pointers = _plan(_context.context(device), backend, matmul)
    a, b, out, scale_a, scale_b, bias = pointers
    given = L.Pointers(c.sizeof(L.Pointers), m, a, b, out, scale_a, scale_b, bias)
    needed = L.plan_workspace(plan.address)
    space = torch.empty(needed, dtype=torch.uint8, device=device) if needed else None
    start = 0
    if space is not None and space.data_ptr() % 256:
        space = torch.empty(needed + 256, dtype=torch.uint8, device=device)
        start = -space.data_ptr() % 256
    L.check(L.plan_run(plan.address, c.byref(given), space.data_ptr() + start if needed else None, needed, stream))
