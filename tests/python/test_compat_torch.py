"""torch._scaled_mm's place: argument by argument against torch's own result on a CPU, or on a GPU where it takes the case.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import inspect
import itertools
import re

import pytest

torch = pytest.importorskip("torch")

import fp8route
from fp8route.compat.torch import _scaled_mm, _scaled_mm_v2
from operands import assert_close, codes, expected, product, scales

theirs = torch._scaled_mm
WIDE = (torch.bfloat16, torch.float16, torch.float32)
# One rounding each to the result's type, and another order of adding up, on a GPU in an accumulator of some 13 bits.
TOLERANCE = {torch.bfloat16: 2 ** -7, torch.float16: 2 ** -10, torch.float32: 2 ** -10, torch.float8_e4m3fn: 0}


@pytest.fixture(autouse=True)
def clean():
    fp8route.stats(reset=True)
    yield
    fp8route.uninstall()


def both(*arguments, **keywords):
    """Both results, or the error of each."""
    results = []
    for function in (theirs, _scaled_mm):
        try:
            results.append(function(*arguments, **keywords))
        except (RuntimeError, ValueError, NotImplementedError) as error:
            results.append(error)
    return results


def agree(*arguments, **keywords):
    wanted, got = both(*arguments, **keywords)
    assert not isinstance(wanted, Exception), wanted
    assert not isinstance(got, Exception), got
    assert (got.shape, got.dtype, got.stride(), got.device) == (wanted.shape, wanted.dtype, wanted.stride(), wanted.device)
    magnitude = wanted.float().abs().max().item() if wanted.numel() else 0
    error = (got.float() - wanted.float()).abs()
    assert bool((error <= TOLERANCE[got.dtype] * max(magnitude, 1e-6)).all()), float(error.max())
    return got


def tensor_wise(device, m=32, n=48, k=64):
    return product(m, n, k, device=device, rows=False)


def test_signature():
    names = list(inspect.signature(_scaled_mm).parameters)
    assert names == [argument.name for argument in torch.ops.aten._scaled_mm.out._schema.arguments]
    v2 = list(inspect.signature(_scaled_mm_v2).parameters)
    assert v2 == [argument.name for argument in torch.ops.aten._scaled_mm_v2.out._schema.arguments]


@pytest.mark.parametrize("out_dtype", WIDE + (None, torch.float8_e4m3fn))
def test_out_dtype(device, out_dtype):
    a, b, scale_a, scale_b = tensor_wise(device)
    agree(a, b, scale_a, scale_b, out_dtype=out_dtype)
    routed = {"routed": 1, "original": 0} if out_dtype in WIDE else {"routed": 0, "original": 1}
    assert fp8route.stats() == {"torch._scaled_mm": routed}


@pytest.mark.parametrize("shape_a, shape_b", itertools.product([(), (1,), (1, 1)], repeat=2))
def test_forms_of_one_scale(device, shape_a, shape_b):
    a, b, _, _ = tensor_wise(device)
    got = agree(a, b, torch.full(shape_a, 0.5, device=device), torch.full(shape_b, 0.25, device=device),
                out_dtype=torch.bfloat16)
    assert torch.equal(got, _scaled_mm(a, b, torch.tensor(0.5, device=device), torch.tensor(0.25, device=device),
                                       out_dtype=torch.bfloat16))


def test_bias(device):
    a, b, scale_a, scale_b = tensor_wise(device)
    for bias_dtype, out_dtype in itertools.product(WIDE, WIDE):
        bias = (scales(48, device=device) * 2).to(bias_dtype)
        wanted, got = both(a, b, scale_a, scale_b, bias, out_dtype=out_dtype)
        if isinstance(wanted, Exception):  # a pair that torch does not take here
            assert_close(got, *expected(a, b, scale_a, scale_b, bias))
        else:
            agree(a, b, scale_a, scale_b, bias, out_dtype=out_dtype)


def test_scale_result(device):
    """Of fp8 results only; with the others torch ignores it, and so do we."""
    a, b, scale_a, scale_b = tensor_wise(device)
    half = torch.tensor(0.5, device=device)
    if isinstance(both(a, b, scale_a, scale_b, scale_result=half, out_dtype=torch.float32)[0], Exception):
        pytest.skip("this torch refuses scale_result with wide results here")
    fp8route.stats(reset=True)
    wide = agree(a, b, scale_a, scale_b, scale_result=half, out_dtype=torch.float32)
    assert torch.equal(wide, _scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.float32))
    agree(a, b, scale_a, scale_b, scale_result=half)
    assert fp8route.stats()["torch._scaled_mm"]["original"] == 1


def test_use_fast_accum(device):
    a, b, scale_a, scale_b = tensor_wise(device, k=512)
    for fast in (False, True):
        agree(a, b, scale_a, scale_b, out_dtype=torch.float32, use_fast_accum=fast)


def test_out(device):
    a, b, scale_a, scale_b = tensor_wise(device)
    for dtype in WIDE:
        out = torch.empty(32, 48, dtype=dtype, device=device)
        assert _scaled_mm(a, b, scale_a, scale_b, out=out) is out  # out_dtype None: out's own
        assert torch.equal(out, _scaled_mm(a, b, scale_a, scale_b, out_dtype=dtype))
    out = torch.empty(48, 32, device=device).t()
    assert _scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.float32, out=out) is out
    assert_close(out, *expected(a, b, scale_a, scale_b))
    wanted, got = both(a, b, scale_a, scale_b, out_dtype=torch.float32, out=torch.empty(32, 48, dtype=torch.bfloat16, device=device))
    assert isinstance(wanted, Exception) and type(got) is type(wanted) and str(got) == str(wanted)


@pytest.mark.parametrize("dtype_a, dtype_b", itertools.product((torch.float8_e4m3fn, torch.float8_e5m2), repeat=2))
def test_operand_types(device, dtype_a, dtype_b):
    a, b = codes(32, 64, device=device, dtype=dtype_a), codes(48, 64, device=device, dtype=dtype_b).t()
    one = torch.tensor(1.0, device=device)
    wanted, got = both(a, b, one, one, out_dtype=torch.float32)
    if isinstance(wanted, Exception):
        assert str(got) == str(wanted)
    else:
        agree(a, b, one, one, out_dtype=torch.float32)


def test_layouts(device):
    a, b, scale_a, scale_b = tensor_wise(device)
    for left, right in itertools.product((a, a.t().contiguous().t()), (b, b.contiguous())):
        got = _scaled_mm(left, right, scale_a, scale_b, out_dtype=torch.float32)
        assert_close(got, *expected(a, b, scale_a, scale_b))
        if device == "cpu":
            agree(left, right, scale_a, scale_b, out_dtype=torch.float32)


@pytest.mark.parametrize("shape", [(0, 16, 32), (16, 0, 32), (16, 16, 0), (0, 0, 0)])
def test_empty_sizes(device, shape):
    a, b, scale_a, scale_b = tensor_wise(device, *shape)
    got = _scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.bfloat16)
    assert got.shape == shape[:2] and bool((got == 0).all())
    wanted = both(a, b, scale_a, scale_b, out_dtype=torch.bfloat16)[0]
    assert isinstance(wanted, Exception) or (wanted.shape, wanted.dtype) == (got.shape, got.dtype)


def test_any_size(device):
    for m, n, k in ((1, 1, 1), (3, 5, 7), (17, 40, 100)):
        a, b, scale_a, scale_b = tensor_wise(device, m, n, k)
        assert_close(_scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.bfloat16), *expected(a, b, scale_a, scale_b))


def test_row_wise(device):
    a, b, scale_a, scale_b = product(32, 48, 64, device=device)
    wanted, got = both(a, b, scale_a, scale_b, out_dtype=torch.bfloat16)
    assert_close(got, *expected(a, b, scale_a, scale_b))
    if not isinstance(wanted, Exception):  # a GPU
        agree(a, b, scale_a, scale_b, out_dtype=torch.bfloat16)
        agree(a, b, scale_a, scale_b, out_dtype=torch.bfloat16, use_fast_accum=True)


def test_invalid_arguments_get_torch_s_own_errors(device):
    a, b, scale_a, scale_b = tensor_wise(device)
    for arguments in ((a, b[:32], scale_a, scale_b), (a[None], b, scale_a, scale_b), (a.float(), b, scale_a, scale_b),
                      (a, b, scale_a, scale_b, torch.ones(47, device=device)), (a, b, torch.rand(31, 1, device=device), scale_b)):
        wanted, got = both(*arguments, out_dtype=torch.bfloat16)
        assert isinstance(wanted, Exception) and type(got) is type(wanted) and str(got) == str(wanted)
    with pytest.raises(TypeError):
        _scaled_mm(a, b)


def _unplaced(raised):
    """Torch's words up to what would be right, which depend on whether the argument came with its name."""
    return re.sub(r" \(position \d+\)", "", str(raised.value)).partition(" must be ")[0]


@pytest.mark.parametrize("name, value", [("self", None), ("mat2", 1.0), ("bias", 1.0), ("bias", [1.0]), ("out", 3),
                                         ("use_fast_accum", "yes"), ("use_fast_accum", None)])
def test_what_is_no_tensor_gets_torch_s_own_error(name, value):
    a, b, scale_a, scale_b = tensor_wise("cpu")
    keywords = {"self": a, "mat2": b, "scale_a": scale_a, "scale_b": scale_b, "out_dtype": torch.bfloat16, name: value}
    rows = {"recipe_a": [0], "swizzle_a": [0], "recipe_b": [0], "swizzle_b": [0], "bias": None}
    for function, original, given in (
            (_scaled_mm, theirs, keywords),
            (_scaled_mm_v2, torch._scaled_mm_v2, {**rows, **keywords, "scale_a": [scale_a], "scale_b": [scale_b]})):
        first, second = given["self"], given["mat2"]
        rest = {key: each for key, each in given.items() if key not in ("self", "mat2")}
        with pytest.raises(TypeError) as wanted:
            original(first, second, **rest)
        with pytest.raises(TypeError) as got:
            function(first, second, **rest)
        assert _unplaced(got) == _unplaced(wanted)


@pytest.mark.parametrize("name, value", [("recipe_a", ["a"]), ("recipe_a", [0.5]), ("scale_a", torch.ones(1, 1)),
                                         ("contraction_dim", None)])
def test_lists_of_v2_that_are_none_get_torch_s_own_error(name, value):
    a, b, scale_a, scale_b = tensor_wise("cpu")
    given = {"scale_a": [scale_a], "recipe_a": [0], "swizzle_a": [0], "scale_b": [scale_b], "recipe_b": [0], "swizzle_b": [0],
             "bias": None, "out_dtype": torch.bfloat16, name: value}
    if name == "contraction_dim":  # means that there is none
        assert_close(_scaled_mm_v2(a, b, **given), *expected(a, b, scale_a, scale_b))
        return
    with pytest.raises(TypeError) as wanted:
        torch._scaled_mm_v2(a, b, **given)
    with pytest.raises(TypeError) as got:
        _scaled_mm_v2(a, b, **given)
    assert _unplaced(got) == _unplaced(wanted)


def test_a_bias_that_is_a_column_is_torch_s():
    a, b, scale_a, scale_b = tensor_wise("cpu", 32, 32, 64)
    agree(a, b, scale_a, scale_b, torch.arange(32, dtype=torch.float32)[:, None] * 8, out_dtype=torch.float32)


def test_a_negated_out_is_torch_s():
    a, b, scale_a, scale_b = tensor_wise("cpu")
    outs = [torch._neg_view(torch.zeros(32, 48)) for _ in range(2)]
    theirs(a, b, scale_a, scale_b, out=outs[0])
    _scaled_mm(a, b, scale_a, scale_b, out=outs[1])
    assert torch.equal(outs[0], outs[1])


def test_block_scales_are_torch_s(device):
    a, b = codes(128, 256, device=device), codes(128, 256, device=device).t()
    wanted, got = both(a, b, scales(128, 2, device=device), scales(2, 1, device=device), out_dtype=torch.bfloat16)
    assert isinstance(wanted, Exception) == isinstance(got, Exception)
    assert fp8route.stats()["torch._scaled_mm"] == {"routed": 0, "original": 1}


def test_scaled_mm_of_nn_functional(device):
    functional = torch.nn.functional
    if not hasattr(functional, "scaled_mm"):
        pytest.skip("this torch has no torch.nn.functional.scaled_mm")
    kinds = functional.ScalingType
    a, b, scale_a, scale_b = product(32, 48, 64, device=device)
    with fp8route.install("torch"):
        rows = functional.scaled_mm(a, b, scale_a, kinds.RowWise, scale_b, kinds.RowWise)
        one = torch.tensor(0.5, device=device)
        whole = functional.scaled_mm(a, b, one, kinds.TensorWise, one, kinds.TensorWise, output_dtype=torch.float32)
    assert_close(rows, *expected(a, b, scale_a, scale_b))
    assert_close(whole, *expected(a, b, one.cpu(), one.cpu()))
    assert fp8route.stats() == {"torch._scaled_mm_v2": {"routed": 2, "original": 0}}


def test_scales_of_a_weight_as_quantize_gives_them(device):
    """[N, 1]: torch wants [1, N]. The same result in every function, eager, into out and compiled."""
    import fp8route.torch as ft
    a, b, scale_a, _ = product(32, 48, 64, device=device)
    weight, scale_b = ft.quantize(torch.randn(48, 64, device=device))
    assert scale_b.shape == (48, 1)
    wanted = _scaled_mm(a, weight.t(), scale_a, scale_b.t(), out_dtype=torch.float32)
    rows = ([scale_a], [1], [0], [scale_b], [1], [0])  # 1: row-wise
    out = torch.empty(32, 48, device=device)
    fp8route.stats(reset=True)
    assert torch.equal(_scaled_mm(a, weight.t(), scale_a, scale_b, out_dtype=torch.float32), wanted)
    assert torch.equal(_scaled_mm(a, weight.t(), scale_a, scale_b, out=out), wanted)
    assert torch.equal(_scaled_mm_v2(a, weight.t(), *rows, out_dtype=torch.float32), wanted)
    assert torch.equal(_scaled_mm_v2(a, weight.t(), *rows, out_dtype=torch.float32, out=out), wanted)
    assert fp8route.stats() == {"torch._scaled_mm": {"routed": 2, "original": 0},
                                "torch._scaled_mm_v2": {"routed": 2, "original": 0}}
    torch._dynamo.reset()
    compiled = torch.compile(lambda a, scale_a: _scaled_mm(a, weight.t(), scale_a, scale_b, out_dtype=torch.float32),
                             fullgraph=True, dynamic=True)
    for m in (32, 7):
        torch.testing.assert_close(compiled(a[:m], scale_a[:m]), wanted[:m], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("form", [lambda scale: scale.flatten(), lambda scale: torch.stack([scale, scale], 1)[:, 0],
                                  lambda scale: torch.stack([scale.flatten()] * 2, 1)[:, 0]])
def test_scales_of_other_forms(device, form):
    """What is taken eagerly is taken into out and compiled, too; v2 leaves such scales to torch, which refuses most of them."""
    a, b, scale_a, scale_b = product(32, 48, 64, device=device)
    wanted = _scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.float32)
    given, out = (form(scale_a), form(scale_b.t())), torch.empty(32, 48, device=device)
    fp8route.stats(reset=True)
    assert torch.equal(_scaled_mm(a, b, *given, out_dtype=torch.float32), wanted)
    assert torch.equal(_scaled_mm(a, b, *given, out=out), wanted)
    assert fp8route.stats() == {"torch._scaled_mm": {"routed": 2, "original": 0}}
    fp8route.stats(reset=True)
    with contextlib.suppress(IndexError, ValueError, RuntimeError):
        _scaled_mm_v2(a, b, [given[0]], [1], [0], [given[1]], [1], [0], out_dtype=torch.float32)
    assert fp8route.stats() == {"torch._scaled_mm_v2": {"routed": 0, "original": 1}}
    torch._dynamo.reset()
    compiled = torch.compile(lambda a, *scales: _scaled_mm(a, b, *scales, out_dtype=torch.float32), fullgraph=True, dynamic=True)
    torch.testing.assert_close(compiled(a, *given), wanted, rtol=1e-6, atol=1e-6)


def test_install_and_uninstall():
    import types
    user = types.ModuleType("user_of_scaled_mm")
    user.mm = torch._scaled_mm
    import sys
    sys.modules[user.__name__] = user
    try:
        assert torch._scaled_mm is theirs
        with fp8route.install("torch"):
            assert torch._scaled_mm is _scaled_mm and user.mm is _scaled_mm
            assert fp8route.installed() == ["torch"]
            with fp8route.install("torch"):
                pass
            assert torch._scaled_mm is _scaled_mm, "an inner block restores nothing that it did not install"
            a, b, scale_a, scale_b = tensor_wise("cpu")
            torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.bfloat16)
            torch._scaled_mm(a, b, scale_a, scale_b)  # fp8 result: the original, not itself
        assert torch._scaled_mm is theirs and user.mm is theirs and fp8route.installed() == []
        assert fp8route.stats(reset=True) == {"torch._scaled_mm": {"routed": 1, "original": 1}}
        assert fp8route.stats() == {}
    finally:
        del sys.modules[user.__name__]
    with pytest.raises(ValueError, match="torch, sgl_kernel, flashinfer"):
        fp8route.install("numpy")


def test_compiled(device):
    a, b, scale_a, scale_b = product(32, 48, 64, device=device)
    one = torch.tensor(0.5, device=device)
    torch._dynamo.reset()

    def function(a, scale_a):
        return torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.float32) + torch._scaled_mm(a, b, one, one, out_dtype=torch.float32)

    with fp8route.install("torch"):
        compiled = torch.compile(function, fullgraph=True, dynamic=True)
        for m in (32, 7, 1):
            torch.testing.assert_close(compiled(a[:m], scale_a[:m]), function(a[:m], scale_a[:m]), rtol=1e-6, atol=1e-6)


def test_captured_on_a_side_stream(cuda):
    """As an engine captures a model that calls torch's function; torch's own is in the same graph."""
    a, b, scale_a, scale_b = product(24, 96, 256, device=cuda)
    one, stream, graph = torch.tensor(0.5, device=cuda), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    original = [theirs]  # in a list, where install does not look
    original[0](a, b, scale_a, scale_b, out_dtype=torch.bfloat16)
    stream.wait_stream(torch.cuda.current_stream())
    with fp8route.install("torch"), torch.cuda.graph(graph, stream=stream):
        rows = torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.bfloat16)
        whole = torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16)
        their_rows = original[0](a, b, scale_a, scale_b, out_dtype=torch.bfloat16)
    assert fp8route.stats() == {"torch._scaled_mm": {"routed": 2, "original": 0}}
    for result in (rows, whole, their_rows):
        result.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    assert_close(rows, *expected(a, b, scale_a, scale_b))
    assert_close(whole, *expected(a, b, one, one))
    assert bool(((rows.float() - their_rows.float()).abs() <= TOLERANCE[rows.dtype] * their_rows.float().abs().max()).all())
