"""Torch tensors as the library's arrays: the one place where Python reads shapes, for the operators' Python path and for
their fake implementations alike. What a shape means, the library says.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes as c

import torch

from . import _library as L

DTYPES = {torch.float8_e4m3fn: L.E4M3, torch.float8_e5m2: L.E5M2, torch.bfloat16: L.BF16, torch.float16: L.FP16,
          torch.float32: L.FP32}


def dtype_code(dtype):
    return DTYPES.get(dtype, -1)


class Unknown(Exception):
    """A size that is known at run time only: nothing can be said about it now."""


def _number(value):
    """An extent or stride as a number: of a symbolic one the example that it was traced with. No guard is made."""
    if type(value) is int:
        return value
    if isinstance(value, torch.SymInt):
        if not value.node.has_hint():
            raise Unknown
        return int(value.node.hint)
    return int(value)


def array(tensor, pointer=True):
    """One tensor; None is an absent one. pointer=False: for a fake one."""
    made = L.Array()
    if tensor is None:
        return made
    rank = tensor.dim()
    numbers = (c.c_int64 * max(1, 2 * rank))(*map(_number, tensor.shape), *map(_number, tensor.stride()))
    made.extents = c.cast(numbers, c.POINTER(c.c_int64))
    made.strides = c.cast(c.byref(numbers, 8 * rank), c.POINTER(c.c_int64))
    made.rank, made.dtype = rank, dtype_code(tensor.dtype)
    if pointer:
        made.data = tensor.data_ptr()
    return made


def arrays(form, a, b, scale_a, scale_b, bias, out, out_dtype, modes, pointers=True):
    """out None: one of out_dtype that is not there yet. modes: (precise, invariant, static_weights)."""
    precise, invariant, static_weights = modes
    made = L.Arrays(c.sizeof(L.Arrays), *(array(tensor, pointers) for tensor in (a, b, out, scale_a, scale_b, bias)))
    made.form, made.accumulation, made.numerics = form, int(precise), int(invariant)
    made.flags = L.WEIGHTS_STATIC if static_weights else 0
    if out is None:
        made.out.dtype = dtype_code(out_dtype)
    return made


def check_devices(tensors):
    """tensors: (name, tensor or None) pairs; the first is there."""
    name, first = tensors[0]
    for other, tensor in tensors[1:]:
        if tensor is not None and tensor.device != first.device:
            raise RuntimeError(f"{other} is on {tensor.device}, {name} on {first.device}: all must be on one device")
