"""The operators in eager mode: values, layouts, shapes, types, streams, devices.

SPDX-License-Identifier: Apache-2.0
"""
import itertools
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import fp8route
import fp8route.torch as ft
from operands import assert_close, codes, expected, product, quantised, scales

WIDE = (torch.bfloat16, torch.float16, torch.float32)


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("shape", [(1, 256, 512), (7, 40, 100), (33, 17, 15), (128, 128, 256)])
def test_scaled_mm(device, shape, rows):
    a, b, scale_a, scale_b = product(*shape, device=device, rows=rows)
    for out_dtype in WIDE:
        out = ft.scaled_mm(a, b, scale_a, scale_b, out_dtype=out_dtype)
        assert out.dtype == out_dtype and out.device == a.device and out.is_contiguous()
        assert_close(out, *expected(a, b, scale_a, scale_b))


def test_every_bias_with_every_result(device):
    a, b, scale_a, scale_b = product(5, 24, 64, device=device)
    for out_dtype, bias_dtype in itertools.product(WIDE, WIDE):
        bias = (scales(24, device=device) * 3).to(bias_dtype)
        out = ft.scaled_mm(a, b, scale_a, scale_b, bias, out_dtype)
        assert_close(out, *expected(a, b, scale_a, scale_b, bias))


def test_all_forms_of_one_scale_are_equal(device):
    a, b, _, _ = product(3, 32, 32, device=device)
    forms = [(), (1,), (1, 1), (1, 1, 1)]
    results = [ft.scaled_mm(a, b, torch.full(first, 0.5, device=device), torch.full(second, 0.25, device=device))
               for first, second in itertools.product(forms, forms)]
    assert all(torch.equal(result, results[0]) for result in results)


def test_four_layouts_are_one_product(device):
    a, b, scale_a, scale_b = product(16, 24, 32, device=device)
    results = [ft.scaled_mm(left, right, scale_a, scale_b, out_dtype=torch.float32)
               for left, right in itertools.product((a, a.t().contiguous().t()), (b, b.contiguous()))]
    for result in results:
        assert_close(result, *expected(a, b, scale_a, scale_b))


def test_strides_are_honoured(device):
    a = codes(6, 64, device=device)[::2, 16:48]
    b = codes(80, 40, device=device, seed=3)[10:42, ::2]
    scale_a = scales(3, 2, device=device)[:, :1]
    out = torch.full((3, 44), -7.0, dtype=torch.float32, device=device)
    result = ft.scaled_mm(a, b, scale_a, None, out=out[:, 1:21])
    assert result.data_ptr() == out[:, 1:].data_ptr()
    assert_close(result, *expected(a, b, scale_a))
    assert (out[:, 0] == -7).all() and (out[:, 21:] == -7).all()


def test_leading_dimensions(device):
    weight, weight_scale = codes(24, 64, device=device, seed=5), scales(24, 1, device=device)
    for shape in ((64,), (3, 64), (2, 3, 64), (2, 1, 3, 64), (0, 64), (2, 0, 64)):
        x = torch.randn(*shape, device=device).bfloat16()
        out = ft.linear(x, weight, weight_scale)
        assert out.shape == torch.nn.functional.linear(x, weight.bfloat16()).shape
        codes_x, scale_x = ft.quantize(x)
        torch.testing.assert_close(out, ft.linear(codes_x, weight, weight_scale, x_scale=scale_x), rtol=2e-2, atol=1e-2)
    x = torch.randn(3, 4, 64, device=device).bfloat16().transpose(0, 1)  # rows without a common stride: copied
    torch.testing.assert_close(ft.linear(x, weight, weight_scale), ft.linear(x.contiguous(), weight, weight_scale),
                               rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", (torch.float64, torch.int8))
def test_linear_refuses_by_naming_all_that_it_takes(device, dtype):
    weight, scale = ft.quantize(torch.randn(8, 16, device=device))
    with pytest.raises(RuntimeError, match=f"^x.dtype is {dtype}: it must be e4m3, e5m2, bf16, fp16 or fp32$"):
        ft.linear(torch.ones(2, 16, device=device, dtype=dtype), weight, scale)
    for taken in (torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16, torch.float16, torch.float32):
        assert ft.linear(torch.ones(2, 16, device=device).to(taken), weight, scale).shape == (2, 8)


def test_linear_types(device):
    weight, weight_scale = ft.quantize(torch.randn(48, 96, device=device))
    bias = torch.randn(48, device=device)
    for dtype in WIDE:
        x = torch.randn(5, 96, device=device).to(dtype)
        out = ft.linear(x, weight, weight_scale, bias)
        exact = torch.nn.functional.linear(x.double(), weight.double() * weight_scale.double(), bias.double())
        assert out.dtype == dtype
        assert ((out.double() - exact).abs() / exact.abs().mean()).max() < 0.5
        assert torch.nn.functional.cosine_similarity(out.double().flatten(), exact.flatten(), dim=0) > 0.998


def test_empty_sizes_as_torch_mm(device):
    for m, n, k in ((0, 16, 32), (16, 0, 32), (16, 16, 0), (0, 0, 0)):
        a, b = codes(m, k, device=device), codes(n, k, device=device).t()
        for scale_a, scale_b in ((None, None), (scales(1, device=device), scales(1, device=device)),
                                 (scales(m, 1, device=device), scales(1, n, device=device))):
            out = ft.scaled_mm(a, b, scale_a, scale_b)
            assert out.shape == (m, n) and (out == 0).all()
            bias = torch.ones(n, device=device)
            assert (ft.scaled_mm(a, b, scale_a, scale_b, bias) == 1).all()


def test_bmm(device):
    a, b = codes(3, 5, 64, device=device), codes(3, 24, 64, device=device, seed=2).transpose(1, 2)
    for scale_a, scale_b in ((scales(1, device=device), scales(1, device=device)),
                             (scales(3, 5, 1, device=device), scales(3, 1, 24, device=device)),
                             (scales(3, 1, 1, device=device), scales(1, 1, 24, device=device))):
        out = ft.bmm(a, b, scale_a, scale_b)
        assert_close(out, *expected(a, b, scale_a, scale_b))
    out = torch.empty(5, 3, 24, dtype=torch.float16, device=device).transpose(0, 1)
    assert_close(ft.bmm(a, b, out=out), *expected(a, b))


def test_quantize(device):
    x = torch.randn(4, 7, 33, device=device) * 5
    x[1, 2] = 0
    for dtype in WIDE:
        q, scale = ft.quantize(x.to(dtype))
        assert q.dtype == torch.float8_e4m3fn and scale.shape == (4, 7, 1)
        wanted, wanted_scale = quantised(x.to(dtype))
        assert torch.equal(scale.cpu(), wanted_scale)
        assert torch.equal(q.float().cpu(), wanted.float())
        given, same = ft.quantize(x.to(dtype), scale=scale)
        assert same is scale and torch.equal(given.view(torch.uint8), q.view(torch.uint8))
    matrix = x[0]
    assert ft.quantize(matrix, "tensor")[1].shape == (1,)
    assert ft.quantize(matrix, "column")[1].shape == (1, 33)
    out = torch.empty(7, 40, dtype=torch.float8_e4m3fn, device=device)[:, :33]
    q, scale = ft.quantize(matrix, out=out)
    assert q is out and torch.equal(q.view(torch.uint8), ft.quantize(matrix)[0].view(torch.uint8))


def test_refusals_name_the_argument(device):
    a, b, scale_a, scale_b = product(4, 16, 32, device=device)
    for call, words in (
            (lambda: ft.scaled_mm(a, b[:16], scale_a, scale_b), r"b has shape \[16, 16\], a \[4, 32\]: it must have 32 rows"),
            (lambda: ft.scaled_mm(a, b, scale_a.bfloat16(), scale_b), "scale_a.dtype is bf16"),
            (lambda: ft.scaled_mm(a, b, scale_a.double(), scale_b), "scale_a.dtype is unknown"),
            (lambda: ft.scaled_mm(a, b.to(torch.float8_e5m2), scale_a, scale_b), "b.dtype is e5m2"),
            (lambda: ft.scaled_mm(a, b, scale_a[:3], scale_b), r"scale_a has shape \[3, 1\]"),
            (lambda: ft.scaled_mm(a, b, out_dtype=torch.float8_e4m3fn), "out.dtype is e4m3"),
            (lambda: ft.scaled_mm(a, b, out=torch.empty(1, 16, device=device).expand(4, 16)), "out's strides"),
            (lambda: ft.linear(a.double(), b.t()), "x.dtype is torch.float64"),
            (lambda: ft.linear(a, b), r"weight has shape \[32, 16\], x \[4, 32\]: it must have 32 columns"),
            (lambda: ft.linear(a.float(), b.t(), x_scale=scale_a), "x_scale is given, but x is torch.float32"),
            (lambda: ft.quantize(a), "in.dtype is e4m3"),
            (lambda: torch.ops.fp8route.quantize(scale_a, 3), "groups is 3")):
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.raises(RuntimeError, match="out is torch.float32, out_dtype torch.bfloat16"):
        ft.scaled_mm(a, b, out=torch.empty(4, 16, device=device), out_dtype=torch.bfloat16)


def test_operands_of_two_devices_are_refused(cuda):
    a, b, scale_a, scale_b = product(4, 16, 32, device=cuda)
    with pytest.raises(RuntimeError, match="scale_a is on cpu, a on cuda:0"):
        ft.scaled_mm(a, b, scale_a.cpu(), scale_b)


def test_inference_mode_and_no_gradient(device):
    a, b, scale_a, scale_b = product(4, 16, 32, device=device)
    plain = ft.scaled_mm(a, b, scale_a, scale_b)
    with torch.inference_mode():
        assert torch.equal(ft.scaled_mm(a, b, scale_a, scale_b), plain)
        layer = ft.Linear.from_float(torch.nn.Linear(32, 16).to(device))
        assert layer(torch.randn(2, 32, device=device).bfloat16()).is_inference()


def test_threads(device):
    """Many threads, one context: every result is the one of a single thread."""
    from concurrent.futures import ThreadPoolExecutor
    cases = [product(m, 48, 96, device=device, seed=m) for m in range(1, 9)]
    wanted = [ft.scaled_mm(*case) for case in cases]

    def work(number):
        return all(torch.equal(ft.scaled_mm(*cases[i % 8]), wanted[i % 8]) for i in range(number, number + 200))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_layers_are_replaced(device):
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(96, 32))).to(device)
    x = torch.randn(8, 64, device=device)
    before = model(x)
    assert ft.quantize_linears(model, lambda name, layer: True) == 2
    after = model(x)
    assert after.dtype == before.dtype
    assert torch.nn.functional.cosine_similarity(before, after).min() > 0.99
    codes, scale = model[0].weight.clone(), model[0].weight_scale.clone()
    for dtype in (torch.bfloat16, torch.float16):  # which would make bf16 weights of codes
        model.to(dtype)
        assert model[0].bias.dtype == dtype and model(x.to(dtype)).dtype == dtype
    assert torch.equal(model[0].weight.view(torch.uint8), codes.view(torch.uint8)) and torch.equal(model[0].weight_scale, scale)


def test_side_stream(cuda):
    a, b, scale_a, scale_b = product(16, 4096, 4096, device=cuda)
    plain = ft.scaled_mm(a, b, scale_a, scale_b)
    late = torch.zeros_like(a)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        late.copy_(a)
        out = ft.scaled_mm(late, b, scale_a, scale_b)
    stream.synchronize()
    assert torch.equal(out, plain)


def test_capture(cuda):
    a, b, scale_a, scale_b = product(16, 1024, 2048, device=cuda)
    x, w, s = torch.randn(4, 2048, device=cuda).bfloat16(), *ft.quantize(torch.randn(512, 2048, device=cuda))
    plain = ft.scaled_mm(a, b, scale_a, scale_b), ft.linear(x, w, s)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = ft.scaled_mm(a, b, scale_a, scale_b), ft.linear(x, w, s)
    for result in out:
        result.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out[0], plain[0])
    torch.testing.assert_close(out[1], plain[1], rtol=2e-2, atol=1e-2)  # maybe in another kernel: x is quantised before


def replayed(function):
    """The results of a call captured on the current device, overwritten and computed again by the graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream()):  # torch's own choice is a stream of the first device that captured
        results = function()
    for result in results:
        result.view(torch.uint8).fill_(0x7f)
    graph.replay()
    torch.cuda.synchronize()
    return results


def test_capture_of_what_never_ran(cuda):
    """Nothing was planned before: the choice is then made among what needs no workspace and asks no library."""
    ft.quantize(torch.ones(1, 16, device=cuda))  # the context is there
    a, b, scale_a, scale_b = product(24, 528, 1040, device=cuda)
    one, bias = scales(1, device=cuda), scales(528, device=cuda).bfloat16()
    a3, b3 = codes(3, 5, 208, device=cuda), codes(3, 80, 208, device=cuda, seed=2).transpose(1, 2)
    for call, wanted in (
            (lambda: ft.scaled_mm(a, b, scale_a, scale_b, static_weights=True), (a, b, scale_a, scale_b)),
            (lambda: ft.scaled_mm(a, b, scale_a, scale_b, bias, torch.float16, precise=True), (a, b, scale_a, scale_b, bias)),
            (lambda: ft.scaled_mm(a, b.contiguous(), one, one), (a, b, one, one)),
            (lambda: ft.scaled_mm(a[:, :7], b[:7], one, one, out_dtype=torch.float32), (a[:, :7], b[:7], one, one)),
            (lambda: ft.bmm(a3, b3, one, one), (a3, b3, one, one))):
        assert_close(replayed(lambda: [call()])[0], *expected(*wanted))
    x, weight, weight_scale = torch.randn(6, 1040, device=cuda), b.t(), scale_b.view(-1)
    for dtype in WIDE:
        out = replayed(lambda: [ft.linear(x.to(dtype), weight, weight_scale, static_weights=True)])[0]
        q, scale = ft.quantize(x.to(dtype))
        assert_close(out, *expected(q, b, scale, scale_b))
    for scaling in ("row", "tensor", "column"):
        for found, wanted in zip(replayed(lambda: ft.quantize(x, scaling)), ft.quantize(x, scaling)):
            assert torch.equal(found.view(torch.uint8), wanted.view(torch.uint8))


@pytest.fixture
def second(cuda):
    if torch.cuda.device_count() < 2:
        pytest.skip("one CUDA device")
    return "cuda:1"


def test_another_device_than_the_current_one(second):
    a, b, scale_a, scale_b = product(16, 256, 512, device=second)
    out = ft.scaled_mm(a, b, scale_a, scale_b)
    assert torch.cuda.current_device() == 0 and out.device == a.device
    assert_close(out, *expected(a, b, scale_a, scale_b))
    with pytest.raises(RuntimeError):
        ft.scaled_mm(a, b[:3], scale_a, scale_b)
    with pytest.raises(RuntimeError, match="b is on cuda:0, a on cuda:1"):
        ft.scaled_mm(a, b.to("cuda:0"), scale_a, scale_b)
    assert torch.cuda.current_device() == 0


def test_every_operator_on_another_device(second):
    """The same bytes as on the first, from a thread of its own, too; streams and captures are the tensors' device's."""
    from concurrent.futures import ThreadPoolExecutor
    x, weight = torch.randn(6, 512), torch.randn(256, 512)

    def work(device):
        q, scale = ft.quantize(x.to(device).bfloat16())
        w, s = ft.quantize(weight.to(device))
        results = [q, scale, ft.linear(x.to(device).bfloat16(), w, s), ft.scaled_mm(q, w.t(), scale, s, static_weights=True),
                   ft.bmm(q[None], w.t()[None]), ft.scaled_mm(q[:, :35], w.t()[:35], scale, s)]
        torch.cuda.synchronize(device)
        assert torch.cuda.current_device() == 0 and all(each.device == torch.device(device) for each in results)
        return [each.cpu().view(torch.uint8) for each in results]

    wanted, found = work("cuda:0"), work(second)
    with ThreadPoolExecutor(1) as pool:
        for one, other, third in zip(wanted, found, pool.submit(work, second).result()):
            assert torch.equal(one, other) and torch.equal(one, third)
    a, b, scale_a, scale_b = product(16, 256, 512, device=second)
    plain = ft.scaled_mm(a, b, scale_a, scale_b)
    stream = torch.cuda.Stream(second)
    stream.wait_stream(torch.cuda.current_stream(second))
    with torch.cuda.stream(stream):
        beside = ft.scaled_mm(a, b, scale_a, scale_b)
    stream.synchronize()
    assert torch.equal(beside, plain)
    with torch.cuda.device(second):
        assert torch.equal(replayed(lambda: [ft.scaled_mm(a, b, scale_a, scale_b)])[0], plain)
    assert torch.cuda.current_device() == 0


def test_same_bytes_on_both_devices(cuda):
    x = torch.randn(64, 1000) * 3
    for dtype, scaling in itertools.product(WIDE, ("row", "tensor", "column")):
        here, there = ft.quantize(x.to(dtype), scaling), ft.quantize(x.to(dtype).to(cuda), scaling)
        assert torch.equal(here[0].view(torch.uint8), there[0].cpu().view(torch.uint8))
        assert torch.equal(here[1], there[1].cpu())


@pytest.mark.parametrize("first", ["torch", "fp8route"])
def test_either_is_imported_first(device, first):
    second = "fp8route" if first == "torch" else "torch"
    code = (f"import {first}, {second}, torch, fp8route.torch as ft\n"
            f"import fp8route; fp8route.explain('1x64x64', '{device}')\n"
            f"q, s = ft.quantize(torch.randn(32, 64, device='{device}'))\n"
            "assert ft.scaled_mm(q, q.t(), s, s.t()).shape == (32, 32)\n"
            f"assert torch.randn(8, 8, device='{device}').mm(torch.ones(8, 8, device='{device}')).shape == (8, 8)\n")
    environment = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(fp8route.__file__)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


def test_python_path_is_the_same(device):
    """The operators without the compiled path: this file and the drawn arguments once more, in a process of its own."""
    if os.environ.get("FP8ROUTE_TORCH_EXTENSION") == "0":
        assert ft.fast_path() == "switched off"
        pytest.skip("this is that process")
    assert ft.fast_path() == "", "the compiled path is not in use"
    if device == "cuda":
        pytest.skip("the process runs both devices")
    drawn = os.path.join(os.path.dirname(__file__), "test_agreement.py")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", __file__, drawn, "-k", "not imported_first"],
                          capture_output=True, text=True, env=dict(os.environ, FP8ROUTE_TORCH_EXTENSION="0"))
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_scale_elsewhere_is_named_as_the_caller_does():
    a, _, scale_a, scale_b = product(4, 16, 32, device="cpu")
    weight = codes(16, 32, device="cpu")
    for name in ("x_scale", "weight_scale"):
        given = {"x_scale": scale_a, "weight_scale": scale_b.flatten()}
        given[name] = given[name].to("meta")
        with pytest.raises(RuntimeError, match=f"^{name} is on meta, x on cpu"):
            ft.linear(a, weight, **given)


def test_an_out_that_is_no_tensor():
    a, b, scale_a, scale_b = product(4, 16, 32, device="cpu")
    for function in (lambda: ft.scaled_mm(a, b, scale_a, scale_b, out=3), lambda: ft.quantize(torch.randn(3, 4), out="here")):
        with pytest.raises(TypeError, match="out is a (int|str): it must be a tensor"):
            function()
