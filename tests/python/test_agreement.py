"""Fake and real implementations agree: 500 drawn argument sets, valid and not, get one verdict in the same words, and where
they are taken one shape, one stride, one type.

SPDX-License-Identifier: Apache-2.0
"""
import random

import pytest

torch = pytest.importorskip("torch")
from torch._subclasses.fake_tensor import FakeTensorMode

import fp8route.torch  # noqa: F401 -- defines the operators

OPS = torch.ops.fp8route
FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)
TYPES = FP8 + (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int32)


def mostly(draw, usual, others):
    return draw.choice(others) if draw.random() < 0.12 else usual


def tensor(draw, shape, dtype, device):
    """Of that shape, packed or as a view with other strides."""
    wide = [size + draw.choice((0, 3)) for size in shape]
    made = torch.zeros(wide if draw.random() < 0.4 else shape, dtype=torch.uint8, device=device).to(dtype)
    for dimension, size in enumerate(shape):
        made = made.narrow(dimension, 0, size)
    if len(shape) >= 2 and draw.random() < 0.3:
        order = list(range(len(shape)))
        draw.shuffle(order)
        made = made.permute(order).contiguous().permute([order.index(i) for i in range(len(shape))])
    if shape and draw.random() < 0.05:
        made = made[..., :1].expand(shape) if shape[-1] > 1 else made
    return made


def wrong_shape(draw, shape):
    shape = list(shape)
    if draw.random() < 0.5 and shape:
        at = draw.randrange(len(shape))
        shape[at] = max(0, shape[at] + draw.choice((-1, 1, 2)))
    elif draw.random() < 0.5:
        shape.append(1)
    else:
        shape = shape[:-1]
    return shape


def shaped(draw, shape):
    return wrong_shape(draw, shape) if draw.random() < 0.08 else list(shape)


def factor(draw, choices, device):
    if draw.random() < 0.3:
        return None
    return tensor(draw, shaped(draw, draw.choice(choices)), mostly(draw, torch.float32, TYPES), device)


def draw_product(draw, device):
    """Operator, arguments, keywords."""
    name = draw.choice(("scaled_mm", "scaled_mm_out", "bmm", "bmm_out", "linear"))
    m, n, k, batch = (draw.choice((0, 1, 2, 3, 8, 17)) for _ in range(4))
    is_deep, is_linear = name.startswith("bmm"), name == "linear"
    lead = [batch, m] if is_deep else draw.choice(([m], [batch, m], [2, batch, m], []))
    rows = 1
    for size in lead:
        rows *= size
    a = tensor(draw, shaped(draw, lead + [k]), mostly(draw, draw.choice(FP8 + (torch.bfloat16,)), TYPES), device)
    b_shape = [draw.choice((batch, 1)), k, n] if is_deep else [n, k] if is_linear else [k, n]
    b = tensor(draw, shaped(draw, b_shape), mostly(draw, torch.float8_e4m3fn, TYPES), device)
    if is_deep:
        scale_a = factor(draw, ([], [1], [1, 1, 1], [batch, m, 1], [1, m, 1], [batch, 1, 1]), device)
        scale_b = factor(draw, ([], [1], [1, 1, 1], [batch, 1, n], [1, 1, n], [batch, 1, 1]), device)
        bias_shapes = ([n], [batch, 1, n], [1, 1, n])
    else:
        scale_a = factor(draw, ([], [1], [1, 1], lead + [1], lead, [rows], [rows, 1]), device)
        scale_b = factor(draw, ([], [1], [1, 1], [n], [1, n], [n, 1]), device)
        bias_shapes = ([n], [1, n])
    bias = factor(draw, bias_shapes, device)
    if bias is not None and draw.random() < 0.5:
        bias = bias.to(torch.bfloat16)
    if a.dtype not in FP8 and draw.random() < 0.9:
        scale_a = None
    modes = {"precise": draw.random() < 0.3, "static_weights": draw.random() < 0.3}
    if name.endswith("_out"):
        shape = lead + [n]
        if is_deep and a.dim() == 3 and b.dim() == 3 and a.shape[0] == 1:
            shape[0] = b.shape[0]
        out = tensor(draw, shaped(draw, shape), mostly(draw, torch.bfloat16, TYPES), device)
        return name, (a, b, scale_a, scale_b, bias), dict(modes, out=out)
    out_dtype = mostly(draw, draw.choice((None, torch.float16, torch.float32)), TYPES)
    if is_linear:
        return name, (a, b, scale_b, bias, scale_a, out_dtype), modes
    return name, (a, b, scale_a, scale_b, bias, out_dtype), modes


def draw_conversion(draw, device):
    lead = draw.choice(([], [0], [3], [2, 3], [2, 0, 3]))
    columns = draw.choice((0, 1, 5, 16))
    shape = lead + [columns] if draw.random() < 0.95 else []
    x = tensor(draw, shape, mostly(draw, draw.choice((torch.bfloat16, torch.float32)), TYPES), device)
    name = draw.choice(("quantize", "quantize_out", "quantize_given", "quantize_given_out"))
    if name == "quantize":
        return name, (x, draw.choice((0, 0, 1, 2, 3))), {}
    scale = tensor(draw, shaped(draw, draw.choice((lead + [1], lead, [1], [1, columns]))),
                   mostly(draw, torch.float32, TYPES), device).fill_(1)
    out = tensor(draw, shaped(draw, shape), mostly(draw, torch.float8_e4m3fn, TYPES), device)
    if name == "quantize_given":
        return name, (x, scale), {}
    return (name, (x,), {"out": out, "scale": scale}) if name == "quantize_out" else (name, (x, scale), {"out": out})


def verdict(name, arguments, keywords):
    try:
        results = getattr(OPS, name).default(*arguments, **keywords)
    except RuntimeError as error:
        return "refused", str(error)
    results = results if isinstance(results, tuple) else () if results is None else (results,)
    return "taken", [(tuple(each.shape), each.stride(), each.dtype, str(each.device)) for each in results]


def faked(mode, values):
    return [mode.from_tensor(value) if isinstance(value, torch.Tensor) else value for value in values]


def overlaps(word):
    """A fake tensor has no address, so that it cannot know this one."""
    return "in memory" in word


@pytest.mark.parametrize("seed", range(10))
def test_fake_and_real_agree(device, seed):
    draw = random.Random(seed)
    taken = 0
    for _ in range(50):
        name, arguments, keywords = (draw_product if draw.random() < 0.75 else draw_conversion)(draw, device)
        real = verdict(name, arguments, keywords)
        mode = FakeTensorMode()
        with mode:
            fake = verdict(name, faked(mode, arguments), dict(zip(keywords, faked(mode, keywords.values()))))
        if real[0] == "refused" and overlaps(real[1]):
            continue
        shapes = [tuple(each.shape) if isinstance(each, torch.Tensor) else each for each in arguments]
        assert fake == real, f"{name}{shapes}: fake {fake}, real {real}"
        taken += real[0] == "taken"
    assert 10 <= taken <= 45, f"{taken} of 50 were taken: the draw says little"
