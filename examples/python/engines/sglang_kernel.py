"""fp8route behind SGLang's operator `gemm.fp8_scaled_mm`: in place of its ahead-of-time kernel, and of the rule on sizes
that chooses between that kernel and torch's.

As a plugin: entry point `fp8route = sglang_kernel:install` in the group `sglang.srt.plugins`, which SGLang calls in every
process that it starts. Batched products (`gemm.bmm_fp8`) come along. SPDX-License-Identifier: Apache-2.0
"""
import torch

import fp8route.torch as ops
from sglang.kernels import selector
from sglang.kernels.fused_op import register_fused_op
from sglang.kernels.ops import gemm
from sglang.kernels.registry import register_kernel, registry
from sglang.kernels.spec import CapabilityRequirement, DeviceType, KernelBackend, KernelSpec

ANYWHERE = frozenset({CapabilityRequirement.CUDA, CapabilityRequirement(device=DeviceType.CPU)})
FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)
WIDE = (torch.bfloat16, torch.float16, torch.float32)


class Fp8RouteScaledMMOp(gemm.Fp8ScaledMMOp):
    """The registry names where a kernel comes from by a closed list; AOT, a compiled library, is what fp8route is."""

    priority = (KernelBackend.AOT, KernelBackend.TORCH)
    capabilities = {KernelBackend.AOT: ANYWHERE}
    descriptions = {KernelBackend.AOT: "FP8 matmul on the backend measured fastest for each shape (fp8route)."}

    def __init__(self, invariant=False):
        super().__init__()
        self.invariant = invariant

    def backend_eligible(self, backend, mat_a, mat_b, scales_a, scales_b, out_dtype, bias=None):
        # Past the parent, whose rule on M, N and K is what measured routes replace.
        is_here = super(gemm.Fp8ScaledMMOp, self).backend_eligible(backend)
        return is_here and mat_a.dtype in FP8 and mat_b.dtype == FP8[0] and out_dtype in WIDE

    def forward_aot(self, mat_a, mat_b, scales_a, scales_b, out_dtype, bias=None):
        return ops.scaled_mm(mat_a, mat_b, scales_a, scales_b.reshape(-1), bias, out_dtype, invariant=self.invariant,
                             static_weights=True)

    def _torch_compile_forward(self, num_tokens):
        return self.forward_aot  # torch operators with fake implementations: they may stay while a model is compiled


def bmm_fp8(A, B, A_scale, B_scale, dtype, out=None):
    return ops.bmm(A, B, A_scale, B_scale, out_dtype=dtype, out=out)


OPERATOR = None  # the installed one, for the registry's import path
_before = None


def install(invariant=False):
    """Takes the operator's place, wherever SGLang calls it from. Doing it twice does nothing more."""
    global OPERATOR, _before
    if OPERATOR is not None:
        return OPERATOR
    _before = gemm._FP8_SCALED_MM, registry.get("gemm.bmm_fp8")
    OPERATOR = gemm._FP8_SCALED_MM = register_fused_op(Fp8RouteScaledMMOp(invariant), __name__, "OPERATOR")
    register_kernel(KernelSpec(op="gemm.bmm_fp8", backend=KernelBackend.FLASHINFER, target=f"{__name__}:bmm_fp8",
                               capabilities=ANYWHERE, description="Batched FP8 matmul (fp8route)."))
    selector.clear_cache()
    return OPERATOR


def uninstall():
    """Puts back what was there."""
    global OPERATOR, _before
    if OPERATOR is None:
        return
    operator, batched = _before
    gemm._FP8_SCALED_MM = register_fused_op(operator, gemm.__name__, "_FP8_SCALED_MM")
    for spec in batched:
        register_kernel(spec)
    OPERATOR = _before = None
    selector.clear_cache()
