"""fp8route as a linear kernel of vLLM: two classes for its list of FP8 kernels, and the function that puts one there.

Fp8RouteScaledMMLinearKernel multiplies what vLLM has quantised, so that vLLM's fusions of norm and quantising go on.
Fp8RouteLinearKernel takes bf16 or fp16 activations and quantises a token itself, in one call with the product.

As a plugin: entry point `fp8route = vllm_kernel:register` in the group `vllm.general_plugins`, which vLLM calls in every
process that it starts. SPDX-License-Identifier: Apache-2.0
"""
import torch

import fp8route
import fp8route.torch as ops
from vllm import envs
from vllm.model_executor.kernels import linear
from vllm.model_executor.kernels.linear import FP8ScaledMMLinearKernel, register_linear_kernel
from vllm.platforms import current_platform

PER_TENSOR, PER_TOKEN, PER_CHANNEL = (-1, -1), (1, -1), (-1, 1)
ROWS = (1, 64, 1024, 16384)  # tokens a step for which a layer must be runnable
OPTION = {torch.bfloat16: "", torch.float16: ":fp16"}


def _device():
    return f"cuda:{torch.cuda.current_device()}" if current_platform.is_cuda() else "cpu"


def _group(key):
    return key.scale.group_shape[0], key.scale.group_shape[1]


def _refusal(n, k, options):
    """Why no backend takes [N,K] at some number of tokens, or None."""
    for m in ROWS:
        explanation = fp8route.explain(f"{m}x{n}x{k}:static{options}", _device())
        if explanation.chosen is None:
            return "; ".join(f"{row.backend}: {row.sentence}" for row in explanation.candidates)
    return None


class Fp8RouteScaledMMLinearKernel(FP8ScaledMMLinearKernel):
    @classmethod
    def is_supported(cls, compute_capability=None):
        if not (current_platform.is_cuda() or current_platform.is_cpu()):
            return False, "runs on CUDA devices and CPUs"
        try:
            fp8route.backends(_device())
        except fp8route.Error as error:
            return False, str(error)
        return True, None

    @classmethod
    def can_implement(cls, c):
        weight, activation = c.weight_quant_key, c.activation_quant_key
        if {weight.dtype, activation.dtype} != {torch.float8_e4m3fn}:
            return False, f"takes float8_e4m3fn, not {weight.dtype} and {activation.dtype}"
        if _group(activation) not in (PER_TENSOR, PER_TOKEN):
            return False, "takes activations scaled a tensor or a token"
        if _group(weight) not in (PER_TENSOR, PER_TOKEN, PER_CHANNEL):
            return False, "takes weights scaled a tensor or a channel"
        if c.out_dtype not in OPTION:
            return False, f"writes bfloat16 and float16, not {c.out_dtype}"
        options = OPTION[c.out_dtype] + (":sa=tensor" if _group(activation) == PER_TENSOR else "")
        options += (":sb=tensor" if _group(weight) == PER_TENSOR else "") + (":invariant" if envs.VLLM_BATCH_INVARIANT else "")
        refusal = _refusal(*c.weight_shape, options)
        return refusal is None, refusal

    def apply_scaled_mm(self, *, A, B, out_dtype, As, Bs, bias, output_shape):
        # B [K,N] is the transposed view of the checkpoint's [N,K]; Bs comes as [N,1], [N], or one element.
        out = ops.scaled_mm(A, B, As, Bs.reshape(-1), bias, out_dtype, invariant=envs.VLLM_BATCH_INVARIANT,
                            static_weights=True)
        return out.view(*output_shape)


class Fp8RouteLinearKernel(Fp8RouteScaledMMLinearKernel):
    @classmethod
    def can_implement(cls, c):
        if c.activation_quant_key.scale.static or _group(c.activation_quant_key) != PER_TOKEN:
            return False, "quantises activations a token, with scales it computes"
        if c.input_dtype not in OPTION:
            return False, f"reads bfloat16 and float16, not {c.input_dtype}"
        return super().can_implement(c)

    def apply_weights(self, layer, x, bias=None):
        weight, weight_scale, _, upper_bound = self._get_layer_params(layer)
        if upper_bound is not None or not isinstance(x, torch.Tensor) or x.dtype not in OPTION:
            return super().apply_weights(layer, x, bias)  # quantised already, or by a rule that is not ours
        return ops.linear(x, weight.t(), weight_scale, bias, out_dtype=self.config.out_dtype,
                          invariant=envs.VLLM_BATCH_INVARIANT, static_weights=True)


def register(first=True, quantises=False):
    """Puts a kernel into the list of this platform: before all others, or behind them, where it is taken only if they
    refuse or are disabled. Doing it twice does nothing more: vLLM may load a plugin twice."""
    kernel = Fp8RouteLinearKernel if quantises else Fp8RouteScaledMMLinearKernel
    platform = current_platform._enum
    if kernel in linear._POSSIBLE_FP8_KERNELS.get(platform, ()):
        return kernel
    register_linear_kernel(kernel, platform, "fp8")  # appends: the list is in order of preference
    kernels = linear._POSSIBLE_FP8_KERNELS[platform]
    if first:
        kernels.insert(0, kernels.pop())
    return kernel
