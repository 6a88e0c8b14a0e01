"""Other libraries' kernels as backends, where they can be imported: torch._scaled_mm, sgl_kernel, flashinfer.

SPDX-License-Identifier: Apache-2.0
"""
from . import _backends


def _torch_scaled_mm():
    import torch
    from .compat import original_of
    from .compat import torch as dropin

    def fn(a, b, scale_a, scale_b, bias, out):
        original = original_of("torch", dropin.ORIGINALS, "_scaled_mm")
        return original(a, b, scale_a, scale_b, bias, out_dtype=out.dtype, use_fast_accum=True)

    def supports(problem):
        if problem.device == "cuda":
            return _cuda_rules(problem, 16, "torch._scaled_mm") if problem.bias in ("none", problem.out) else (
                "torch._scaled_mm takes a bias of out's type only")
        return True if problem.batch == 1 and problem.scale_a == problem.scale_b == "tensor" else (
            "torch._scaled_mm takes one scale an operand and no batches on a CPU")

    return {"name": "torch_scaled_mm", "fn": fn, "supports": supports, "rev": torch.__version__,
            "description": f"torch._scaled_mm of torch {torch.__version__}"}


def _cuda_rules(problem, n_multiple, who):
    """What the usual GPU kernels ask for."""
    if problem.batch > 1:
        return f"{who} takes no batches"
    if problem.k % 16 or problem.n % n_multiple:
        return f"{who} needs N and K to be multiples of {n_multiple} and 16"
    if problem.layout_a != "inner" or problem.layout_b != "inner" or problem.layout_out != "inner":
        return f"{who} needs a row-major, b column-major and packed"
    if problem.scale_a != problem.scale_b or problem.scale_a not in ("tensor", "row"):
        return f"{who} needs both scales tensor-wise or both row-wise"
    if problem.precise or problem.invariant:
        return f"{who} is raced with fast accumulation and promises no bits"
    if problem.bias != "none" and problem.out == "fp32":
        return f"{who} takes no bias with fp32 results"
    return True


def _sgl_kernel():
    import sgl_kernel
    from .compat import original_of
    from .compat import sgl_kernel as dropin

    def fn(a, b, scale_a, scale_b, bias, out):
        original = original_of("sgl_kernel", dropin.ORIGINALS, "fp8_scaled_mm")
        return original(a, b, scale_a, scale_b, out.dtype, bias)

    def supports(problem):
        if problem.scale_a != "row" or problem.a != "e4m3" or problem.out == "fp32" or problem.bias not in ("none", problem.out):
            return "fp8_scaled_mm needs row-wise scales, e4m3 operands and a bf16 or fp16 result with a bias of that type"
        return _cuda_rules(problem, 8, "fp8_scaled_mm")

    version = getattr(sgl_kernel, "__version__", "unknown")
    return {"name": "sgl_kernel", "fn": fn, "supports": supports, "rev": version, "devices": ("cuda",),
            "description": f"fp8_scaled_mm of sgl_kernel {version}"}


def _flashinfer():
    import flashinfer
    from .compat import flashinfer as dropin
    from .compat import original_of

    def fn(a, b, scale_a, scale_b, bias, out):
        original = original_of("flashinfer", dropin.ORIGINALS, "bmm_fp8")
        deep = a if a.dim() == 3 else a[None], b if b.dim() == 3 else b[None], out if out.dim() == 3 else out[None]
        original(deep[0], deep[1], scale_a, scale_b, out.dtype, deep[2], "cublas")

    def supports(problem):
        if problem.scale_a != "tensor" or problem.scale_b != "tensor" or problem.bias != "none" or problem.out == "fp32":
            return "bmm_fp8 needs one scale an operand, no bias and a bf16 or fp16 result"
        if problem.k % 16 or problem.n % 16 or problem.layout_b != "inner" or problem.precise or problem.invariant:
            return "bmm_fp8 needs N and K to be multiples of 16, b column-major, and fast accumulation"
        return True

    version = getattr(flashinfer, "__version__", "unknown")
    return {"name": "flashinfer", "fn": fn, "supports": supports, "rev": version, "devices": ("cuda",),
            "description": f"bmm_fp8 of flashinfer {version}, cublas"}


_ADAPTORS = (_torch_scaled_mm, _sgl_kernel, _flashinfer)


def register_adaptors():
    """Registers the kernels of whichever of these libraries can be imported; the names of the new backends."""
    added = []
    for make in _ADAPTORS:
        try:
            described = make()
        except ImportError:  # not here, or not for this machine
            continue
        if described["name"] not in _backends.registered():
            _backends.register_backend(**described)
            added.append(described["name"])
    return added
