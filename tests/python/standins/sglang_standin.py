"""Stands in for `sglang.kernels`: the names and signatures that an operator of its registry meets, with as little behind
them as dispatch needs. Its own kernels only say that they were called. SPDX-License-Identifier: Apache-2.0
"""
import dataclasses
import enum
import functools
import importlib

import torch

from standins.modules import module

CALLS = []  # which of the engine's own kernels ran


class KernelBackend(str, enum.Enum):
    TORCH = "torch"
    AOT = "aot"
    FLASHINFER = "flashinfer"


class DeviceType(str, enum.Enum):
    CUDA = "cuda"
    CPU = "cpu"


@dataclasses.dataclass(frozen=True)
class CapabilityRequirement:
    device: DeviceType
    min_cuda_arch: tuple = None
    max_cuda_arch: tuple = None


CapabilityRequirement.CUDA = CapabilityRequirement(DeviceType.CUDA)


@dataclasses.dataclass(frozen=True)
class FormatSignature:
    supported_dtypes: tuple = ()
    in_place: bool = False
    description: str = ""


@dataclasses.dataclass(frozen=True)
class KernelSpec:
    op: str
    backend: KernelBackend
    target: str
    capabilities: frozenset = frozenset()
    format_signature: FormatSignature = FormatSignature()
    description: str = ""

    def load(self):
        place, _, path = self.target.partition(":")
        return functools.reduce(getattr, path.split("."), importlib.import_module(place))


class KernelRegistry:
    def __init__(self):
        self.specs = {}

    def get(self, op):
        return [spec for (name, _), spec in self.specs.items() if name == op]


registry = KernelRegistry()


def register_kernel(spec):
    """A second spec of one operator and backend takes the first one's place."""
    registry.specs[spec.op, spec.backend] = spec
    return spec


@functools.lru_cache(maxsize=None)
def get_kernel(op, backend):
    return registry.specs[op, backend].load()


METHODS = {KernelBackend.TORCH: "forward_native", KernelBackend.AOT: "forward_aot"}
DEVICE = [DeviceType.CPU]  # what the platform is detected as


class BaseFusedOp(torch.nn.Module):
    op, priority, capabilities, descriptions = "", (), {}, {}
    format_signature = FormatSignature()

    def __init__(self):
        super().__init__()
        self.is_torch_compile = False

    def backend_eligible(self, backend, *args, **kwargs):
        wanted = self.capabilities.get(backend, frozenset())
        return not wanted or any(each.device == DEVICE[0] for each in wanted)

    def _torch_compile_forward(self, num_tokens):
        return self.forward_native

    def enter_torch_compile(self, num_tokens):
        self.compiled = self._torch_compile_forward(num_tokens=num_tokens)
        self.is_torch_compile = True

    def forward(self, *args, backend=None, **kwargs):
        if self.is_torch_compile and self.compiled is not None:
            return self.compiled(*args, **kwargs)
        for each in (backend,) if backend else self.priority:
            if each in self.capabilities and (backend or self.backend_eligible(each, *args, **kwargs)):
                return getattr(self, METHODS[each])(*args, **kwargs)
        return self.forward_native(*args, **kwargs)


def register_fused_op(instance, module, attr):
    for backend in instance.capabilities:
        register_kernel(KernelSpec(instance.op, backend, f"{module}:{attr}.{METHODS[backend]}",
                                   frozenset(instance.capabilities[backend]), instance.format_signature,
                                   instance.descriptions.get(backend, "")))
    return instance


class Fp8ScaledMMOp(BaseFusedOp):
    op = "gemm.fp8_scaled_mm"
    priority = (KernelBackend.AOT, KernelBackend.TORCH)
    capabilities = {KernelBackend.AOT: frozenset({CapabilityRequirement.CUDA})}

    def backend_eligible(self, backend, mat_a, mat_b, scales_a, scales_b, out_dtype, bias=None):
        (m, k), n = mat_a.shape, mat_b.shape[1]
        by_rule = (k >= 5376 and n >= 3584) or (k >= 3584 and m >= 8192)
        return not by_rule and super().backend_eligible(backend)

    def _plain(self, name, mat_a, mat_b, scales_a, scales_b, out_dtype, bias):
        CALLS.append(name)
        out = mat_a.float() @ mat_b.float() * scales_a.view(-1, 1) * scales_b.view(1, -1)
        return (out if bias is None else out + bias.float()).to(out_dtype)

    def forward_native(self, mat_a, mat_b, scales_a, scales_b, out_dtype, bias=None):
        return self._plain("torch", mat_a, mat_b, scales_a, scales_b, out_dtype, bias)

    def forward_aot(self, mat_a, mat_b, scales_a, scales_b, out_dtype, bias=None):
        return self._plain("aot", mat_a, mat_b, scales_a, scales_b, out_dtype, bias)


def _engine_bmm_fp8(A, B, A_scale, B_scale, dtype, out=None):
    CALLS.append("flashinfer")
    return (A.float() @ B.float() * A_scale * B_scale).to(dtype)


def modules():
    """Fresh ones, with the engine's own operators registered."""
    registry.specs.clear()
    get_kernel.cache_clear()
    CALLS.clear()
    gemm = module("sglang.kernels.ops.gemm", Fp8ScaledMMOp=Fp8ScaledMMOp, _engine_bmm_fp8=_engine_bmm_fp8)
    gemm._FP8_SCALED_MM = register_fused_op(Fp8ScaledMMOp(), gemm.__name__, "_FP8_SCALED_MM")
    register_kernel(KernelSpec("gemm.bmm_fp8", KernelBackend.FLASHINFER, gemm.__name__ + ":_engine_bmm_fp8"))
    gemm.fp8_scaled_mm = lambda *args: gemm._FP8_SCALED_MM(*args)
    gemm.bmm_fp8 = lambda *args: get_kernel("gemm.bmm_fp8", KernelBackend.FLASHINFER)(*args)
    return [module("sglang"), module("sglang.kernels"),
            module("sglang.kernels.spec", KernelBackend=KernelBackend, DeviceType=DeviceType, KernelSpec=KernelSpec,
                   CapabilityRequirement=CapabilityRequirement, FormatSignature=FormatSignature),
            module("sglang.kernels.registry", registry=registry, register_kernel=register_kernel),
            module("sglang.kernels.selector", get_kernel=get_kernel, clear_cache=get_kernel.cache_clear),
            module("sglang.kernels.fused_op", BaseFusedOp=BaseFusedOp, register_fused_op=register_fused_op),
            module("sglang.kernels.ops"), gemm]
