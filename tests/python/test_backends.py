"""Python callables as backends.

SPDX-License-Identifier: Apache-2.0
"""
import pytest

torch = pytest.importorskip("torch")

import fp8route
import fp8route.torch as ft
from fp8route import _operators
from operands import assert_close, codes, expected, product, scales


def plain(a, b, scale_a, scale_b, bias, out):
    result = a.float() @ b.float()
    for factor in (scale_b, scale_a):
        if factor is not None:
            result = result * factor
    out.copy_(result if bias is None else result + bias)


@pytest.fixture
def backend():
    names = []

    def register(name, function=plain, supports=None, **options):
        fp8route.register_backend(name, function, supports, **options)
        names.append(name)

    yield register
    for name in names:
        fp8route.unregister_backend(name)


def row(name, problem, device="cpu"):
    return next(each for each in fp8route.explain(problem, device).candidates if each.backend == name)


def test_a_callable_is_a_candidate(device, backend):
    before = fp8route.routes_id(device)
    backend("mine", description="a plain product")
    assert row("mine", "4x16x32", device).verdict == "eligible"
    assert fp8route.routes_id(device) != before
    assert any(each["name"] == "mine" and each["usable"] and each["configs"] == ["call"] for each in fp8route.backends(device))
    for rows in (True, False):
        a, b, scale_a, scale_b = product(5, 24, 64, device=device, rows=rows)
        bias = scales(24, device=device)
        for arguments in ((a, b), (a, b, scale_a, scale_b), (a, b, None, scale_b), (a, b, scale_a, scale_b, bias)):
            assert_close(ft.run_on("mine", *arguments, out_dtype=torch.float32), *expected(*arguments))
    strided, other = codes(6, 128, device=device)[::2, ::2], codes(64, 48, device=device)[:, ::2]
    assert_close(ft.run_on("mine", strided, other), *expected(strided, other))
    a3, b3 = codes(3, 5, 64, device=device), codes(3, 24, 64, device=device).transpose(1, 2)
    for scale_a, scale_b in ((scales(3, 5, 1, device=device), scales(3, 1, 24, device=device)),
                             (scales(3, 1, 1, device=device), scales(1, 1, 24, device=device))):
        assert_close(ft.run_on("mine", a3, b3, scale_a, scale_b), *expected(a3, b3, scale_a, scale_b))


def test_it_can_be_the_default(device, backend):
    calls = []

    def counted(*arguments):
        calls.append(arguments[0].shape)
        plain(*arguments)

    backend("mine", counted, priority=99)
    a, b, scale_a, scale_b = product(5, 24, 64, device=device)
    assert_close(ft.scaled_mm(a, b, scale_a, scale_b), *expected(a, b, scale_a, scale_b))
    assert calls == [(5, 64)]
    assert fp8route.explain("5x24x64", device).chosen == "mine:call"


def test_a_returned_tensor_is_copied(backend):
    backend("mine", lambda a, b, scale_a, scale_b, bias, out: (a.float() @ b.float()).to(out.dtype))
    a, b, _, _ = product(5, 24, 64)
    assert_close(ft.run_on("mine", a, b), *expected(a, b))


def test_refusals_are_in_its_own_words(backend):
    backend("mine", supports=lambda problem: True if problem.n % 32 == 0 else f"needs N in steps of 32; it is {problem.n}")
    assert row("mine", "4x64x32").verdict == "eligible"
    refused = row("mine", "4x48x32")
    assert refused.verdict == "refused" and "needs N in steps of 32; it is 48" in refused.sentence
    a, b, _, _ = product(4, 48, 32)
    with pytest.raises(RuntimeError, match="backend mine needs N in steps of 32"):
        ft.run_on("mine", a, b)
    assert "takes fp8 operands only; a is bf16" in row("mine", "4x64x32:a=bf16").sentence


def test_exceptions_stay_in_python(backend, capfd):
    def broken(*_):
        raise KeyError("lost")

    backend("broken", broken)
    backend("unsure", supports=lambda problem: problem.nothing)
    a, b, _, _ = product(4, 16, 32)
    with pytest.raises(RuntimeError, match="backend broken failed to run"):
        ft.run_on("broken", a, b)
    assert "KeyError: 'lost'" in capfd.readouterr().err
    assert "its supports raised AttributeError" in row("unsure", "4x16x32").sentence


def test_names_are_checked(backend):
    with pytest.raises(ValueError, match="small letters"):
        fp8route.register_backend("Mine", plain)
    with pytest.raises(fp8route.Error, match="cpu"):
        fp8route.register_backend("cpu", plain)
    backend("mine")
    with pytest.raises(ValueError, match="registered already"):
        fp8route.register_backend("mine", plain)
    with pytest.raises(ValueError, match="no backend of that name"):
        fp8route.unregister_backend("other")
    with pytest.raises(ValueError, match="cpu, cuda or both"):
        fp8route.register_backend("other", plain, devices=("tpu",))


def test_adaptors(device):
    added = fp8route.register_adaptors()
    try:
        assert "torch_scaled_mm" in added and fp8route.register_adaptors() == []
        a, b, scale_a, scale_b = product(16, 32, 64, device=device, rows=False)
        assert_close(ft.run_on("torch_scaled_mm", a, b, scale_a, scale_b), *expected(a, b, scale_a, scale_b))
        with fp8route.install("torch"):  # which must not send it round in a circle
            assert_close(ft.run_on("torch_scaled_mm", a, b, scale_a, scale_b), *expected(a, b, scale_a, scale_b))
    finally:
        for name in added:
            fp8route.unregister_backend(name)


def test_activations_that_nobody_takes_are_quantised_first(backend, monkeypatch):
    """As in a capture on a GPU: bf16 as it is is refused, its codes are taken; the bits are those of quantize and linear."""
    monkeypatch.setenv("FP8ROUTE_DENY", "cpu,blas,reference")
    backend("mine")  # takes fp8 only
    weight, weight_scale = codes(24, 64), scales(24, 1)
    for x in (torch.randn(3, 64).bfloat16(), torch.randn(2, 3, 64).half().transpose(0, 1)):
        q, scale = ft.quantize(x)
        for function in (torch.ops.fp8route.linear.default, _operators.REAL["linear"]):
            out = function(x, weight, weight_scale)
            assert torch.equal(out, ft.linear(q, weight, weight_scale, x_scale=scale, out_dtype=x.dtype))
    monkeypatch.undo()


def test_compiled(backend):
    backend("mine", priority=99)
    a, b, scale_a, scale_b = product(5, 24, 64)
    torch._dynamo.reset()
    compiled = torch.compile(lambda a, s: ft.scaled_mm(a, b, s, scale_b), fullgraph=True, dynamic=True)
    assert torch.equal(compiled(a, scale_a), ft.scaled_mm(a, b, scale_a, scale_b))
