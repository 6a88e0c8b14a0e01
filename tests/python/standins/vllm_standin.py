"""Stands in for the parts of vLLM around its linear kernels: the names and signatures that a kernel of its list meets, with
as little behind them as choosing and calling need. SPDX-License-Identifier: Apache-2.0
"""
import abc
import dataclasses
import enum
import typing

import torch

from standins.modules import module


class PlatformEnum(enum.Enum):
    CUDA = enum.auto()
    CPU = enum.auto()
    ROCM = enum.auto()


class Platform:
    def __init__(self, platform):
        self._enum = platform

    def is_cuda(self):
        return self._enum is PlatformEnum.CUDA

    def is_cpu(self):
        return self._enum is PlatformEnum.CPU

    def get_device_capability(self):
        return None


class GroupShape(typing.NamedTuple):
    row: int
    col: int


@dataclasses.dataclass(frozen=True)
class ScaleDesc:
    dtype: torch.dtype
    static: bool
    group_shape: GroupShape


@dataclasses.dataclass(frozen=True)
class QuantKey:
    dtype: torch.dtype
    scale: ScaleDesc
    scale2: ScaleDesc = None
    symmetric: bool = True


def fp8_key(static, row, col):
    return QuantKey(torch.float8_e4m3fn, ScaleDesc(torch.float32, static, GroupShape(row, col)))


@dataclasses.dataclass
class FP8ScaledMMLinearLayerConfig:
    weight_quant_key: QuantKey
    activation_quant_key: QuantKey
    weight_shape: tuple
    input_dtype: torch.dtype
    out_dtype: torch.dtype


class FP8ScaledMMLinearKernel(abc.ABC):
    def __init__(self, c, layer_param_names):
        assert self.can_implement(c)[0] and self.is_supported()[0]
        self.config, self.layer_param_names = c, layer_param_names

    @classmethod
    @abc.abstractmethod
    def is_supported(cls, compute_capability=None):
        """(whether, why not)"""

    @classmethod
    @abc.abstractmethod
    def can_implement(cls, c):
        """(whether, why not)"""

    def process_weights_after_loading(self, layer):
        pass

    def _get_layer_params(self, layer):
        weight, scale, *rest = self.layer_param_names
        return getattr(layer, weight), getattr(layer, scale), *(getattr(layer, name, None) for name in rest)

    def apply_weights(self, layer, x, bias=None):
        weight, weight_scale, scale, _ = self._get_layer_params(layer)
        rows = x.view(-1, x.shape[-1])
        if scale is None:
            scale = rows.float().abs().amax(1, keepdim=True) / 448
            if self.config.activation_quant_key.scale.group_shape.row == -1:
                scale = scale.amax()
        codes = (rows.float() / scale).to(torch.float8_e4m3fn)
        return self.apply_scaled_mm(A=codes, B=weight, out_dtype=self.config.out_dtype, As=scale, Bs=weight_scale, bias=bias,
                                    output_shape=[*x.shape[:-1], weight.shape[1]])

    @abc.abstractmethod
    def apply_scaled_mm(self, *, A, B, out_dtype, As, Bs, bias, output_shape):
        """The product."""


class EngineKernel(FP8ScaledMMLinearKernel):
    """One of the engine's own, first in its list."""

    @classmethod
    def is_supported(cls, compute_capability=None):
        return True, None

    @classmethod
    def can_implement(cls, c):
        return True, None

    def apply_scaled_mm(self, *, A, B, out_dtype, As, Bs, bias, output_shape):
        raise AssertionError("the engine's own kernel ran")


def modules(platform="CPU"):
    """Fresh ones, with one kernel of the engine's own for every platform."""
    current = Platform(PlatformEnum[platform])
    kernels = {each: [EngineKernel] for each in PlatformEnum}
    envs = module("vllm.envs", VLLM_BATCH_INVARIANT=False, VLLM_DISABLED_KERNELS=[])

    def register_linear_kernel(kernel_class, platform, kernel_type="mp"):
        if kernel_type != "fp8":
            raise ValueError(f"Unrecognized kernel type: {kernel_type}")
        kernels.setdefault(platform, []).append(kernel_class)

    def init_fp8_linear_kernel(activation_quant_key, weight_quant_key, input_dtype, out_dtype, weight_shape,
                               force_kernel=None, module_name=None):
        config = FP8ScaledMMLinearLayerConfig(weight_quant_key, activation_quant_key, weight_shape, input_dtype, out_dtype)
        reasons = []
        for kernel in [force_kernel] if force_kernel else kernels[current._enum]:
            for does, reason in ((kernel.__name__ not in envs.VLLM_DISABLED_KERNELS, "is disabled by environment variable"),
                                 kernel.is_supported(None), kernel.can_implement(config)):
                if not does:
                    reasons.append(f"{kernel.__name__} {reason}.")
                    break
            else:
                return kernel(config, layer_param_names=["weight", "weight_scale", "input_scale", "input_scale_ub"])
        raise ValueError("Failed to find a kernel that can implement the ScaledMM linear layer. Reasons: \n" + "\n".join(reasons))

    linear = module("vllm.model_executor.kernels.linear", FP8ScaledMMLinearKernel=FP8ScaledMMLinearKernel,
                    _POSSIBLE_FP8_KERNELS=kernels, register_linear_kernel=register_linear_kernel,
                    init_fp8_linear_kernel=init_fp8_linear_kernel)
    return [module("vllm"), envs, module("vllm.platforms", PlatformEnum=PlatformEnum, current_platform=current),
            module("vllm.model_executor"), module("vllm.model_executor.kernels"), linear]
