"""torch._scaled_mm and _scaled_mm_v2 (the one behind torch.nn.functional.scaled_mm): tensor-wise and row-wise fp8 cases.

Anything else goes to torch's own function, so that errors are torch's. More is taken than torch takes: any M, N and K, any
layout, every bias with every result, one scale tensor-wise and the other row-wise, scales of b as quantize gives them, [N, 1].
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
    return isinstance(scale, torch.Tensor) and scale.dtype is torch.float32 and scale.device == device and (scale.numel() == 1 or (
        scale.dim() == 2 and tuple(scale.shape) in shapes and scale.is_contiguous()))


def _is_factor(scale_result):
    """What torch takes and, where the result is wide, leaves unused."""
    return scale_result is None or (isinstance(scale_result, torch.Tensor) and scale_result.dtype is torch.float32
                                    and scale_result.numel() == 1)


def _covers(a, b, scale_a, scale_b, bias, out_dtype, out):
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0]:
        return False
    if a.dtype not in _FP8 or b.dtype is not torch.float8_e4m3fn or out_dtype not in _WIDE or b.device != a.device:
        return False
    if not _is_compiling() and _carveout() is not None:
        return False  # only torch's kernels leave multiprocessors free
    n = b.shape[1]
    if bias is not None and (bias.dtype not in _WIDE or bias.shape[-1:] != (n,) or bias.numel() != n or bias.dim() > 2
                             or bias.device != a.device):
        return False
    if out is not None and (out.dtype is not out_dtype or out.shape != (a.shape[0], n) or out.device != a.device):
        return False
    return _is_scale(scale_a, ((a.shape[0], 1),), a.device) and _is_scale(scale_b, ((1, n), (n, 1)), a.device)


def _count(name, is_routed):
    if not _is_compiling():
        count(name, is_routed)


def _original(name):
    return original_of("torch", ORIGINALS, name)


def _scaled_mm(self, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False, *, out=None):
    """As torch._scaled_mm. Without fast accumulation partial sums are promoted to fp32 regularly."""
    is_plain = out is None and scale_result is None and scale_a is not None and scale_b is not None
    if is_plain and out_dtype in _WIDE and mat2.dtype is torch.float8_e4m3fn and self.dim() == 2 and not _is_compiling():
        if _carveout() is None:
            try:  # the operator judges; what it refuses may still be torch's
                result = _operator(self, mat2, scale_a, scale_b, bias, out_dtype, not use_fast_accum)
            except RuntimeError:
                pass
            else:
                count("torch._scaled_mm", True)
                return result
    wanted = out_dtype if out_dtype is not None else out.dtype if out is not None else self.dtype
    if _covers(self, mat2, scale_a, scale_b, bias, wanted, out) and _is_factor(scale_result):
        _count("torch._scaled_mm", True)
        return ft.scaled_mm(self, mat2, scale_a, scale_b, bias, None if out is not None else wanted,
                            not use_fast_accum, out=out)
    _count("torch._scaled_mm", False)
    if out is not None:
        return _original("_scaled_mm")(self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum, out=out)
    return _original("_scaled_mm")(self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum)


def _is_recipe(scales, recipes, swizzles):
    return len(scales) == 1 and len(recipes) == 1 and not any(swizzles) and int(recipes[0]) in (_TENSOR_WISE, _ROW_WISE)


def _scaled_mm_v2(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias=None, out_dtype=None,
                  contraction_dim=(), use_fast_accum=False, *, out=None):
    """As torch._scaled_mm_v2, which torch.nn.functional.scaled_mm calls."""
    wanted = out_dtype if out_dtype is not None else out.dtype if out is not None else self.dtype
    if (_is_recipe(scale_a, recipe_a, swizzle_a) and _is_recipe(scale_b, recipe_b, swizzle_b) and not len(contraction_dim)
            and _covers(self, mat2, scale_a[0], scale_b[0], bias, wanted, out)
            and _fits(scale_a[0], recipe_a[0]) and _fits(scale_b[0], recipe_b[0])):
        _count("torch._scaled_mm_v2", True)
        return ft.scaled_mm(self, mat2, scale_a[0], scale_b[0], bias, None if out is not None else wanted,
                            not use_fast_accum, out=out)
    _count("torch._scaled_mm_v2", False)
    keywords = {} if out is None else {"out": out}
    return _original("_scaled_mm_v2")(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype,
                                      contraction_dim, use_fast_accum, **keywords)


def _fits(scale, recipe):
    return int(recipe) == _ROW_WISE or scale.numel() == 1
