"""Operands of real range, and what a product must come to: computed in double, each element with its own bound.

SPDX-License-Identifier: Apache-2.0
"""
import torch

ANY_ROW = {"cpu": "reference:double", "cuda": "cuda"}  # takes every layout and size
HALF_ULP = {torch.bfloat16: 2.0 ** -8, torch.float16: 2.0 ** -11, torch.float32: 2.0 ** -24}


def codes(*shape, device="cpu", dtype=torch.float8_e4m3fn, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype).to(device)


def scales(*shape, device="cpu", seed=1):
    """Different in every place."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(*shape, generator=generator) * 0.9 + 0.1).to(device)


def product(m, n, k, device="cpu", rows=True, seed=0):
    """a, b (column-major), scale_a, scale_b."""
    a = codes(m, k, device=device, seed=seed)
    b = codes(n, k, device=device, seed=seed + 1).t()
    if rows:
        return a, b, scales(m, 1, device=device, seed=seed + 2), scales(1, n, device=device, seed=seed + 3)
    return a, b, scales(1, device=device, seed=seed + 2), scales(1, device=device, seed=seed + 3)


def expected(a, b, scale_a=None, scale_b=None, bias=None):
    """The exact result, and the sum of magnitudes that bounds the error of adding up."""
    left, right = a.double().cpu(), b.double().cpu()
    exact, size = left @ right, left.abs() @ right.abs()
    for scale in (scale_b, scale_a):
        if scale is not None:
            exact, size = exact * scale.double().cpu(), size * scale.double().cpu()
    if bias is not None:
        exact, size = exact + bias.double().cpu(), size + bias.double().cpu().abs()
    return exact, size


def assert_close(out, exact, size, accumulation=2.0 ** -12):
    """Element by element: accumulation error in proportion to the magnitudes, then one rounding. NaN is never close."""
    assert out.shape == exact.shape
    error = (out.double().cpu() - exact).abs()
    bound = size * accumulation + exact.abs() * HALF_ULP[out.dtype] + 1e-7
    bad = ~(error <= bound)
    assert not bad.any(), f"{int(bad.sum())} of {bad.numel()} elements are off, the worst by {float(error.max()):.3g}"


def quantised(x, dim=-1):
    """Codes and scales of rows (or of all, dim None) as they must be: in fp32 on a CPU, whatever the device of x."""
    values = x.float().cpu()
    amax = values.abs().max() if dim is None else values.abs().amax(dim, keepdim=True)
    scale = torch.where(amax == 0, torch.ones_like(amax), torch.clamp(amax / 448, min=2.0 ** -126))
    return (values * (1 / scale)).clamp(-448, 448).to(torch.float8_e4m3fn), scale
