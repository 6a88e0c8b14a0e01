"""Under torch.compile: one graph, any M; and torch's own checks of how an operator is registered.

SPDX-License-Identifier: Apache-2.0
"""
import pytest

torch = pytest.importorskip("torch")

import fp8route.torch as ft
from operands import ANY_ROW, codes, product, scales

OPS = torch.ops.fp8route
# test_schema compares arguments by arithmetic that torch lacks for fp8: test_only_what_is_declared_changes stands for it.
CHECKS = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
NAMES = ("scaled_mm", "scaled_mm_out", "bmm", "bmm_out", "linear", "run_on", "run_on_out", "quantize", "quantize_out",
         "quantize_given", "quantize_given_out")


def samples(device):
    a, b, scale_a, scale_b = product(4, 24, 32, device=device)
    bias = scales(24, device=device).bfloat16()
    x = torch.randn(2, 3, 32, device=device).bfloat16()
    weight, weight_scale = codes(24, 32, device=device), scales(24, 1, device=device)
    a3, b3 = codes(2, 4, 32, device=device), codes(2, 24, 32, device=device).transpose(1, 2)
    out, out3 = torch.empty(4, 24, device=device), torch.empty(2, 4, 24, device=device)
    q, s = torch.empty(2, 3, 32, device=device, dtype=torch.float8_e4m3fn), torch.empty(2, 3, 1, device=device)
    return {
        "scaled_mm": [((a, b, scale_a, scale_b, bias), {}), ((a, b), {"out_dtype": torch.float32, "precise": True}),
                      ((a, b.contiguous(), scales(1, device=device), None), {})],
        "scaled_mm_out": [((a, b, scale_a, scale_b), {"out": out}),
                          ((a, b), {"out": torch.empty(24, 4, device=device).t()})],
        "bmm": [((a3, b3), {}), ((a3[:1], b3, scales(1, device=device)), {"out_dtype": torch.float16})],
        "bmm_out": [((a3, b3), {"out": out3})],
        "linear": [((x, weight, weight_scale), {}), ((x.transpose(0, 1), weight, weight_scale, bias), {})],
        "run_on": [((ANY_ROW[device], 0, a, b, scale_a, scale_b, bias, torch.float32), {})],
        "run_on_out": [((ANY_ROW[device], 2, a3, b3, None, None, None), {"out": out3})],
        "quantize": [((x,), {}), ((x.float(), 1), {}), ((x[0], 2), {})],
        "quantize_out": [((x,), {"out": q, "scale": s})],
        "quantize_given": [((x, s.fill_(0.5)), {})],
        "quantize_given_out": [((x, s.fill_(0.5)), {"out": q})],
    }


@pytest.mark.parametrize("name", NAMES)
def test_opcheck(device, name):
    for arguments, keywords in samples(device)[name]:
        torch.library.opcheck(getattr(OPS, name).default, arguments, keywords, test_utils=CHECKS)


def content(tensor):
    return tensor.contiguous().view(torch.uint8).clone()


@pytest.mark.parametrize("name", NAMES)
def test_only_what_is_declared_changes(device, name):
    operator = getattr(OPS, name).default
    written = {argument.name for argument in operator._schema.arguments
               if argument.alias_info is not None and argument.alias_info.is_write}
    assert written == ({"out", "scale"} if name == "quantize_out" else {"out"} if name.endswith("_out") else set())
    for arguments, keywords in samples(device)[name]:
        inputs = [each for each in (*arguments, *keywords.values()) if isinstance(each, torch.Tensor)]
        kept = [each for each in inputs if not any(each is keywords.get(name) for name in written)]
        before = [content(each) for each in kept]
        results = operator(*arguments, **keywords)
        assert all(torch.equal(content(each), old) for each, old in zip(kept, before))
        results = results if isinstance(results, tuple) else () if results is None else (results,)
        storages = [each.untyped_storage().data_ptr() for each in inputs]
        assert all(each.untyped_storage().data_ptr() not in storages for each in results)


def test_one_graph_for_every_m(device):
    weight, weight_scale = ft.quantize(torch.randn(48, 64, device=device))
    bias = torch.randn(48, device=device)
    seen = []

    def layer(x):
        q, scale = ft.quantize(x)
        y = ft.scaled_mm(q, weight.t(), scale, weight_scale.t(), bias, torch.float32)
        return y + ft.linear(x, weight, weight_scale, bias, out_dtype=torch.float32) * 2

    def backend(graph, inputs):
        seen.append(graph)
        return graph.forward

    for compiler in (backend, "inductor"):
        torch._dynamo.reset()
        compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=compiler)
        for m in (7, 128, 33):
            x = torch.randn(m, 64, device=device).bfloat16()
            torch.testing.assert_close(compiled(x), layer(x), rtol=1e-6, atol=1e-6)
    assert len(seen) == 1, "every M but 0 and 1 shares a graph"
    for m in (1, 0):
        x = torch.randn(m, 64, device=device).bfloat16()
        torch.testing.assert_close(compiled(x), layer(x), rtol=1e-6, atol=1e-6)


def test_results_written_in_place_are_seen(device):
    a, b, scale_a, scale_b = product(5, 24, 32, device=device)

    def function(out):
        ft.scaled_mm(a, b, scale_a, scale_b, out=out)
        return out * 2

    torch._dynamo.reset()
    out = torch.zeros(5, 24, device=device)
    twice = torch.compile(function, fullgraph=True)(out)
    assert torch.equal(out, ft.scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.float32))
    assert torch.equal(twice, out * 2)


def test_results_written_into_slices_are_seen(device):
    a, b, scale_a, scale_b = product(5, 24, 32, device=device)

    def function(out, codes, scale):
        ft.quantize_into(scale_b.expand(5, 24) * 3, codes[:, 8:32], scale)
        ft.scaled_mm(a, b, scale_a, scale_b, out=out[:, 8:32])
        ft.bmm(a[None], b[None], out=out[None, :, 32:56])
        return ft.run_on(ANY_ROW[device], a, b, out=out[:, 56:]) * 2

    def places():
        return (torch.zeros(5, 80, device=device), torch.zeros(5, 40, device=device).to(torch.float8_e4m3fn),
                torch.zeros(5, 1, device=device))

    torch._dynamo.reset()
    expected, found = places(), places()
    twice = function(*expected)
    assert torch.equal(torch.compile(function, fullgraph=True)(*found), twice)
    for one, other in zip(expected, found):
        assert torch.equal(one.float(), other.float())


def test_a_layer_of_three_dimensions(device):
    layer = ft.Linear.from_float(torch.nn.Linear(64, 48)).to(device)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, dynamic=True)
    for shape in ((2, 3, 64), (4, 5, 64)):
        x = torch.randn(*shape, device=device).bfloat16()
        assert torch.equal(compiled(x), layer(x))


@pytest.mark.parametrize("layout", range(4))
def test_layouts_as_in_eager_mode(device, layout):
    a, b, scale_a, scale_b = product(16, 24, 32, device=device)
    a = a.t().contiguous().t() if layout & 1 else a
    b = b.contiguous() if layout & 2 else b
    torch._dynamo.reset()
    compiled = torch.compile(lambda a, b: ft.scaled_mm(a, b, scale_a, scale_b), fullgraph=True)
    assert torch.equal(compiled(a, b), ft.scaled_mm(a, b, scale_a, scale_b))


def test_refused_while_compiling(device):
    a, b, _, _ = product(4, 16, 32, device=device)
    torch._dynamo.reset()
    with pytest.raises(Exception, match="b has shape .*: it must have 32 rows"):
        torch.compile(lambda a, b: ft.scaled_mm(a, b), fullgraph=True)(a, b[:16])


def test_inference_mode(device):
    layer = ft.Linear.from_float(torch.nn.Linear(64, 48)).to(device)
    x = torch.randn(3, 64, device=device).bfloat16()
    torch._dynamo.reset()
    with torch.inference_mode():
        assert torch.equal(torch.compile(layer, fullgraph=True)(x), layer(x))
