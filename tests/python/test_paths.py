"""The compiled path and the Python path of the operators are one: drawn arguments, valid and not, get the same bytes or the
same words from both.

SPDX-License-Identifier: Apache-2.0
"""
import random

import pytest

torch = pytest.importorskip("torch")
import test_agreement as drawn

import fp8route.torch as ft
from fp8route import _operators


def filled(value, draw):
    """Random values where its elements are its own."""
    if isinstance(value, torch.Tensor) and value.numel() and 0 not in value.stride():
        numbers = torch.randn(value.shape, generator=torch.Generator().manual_seed(draw.randrange(1 << 30)))
        if draw.random() < 0.05:
            numbers.view(-1)[0] = draw.choice((float("inf"), float("nan")))
        value.copy_((numbers * 3).nan_to_num_().to(value.dtype) if not value.dtype.is_floating_point else numbers * 3)
    return value


def deeper(values, draw):
    """Now and then one of more dimensions than anything takes."""
    values = list(values)
    at = draw.randrange(len(values))
    if draw.random() < 0.04 and isinstance(values[at], torch.Tensor):
        values[at] = values[at].reshape([*values[at].shape] + [1] * draw.choice((60, 70, 200)))
    return values


def content(value):
    if value is None:
        return []
    values = value if isinstance(value, tuple) else (value,)
    return [(each.shape, each.stride(), each.dtype, bytes(each.contiguous().reshape(-1).view(torch.uint8).tolist()))
            for each in values]


def verdict(function, arguments, keywords):
    keywords = {key: value.clone() if isinstance(value, torch.Tensor) else value for key, value in keywords.items()}
    try:
        result = function(*arguments, **keywords)
    except RuntimeError as error:
        return "refused", str(error)
    return "taken", content(result), [content(value) for value in keywords.values() if isinstance(value, torch.Tensor)]


@pytest.mark.parametrize("seed", range(100, 110))
def test_compiled_and_python_paths_agree(seed):
    if ft.fast_path():
        pytest.skip(f"no compiled path: {ft.fast_path()}")
    draw = random.Random(seed)
    for _ in range(60):
        name, arguments, keywords = (drawn.draw_product if draw.random() < 0.75 else drawn.draw_conversion)(draw, "cpu")
        arguments = deeper([filled(value, draw) for value in arguments], draw)
        fast = verdict(getattr(torch.ops.fp8route, name).default, arguments, keywords)
        slow = verdict(_operators.REAL[name], arguments, keywords)
        shapes = [tuple(each.shape) if isinstance(each, torch.Tensor) else each for each in arguments]
        assert fast == slow, f"{name}{shapes}"


@pytest.mark.parametrize("rank", (65, 100, 5000))
def test_more_dimensions_than_anything_takes_are_refused(rank):
    many = torch.zeros([1] * rank, dtype=torch.bfloat16)
    for function in (torch.ops.fp8route.quantize.default, _operators.REAL["quantize"]):
        with pytest.raises(RuntimeError, match=f"in has rank {rank}"):
            function(many)
    unequal = torch.zeros(4, 3, 32, dtype=torch.uint8).view(torch.float8_e4m3fn)[:, :2]  # rows without one stride
    weight = torch.zeros(32, 16, dtype=torch.uint8).view(torch.float8_e4m3fn)
    with pytest.raises(RuntimeError, match=f"scale_a has rank {rank}"):
        ft.scaled_mm(unequal, weight, many.float())


@pytest.mark.parametrize("shape", ((3, 0), (0, 5), (0, 0), (2, 0, 3)))
def test_scales_of_nothing_are_one(device, shape):
    x = torch.empty(shape, device=device)
    for scaling in ("row", "tensor") + (("column",) if len(shape) == 2 else ()):
        noise = torch.full((64,), -7.0, device=device)  # what a fresh scale may find in memory
        del noise
        scale = ft.quantize(x, scaling)[1]
        assert torch.equal(scale, torch.ones_like(scale)), scaling
        scale = torch.full_like(scale, -7.0)
        ft.quantize_into(x, torch.empty_like(x, dtype=torch.float8_e4m3fn), scale)
        assert torch.equal(scale, torch.ones_like(scale)), scaling


def test_a_negated_view_is_no_place_for_results():
    x = torch.ones(4, 32).to(torch.float8_e4m3fn)
    out = torch._neg_view(torch.empty(4, 4))
    with pytest.raises(RuntimeError, match="negated view"):
        ft.scaled_mm(x, x.t(), out=out)
    scale = torch._neg_view(torch.ones(4, 1))
    with pytest.raises(RuntimeError, match="negated view"):
        ft.quantize_into(torch.ones(4, 32), torch.empty_like(x), scale)
    assert torch.equal(ft.scaled_mm(x, x.t(), scale), -ft.scaled_mm(x, x.t()))  # one that is read is honoured
