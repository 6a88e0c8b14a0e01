"""flashinfer.bmm_fp8: batched products with one scale an operand, and every backend= value.

`auto` (the default here) takes the measured route. A named backend is one row and no other: cublas is `cublaslt`, cutlass is
`sm90`, and the rows' own names are taken, too. What names no row raises with the list.
SPDX-License-Identifier: Apache-2.0
"""
import torch

import fp8route
import fp8route.torch as ft

from . import count, original_of

REPLACED = ("bmm_fp8",)
ORIGINALS = {}
ROWS = {"cublas": "cublaslt", "cutlass": "sm90"}
_is_compiling = torch.compiler.is_compiling
_WIDE = (torch.bfloat16, torch.float16, torch.float32)
_FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def _count(is_routed):
    if not _is_compiling():
        count("flashinfer.bmm_fp8", is_routed)


def row_of(backend, device):
    """The row that a backend name means; None for "auto"."""
    if backend == "auto":
        return None
    name = ROWS.get(backend, backend)
    rows = [row["name"] for row in fp8route.backends(device)]
    if name.partition(":")[0] not in rows:
        raise ValueError(f"backend is {backend!r}: it must be auto, {', '.join(ROWS)}, or a row of fp8route: {', '.join(rows)}")
    return name


def _covers(A, B, A_scale, B_scale, dtype, out):
    if A.dim() != 3 or B.dim() != 3 or A.dtype not in _FP8 or B.dtype is not torch.float8_e4m3fn or dtype not in _WIDE:
        return False
    if A_scale.dtype is not torch.float32 or B_scale.dtype is not torch.float32:
        return False
    return out is None or out.dtype is dtype


def _refusal(A, B, A_scale, B_scale, dtype, out):
    """What fp8route says of operands that it does not take."""
    try:
        ft.bmm(A, B, A_scale, B_scale, None, dtype, out=out)
    except RuntimeError as error:
        return str(error)
    return "these shapes or types are outside fp8route's contract"


def bmm_fp8(A, B, A_scale, B_scale, dtype, out=None, backend="auto"):
    """A [b, m, k] times B [b, k, n], with A_scale and B_scale of one element (or fp8route.torch.bmm's other shapes)."""
    if not _covers(A, B, A_scale, B_scale, dtype, out):
        _count(False)
        original = original_of("flashinfer", ORIGINALS, "bmm_fp8")
        if original is None:
            raise RuntimeError(f"bmm_fp8: {_refusal(A, B, A_scale, B_scale, dtype, out)}; and flashinfer, which might take them, "
                               "cannot be imported")
        return original(A, B, A_scale, B_scale, dtype, out, backend)
    row = row_of(backend, A.device)
    _count(True)
    if row is None:
        return ft.bmm(A, B, A_scale, B_scale, None, None if out is not None else dtype, out=out)
    return ft.run_on(row, A, B, A_scale, B_scale, None, dtype, out=out)
