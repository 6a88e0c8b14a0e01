"""From the addresses that a backend is given to torch tensors on them, without a copy.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import ctypes as c

import torch

from . import _library as L

_DTYPES = {L.E4M3: torch.float8_e4m3fn, L.E5M2: torch.float8_e5m2, L.BF16: torch.bfloat16, L.FP16: torch.float16,
           L.FP32: torch.float32}
_SCALE_ROW = 3  # FP8R_SCALE_ROW


class _Memory:
    """Bytes on a GPU, as torch takes them."""

    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


def _tensor(operand, address, extents, device):
    """extents: batch, rows, cols; the batch is left out where there is one item."""
    if operand.dtype == L.NONE:
        return None
    kind = _DTYPES[operand.dtype]
    strides = (operand.batch_stride, operand.row_stride, operand.col_stride)
    if extents[0] == 1:
        extents, strides = extents[1:], strides[1:]
    span = (sum((extent - 1) * stride for extent, stride in zip(extents, strides)) + 1) * kind.itemsize
    if device.type == "cuda":
        memory = torch.as_tensor(_Memory(address, span), device=device)
    else:
        memory = torch.frombuffer((c.c_char * span).from_address(address), dtype=torch.uint8)
    return memory.view(kind).as_strided(extents, strides)


def _scale(operand, address, is_row, batch, rows, cols, device):
    """One element, [rows, cols] of which one is 1, or with a batch before them."""
    batch = batch if operand.batch_stride else 1
    if not is_row:
        rows = cols = 1
    made = _tensor(operand, address, (batch, rows, cols), device)
    return made.view(-1) if made is not None and made.numel() == 1 else made


def _queued_on(stream, device):
    if device.type == "cpu" or torch.cuda.current_stream(device).cuda_stream == (stream or 0):
        return contextlib.nullcontext()
    return torch.cuda.stream(torch.cuda.ExternalStream(stream or 0, device=device))


def call(function, device, problem, pointers, stream):
    """Runs a callable on a product's operands, on the product's stream."""
    device = torch.device(*device)
    batch, m, n, k = problem.batch, problem.m, problem.n, problem.k
    with torch.no_grad(), _queued_on(stream, device):
        a = _tensor(problem.a, pointers.a, (batch, m, k), device)
        b = _tensor(problem.b, pointers.b, (batch, k, n), device)
        out = _tensor(problem.out, pointers.out, (batch, m, n), device)
        scale_a = _scale(problem.scale_a, pointers.scale_a, problem.scale_a_kind == _SCALE_ROW, batch, m, 1, device)
        scale_b = _scale(problem.scale_b, pointers.scale_b, problem.scale_b_kind == _SCALE_ROW, batch, 1, n, device)
        bias = _tensor(problem.bias, pointers.bias, (batch if problem.bias.batch_stride else 1, 1, n), device)
        bias = bias[0] if bias is not None and bias.dim() == 2 else bias
        result = function(a, b, scale_a, scale_b, bias, out)
        if result is not None and result is not out:
            if getattr(result, "shape", None) != out.shape:  # copy_ would spread it
                raise RuntimeError(f"the callable returned {getattr(result, 'shape', result)!r}: it must be a tensor of out's "
                                   f"shape, {list(out.shape)}, or None")
            out.copy_(result)

