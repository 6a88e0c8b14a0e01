"""torch._scaled_mm and _scaled_mm_v2 (the one behind torch.nn.functional.scaled_mm): tensor-wise and row-wise fp8 cases.

Anything else goes to torch's own function, so that errors are torch's. More is taken than torch takes: any M, N and K, any
layout, every bias with every result, one scale tensor-wise and the other row-wise, and row-wise scales as [N, 1], which is how
quantize gives those of a weight, or, by _scaled_mm alone, as [M] and [N] and at any stride.
SPDX-License-Identifier: Apache-2.0
"""
import torch

import fp8route.torch as ft

from . import count, original_of

REPLACED = ("_scaled_mm", "_scaled_mm_v2")
ORIGINALS = {}
_TENSOR_WISE, _ROW_WISE = 0, 1  # torch.nn.functional.ScalingType
_WIDE = (torch.bfloat16, torch.float16, torch.float32)
_is_compiling = torch.compiler.is_compiling
_operator = torch.ops.fp8route.scaled_mm.default
_carveout = getattr(torch._C, "_get_sm_carveout_experimental", lambda: None)
_FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def _is_scale(scale, shapes, device):
    """One element, or of one of the shapes."""
    return (isinstance(scale, torch.Tensor) and scale.dtype is torch.float32 and scale.device == device
            and (scale.numel() == 1 or tuple(scale.shape) in shapes))


def _is_bias(bias, n, device):
    """Not [N, 1], which torch adds to rows on a CPU and to columns on a GPU."""
    return (isinstance(bias, torch.Tensor) and bias.dtype in _WIDE and bias.device == device
            and tuple(bias.shape) in ((n,), (1, n)))


def _is_out(out, shape, dtype, device):
    """A negated view's elements are not what its memory holds: torch knows how to write into one."""
    return (isinstance(out, torch.Tensor) and out.dtype is dtype and tuple(out.shape) == shape and out.device == device
            and (_is_compiling() or not out.is_neg()))


def _is_factor(scale_result):
    """What torch takes and, where the result is wide, leaves unused."""
    return scale_result is None or (isinstance(scale_result, torch.Tensor) and scale_result.dtype is torch.float32
                                    and scale_result.numel() == 1)


def _covers(a, b, scale_a, scale_b, bias, out_dtype, fast, out):
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor) or not isinstance(fast, bool):
        return False
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0]:
        return False
    if a.dtype not in _FP8 or b.dtype is not torch.float8_e4m3fn or out_dtype not in _WIDE or b.device != a.device:
        return False
    if not _is_compiling() and _carveout() is not None:
        return False  # only torch's kernels leave multiprocessors free
    m, n = a.shape[0], b.shape[1]
    if bias is not None and not _is_bias(bias, n, a.device):
        return False
    if out is not None and not _is_out(out, (m, n), out_dtype, a.device):
        return False
    return (_is_scale(scale_a, ((m, 1), (m,)), a.device)
            and _is_scale(scale_b, ((1, n), (n, 1), (n,)), a.device))


def _wanted(a, out_dtype, out):
    """The type of the result; None where the arguments are no tensors, which torch says."""
    return out_dtype if out_dtype is not None else getattr(a if out is None else out, "dtype", None)


def _count(name, is_routed):
    if not _is_compiling():
        count(name, is_routed)


def _original(name):
    return original_of("torch", ORIGINALS, name)


def _is_plain(a, b, bias):
    return (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and b.dtype is torch.float8_e4m3fn and a.dim() == 2
            and (bias is None or (isinstance(bias, torch.Tensor) and bias.dim() < 2)))


def _scaled_mm(self, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False, *, out=None):
    """As torch._scaled_mm. Without fast accumulation partial sums are promoted to fp32 regularly."""
    is_usual = out is None and scale_result is None and scale_a is not None and scale_b is not None
    if is_usual and out_dtype in _WIDE and isinstance(use_fast_accum, bool) and not _is_compiling():
        if _carveout() is None and _is_plain(self, mat2, bias):
            try:  # the operator judges; what it refuses may still be torch's
                result = _operator(self, mat2, scale_a, scale_b, bias, out_dtype, not use_fast_accum)
            except RuntimeError:
                pass
            else:
                count("torch._scaled_mm", True)
                return result
    wanted = _wanted(self, out_dtype, out)
    if _covers(self, mat2, scale_a, scale_b, bias, wanted, use_fast_accum, out) and _is_factor(scale_result):
        _count("torch._scaled_mm", True)
        return ft.scaled_mm(self, mat2, scale_a, scale_b, bias, None if out is not None else wanted,
                            not use_fast_accum, out=out)
    _count("torch._scaled_mm", False)
    if out is not None:
        return _original("_scaled_mm")(self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum, out=out)
    return _original("_scaled_mm")(self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum)


def _is_recipe(scales, recipes, swizzles):
    if not all(isinstance(each, (list, tuple)) for each in (scales, recipes, swizzles)):
        return False
    return (len(scales) == 1 and len(recipes) == 1 and not any(swizzles) and isinstance(recipes[0], int)
            and recipes[0] in (_TENSOR_WISE, _ROW_WISE))


def _scaled_mm_v2(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias=None, out_dtype=None,
                  contraction_dim=(), use_fast_accum=False, *, out=None):
    """As torch._scaled_mm_v2, which torch.nn.functional.scaled_mm calls."""
    wanted = _wanted(self, out_dtype, out)
    if (_is_recipe(scale_a, recipe_a, swizzle_a) and _is_recipe(scale_b, recipe_b, swizzle_b) and not contraction_dim
            and _covers(self, mat2, scale_a[0], scale_b[0], bias, wanted, use_fast_accum, out)
            and _fits(scale_a[0], recipe_a[0]) and _fits(scale_b[0], recipe_b[0])):
        _count("torch._scaled_mm_v2", True)
        return ft.scaled_mm(self, mat2, scale_a[0], scale_b[0], bias, None if out is not None else wanted,
                            not use_fast_accum, out=out)
    _count("torch._scaled_mm_v2", False)
    keywords = {} if out is None else {"out": out}
    return _original("_scaled_mm_v2")(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype,
                                      contraction_dim, use_fast_accum, **keywords)


def _fits(scale, recipe):
    """torch has errors of its own for row-wise scales of one dimension, or with gaps, here."""
    return scale.dim() == 2 and scale.is_contiguous() if recipe == _ROW_WISE else scale.numel() == 1
