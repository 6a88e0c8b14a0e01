"""sgl_kernel.fp8_scaled_mm and its per-token and per-tensor quantisers.

More is taken than there: any M, N and K, fp32 results, every bias type, one scale for all rows. One exception: the scale of
a row (or tensor) of zeros is 1 here and 0 there; its codes are zeros in both.
SPDX-License-Identifier: Apache-2.0
"""
import torch

import fp8route.torch as ft

from . import count, original_of

REPLACED = ("fp8_scaled_mm", "sgl_per_token_quant_fp8", "sgl_per_tensor_quant_fp8")
ORIGINALS = {}
_is_compiling = torch.compiler.is_compiling
_operator = torch.ops.fp8route.scaled_mm.default
_WIDE = (torch.bfloat16, torch.float16, torch.float32)


def _count(name, is_routed):
    if not _is_compiling():
        count(f"sgl_kernel.{name}", is_routed)


def _hand_over(name, why, *arguments):
    _count(name, False)
    original = original_of("sgl_kernel", ORIGINALS, name)
    if original is None:
        raise RuntimeError(f"{name}: {why}; and sgl_kernel, which might take it, cannot be imported")
    return original(*arguments)


def _line(tensor, count_wanted):
    """A scale or bias of that many elements, whatever its shape, as a line; None where it has another count."""
    if tensor.numel() != count_wanted or not tensor.is_contiguous():
        return None
    return tensor if tensor.dim() == 1 else tensor.view(-1)


def fp8_scaled_mm(mat_a, mat_b, scales_a, scales_b, out_dtype, bias=None):
    """mat_a [M, K], mat_b [K, N] e4m3; scales_a of M elements (or one), scales_b of N (or one); bias of N."""
    why = "these shapes or types are outside fp8route's contract"
    if scales_a is None or scales_b is None or out_dtype not in _WIDE:
        return _hand_over("fp8_scaled_mm", "a scale is missing, or out_dtype is none of fp8route's",
                          mat_a, mat_b, scales_a, scales_b, out_dtype, bias)
    if mat_a.dim() == 2 and not _is_compiling():
        try:  # the operator judges; what it refuses may still be in another shape, or the original's
            result = _operator(mat_a, mat_b, scales_a, scales_b, bias, out_dtype)
        except RuntimeError as error:
            why = str(error)
        else:
            count("sgl_kernel.fp8_scaled_mm", True)
            return result
    if mat_a.dim() != 2 or mat_b.dim() != 2:
        return _hand_over("fp8_scaled_mm", f"mat_a has {mat_a.dim()} dimensions, mat_b {mat_b.dim()}, which must be 2",
                          mat_a, mat_b, scales_a, scales_b, out_dtype, bias)
    m, n = mat_a.shape[0], mat_b.shape[1]
    line_a = scales_a if scales_a.numel() == 1 else _line(scales_a, m)
    line_b = scales_b if scales_b.numel() == 1 else _line(scales_b, n)
    added = None if bias is None else _line(bias, n)
    if (line_a is None or line_b is None or (bias is not None and added is None)
            or mat_a.dtype not in (torch.float8_e4m3fn, torch.float8_e5m2) or mat_b.dtype is not torch.float8_e4m3fn
            or mat_a.shape[1] != mat_b.shape[0]):
        return _hand_over("fp8_scaled_mm", why, mat_a, mat_b, scales_a, scales_b, out_dtype, bias)
    _count("fp8_scaled_mm", True)
    return ft.scaled_mm(mat_a, mat_b, line_a, line_b, added, out_dtype)


def sgl_per_token_quant_fp8(input, output_q, output_s):
    """Writes codes and one scale a row of input [M, K]; output_s has M elements."""
    if input.dim() == 2 and output_q.dtype is torch.float8_e4m3fn and output_s.dtype is torch.float32 and input.dtype in _WIDE:
        scale = _line(output_s, input.shape[0])
        if scale is not None and output_q.shape == input.shape:
            _count("sgl_per_token_quant_fp8", True)
            ft.quantize_into(input, output_q, scale)
            return
    _hand_over("sgl_per_token_quant_fp8", "these shapes or types are outside fp8route's contract", input, output_q, output_s)


def sgl_per_tensor_quant_fp8(input, output_q, output_s, is_static):
    """Writes codes, and (unless is_static) the one scale output_s, which is overwritten, not raised."""
    if (output_q.dtype is torch.float8_e4m3fn and output_s.dtype is torch.float32 and output_s.numel() == 1
            and input.dtype in _WIDE and output_q.shape == input.shape and input.dim() > 0):
        _count("sgl_per_tensor_quant_fp8", True)
        ft.quantize_into(input, output_q, output_s, is_static)
        return
    _hand_over("sgl_per_tensor_quant_fp8", "these shapes or types are outside fp8route's contract", input, output_q, output_s,
               is_static)
