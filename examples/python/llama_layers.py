"""The layers of a Llama in decoding, with random weights and the matrix products left to the caller.

Query, key and value are one product, gate and up another, as engines do it. Everything else (norms, rotary positions,
attention by scaled_dot_product_attention over a full cache, residuals) is the same code whoever multiplies.
SPDX-License-Identifier: Apache-2.0
"""
import dataclasses

import torch
from torch.nn import functional as F

import fp8route.torch as ops

EPS = 1e-5


@dataclasses.dataclass(frozen=True)
class Shape:
    """Llama-3.1-8B unless said otherwise."""
    hidden: int = 4096
    inner: int = 14336
    heads: int = 32
    kv_heads: int = 8
    layers: int = 32
    context: int = 512

    @property
    def head(self):
        return self.hidden // self.heads

    def products(self):
        """name -> (N, K) of one layer's products."""
        return {"qkv": ((self.heads + 2 * self.kv_heads) * self.head, self.hidden), "out": (self.hidden, self.hidden),
                "gate_up": (2 * self.inner, self.hidden), "down": (self.hidden, self.inner)}


class Weight:
    """One [N,K] matrix in bf16, and the same in e4m3 with a scale a row."""

    def __init__(self, n, k, device, generator):
        self.full = torch.randn(n, k, device=device, generator=generator, dtype=torch.bfloat16) * k ** -0.5
        self.codes, self.scale = ops.quantize(self.full)
        self.n = n


class Stack:
    def __init__(self, shape, batch_most, device, seed=0):
        generator = torch.Generator(device).manual_seed(seed)
        self.shape = shape
        self.layers = [{name: Weight(n, k, device, generator) for name, (n, k) in shape.products().items()}
                       for _ in range(shape.layers)]
        self.norm = torch.ones(shape.hidden, device=device, dtype=torch.bfloat16)
        self.caches = [torch.randn(2, batch_most, shape.kv_heads, shape.context, shape.head, device=device,
                                   generator=generator, dtype=torch.bfloat16) for _ in range(shape.layers)]
        angle = (shape.context - 1) * 500000.0 ** (-torch.arange(0, shape.head, 2, device=device) / shape.head)
        self.cos = torch.cat([angle.cos(), angle.cos()]).bfloat16()
        self.sin = torch.cat([-angle.sin(), angle.sin()]).bfloat16()

    def _attend(self, qkv, cache):
        """One new token a sequence, at the last position of its cache."""
        shape, batch = self.shape, qkv.shape[0]
        heads = qkv.view(batch, -1, shape.head)
        turned = heads[:, :shape.heads + shape.kv_heads]
        turned = torch.addcmul(turned * self.cos, turned.roll(shape.head // 2, -1), self.sin)
        keys, values = cache[0, :batch], cache[1, :batch]
        keys[:, :, -1] = turned[:, shape.heads:]
        values[:, :, -1] = heads[:, shape.heads + shape.kv_heads:]
        # The query heads that share keys are rows of one attention, so that the cache is read once.
        query = turned[:, :shape.heads].view(batch, shape.kv_heads, -1, shape.head)
        return F.scaled_dot_product_attention(query, keys, values).reshape(batch, shape.hidden)

    def step(self, x, multiply):
        """x [batch, hidden] through all layers. multiply(x, weight) is [batch, N]."""
        for weights, cache in zip(self.layers, self.caches):
            qkv = multiply(F.rms_norm(x, x.shape[-1:], self.norm, EPS), weights["qkv"])
            x = x + multiply(self._attend(qkv, cache), weights["out"])
            gate, up = multiply(F.rms_norm(x, x.shape[-1:], self.norm, EPS), weights["gate_up"]).chunk(2, -1)
            x = x + multiply(F.silu(gate) * up, weights["down"])
        return x


def multiply_bf16(x, weight):
    return F.linear(x, weight.full)


def multiply_fp8route(x, weight):
    codes, scale = ops.quantize(x)
    return ops.linear(codes, weight.codes, weight.scale, x_scale=scale, static_weights=True)


def multiply_torch_rowwise(x, weight):
    """torch's row-wise product behind the same quantiser, so that the product alone makes the difference."""
    codes, scale = ops.quantize(x)
    return torch._scaled_mm(codes, weight.codes.t(), scale, weight.scale.view(1, -1), out_dtype=torch.bfloat16,
                            use_fast_accum=x.is_cuda)


class MultiplyNothing:
    """Stands in for the products: what a step takes without them."""

    def __init__(self, shape, batch_most, device):
        self.blank = {n: torch.zeros(batch_most, n, device=device, dtype=torch.bfloat16)
                      for n, _ in shape.products().values()}

    def __call__(self, x, weight):
        return self.blank[weight.n][:x.shape[0]]


@torch.no_grad()
def worst_product(multiply, x, weight, is_fp8):
    """Largest error of one product over what it may be, against double precision on the same operands. NaN is worst.
    Allowed: bf16's rounding, and 2^-10 of the sum of magnitudes, for the tensor core's short accumulator in FP8 and for
    partial sums that a library keeps in bf16."""
    a, b = x.double(), weight.full.double()
    if is_fp8:
        codes, scale = ops.quantize(x)
        a, b = codes.double() * scale.double().view(-1, 1), weight.codes.double() * weight.scale.double().view(-1, 1)
    exact = a @ b.T
    allowed = 2 ** -8 * exact.abs() + 2 ** -10 * (a.abs() @ b.abs().T)
    share = (multiply(x, weight).double() - exact).abs() / allowed.clamp_min(1e-300)
    return float("inf") if share.isnan().any() else share.max().item()
