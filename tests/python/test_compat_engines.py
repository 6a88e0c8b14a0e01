"""sgl_kernel's and flashinfer's places, against stand-ins for those libraries: signatures, values, what is handed over.

SPDX-License-Identifier: Apache-2.0
"""
import sys
import types

import pytest

torch = pytest.importorskip("torch")

import fp8route
import fp8route.torch as ft
from fp8route.compat import flashinfer, sgl_kernel
from operands import ANY_ROW, assert_close, codes, expected, product, quantised, scales


def recorder(name, calls):
    def original(*arguments):
        calls.append((name, arguments))
        return name
    return original


@pytest.fixture
def stand_in(monkeypatch):
    """A library of that name whose functions only record that they were called."""
    made = []

    def make(library, *names):
        module, calls = types.ModuleType(library), []
        for name in names:
            setattr(module, name, recorder(name, calls))
        monkeypatch.setitem(sys.modules, library, module)
        dropin = {"sgl_kernel": sgl_kernel, "flashinfer": flashinfer}[library]
        dropin.ORIGINALS.clear()
        made.append(dropin)
        return module, calls

    fp8route.stats(reset=True)
    yield make
    fp8route.uninstall()
    for dropin in made:
        dropin.ORIGINALS.clear()


def test_fp8_scaled_mm(device):
    a, b, scale_a, scale_b = product(9, 48, 64, device=device)
    bias = scales(48, device=device).bfloat16()
    wanted = expected(a, b, scale_a, scale_b, bias)
    for forms in ((scale_a, scale_b.view(48, 1)), (scale_a.view(-1), scale_b.view(-1)), (scale_a, scale_b)):
        assert_close(sgl_kernel.fp8_scaled_mm(a, b, *forms, torch.bfloat16, bias), *wanted)
    assert_close(sgl_kernel.fp8_scaled_mm(a, b, scale_a, scale_b, torch.float16), *expected(a, b, scale_a, scale_b))
    one = scales(1, device=device)
    assert_close(sgl_kernel.fp8_scaled_mm(a, b, one, scale_b, out_dtype=torch.bfloat16), *expected(a, b, one, scale_b))


def test_per_token_quantiser(device):
    x = torch.randn(5, 64, device=device).bfloat16()
    x[2] = 0
    q, s = torch.empty(5, 64, dtype=torch.float8_e4m3fn, device=device), torch.empty(5, 1, device=device)
    assert sgl_kernel.sgl_per_token_quant_fp8(x, q, s) is None
    there, there_scale = quantised(x)  # which is that library's definition but for the row of zeros
    rows = [0, 1, 3, 4]
    assert torch.equal(s.cpu()[rows], there_scale[rows])
    assert torch.equal(q.float().cpu()[rows], there.float()[rows])
    assert s[2] == 1 and (q.float()[2] == 0).all(), "the named exception: a row of zeros has scale 1"


def test_per_tensor_quantiser(device):
    x = torch.randn(5, 64, device=device).half()
    q, s = torch.empty(5, 64, dtype=torch.float8_e4m3fn, device=device), torch.zeros(1, device=device)
    sgl_kernel.sgl_per_tensor_quant_fp8(x, q, s, False)
    assert torch.equal(s.cpu(), quantised(x, None)[1].view(1))
    s.fill_(0.25)
    sgl_kernel.sgl_per_tensor_quant_fp8(x, q, s, True)
    assert s == 0.25 and torch.equal(q.float(), (x.float() * 4).clamp(-448, 448).to(torch.float8_e4m3fn).float())


def test_sgl_kernel_installed(stand_in):
    module, calls = stand_in("sgl_kernel", *sgl_kernel.REPLACED)
    originals = [getattr(module, name) for name in sgl_kernel.REPLACED]
    a, b, scale_a, scale_b = product(4, 16, 32)
    with fp8route.install("sgl_kernel"):
        assert_close(module.fp8_scaled_mm(a, b, scale_a, scale_b, torch.bfloat16), *expected(a, b, scale_a, scale_b))
        q, s = torch.empty(4, 32, dtype=torch.float8_e4m3fn), torch.empty(4, 1)
        module.sgl_per_token_quant_fp8(torch.randn(4, 32), q, s)
        assert not calls
        blocks = scales(4, 3)
        assert module.fp8_scaled_mm(a, b, blocks, scale_b, torch.bfloat16) == "fp8_scaled_mm"
        assert module.fp8_scaled_mm(a, b.to(torch.float8_e5m2), scale_a, scale_b, torch.bfloat16) == "fp8_scaled_mm"
        module.sgl_per_token_quant_fp8(torch.randn(4, 32), q, torch.empty(3))
        assert [name for name, _ in calls] == ["fp8_scaled_mm", "fp8_scaled_mm", "sgl_per_token_quant_fp8"]
        assert calls[0][1][2] is blocks
    assert [getattr(module, name) for name in sgl_kernel.REPLACED] == originals
    assert fp8route.stats() == {"sgl_kernel.fp8_scaled_mm": {"routed": 1, "original": 2},
                                "sgl_kernel.sgl_per_token_quant_fp8": {"routed": 1, "original": 1}}


def test_without_the_library_the_refusal_says_so():
    if "sgl_kernel" in sys.modules:
        pytest.skip("sgl_kernel is here")
    sgl_kernel.ORIGINALS.clear()
    a, b, scale_a, scale_b = product(4, 16, 32)
    with pytest.raises(RuntimeError, match=r"scale_a has shape \[2, 1\], a .*; and sgl_kernel"):
        sgl_kernel.fp8_scaled_mm(a, b, scale_a[:2], scale_b, torch.bfloat16)
    if "flashinfer" not in sys.modules:
        flashinfer.ORIGINALS.clear()
        with pytest.raises(RuntimeError, match=r"a has shape \[4, 32\]: it must have 3 dimensions; and flashinfer"):
            flashinfer.bmm_fp8(a, b, scale_a[:1], scale_b[:1], torch.bfloat16)
    with pytest.raises(ImportError):
        fp8route.install("sgl_kernel")
    assert fp8route.installed() == []


def test_bmm_fp8(device):
    a, b = codes(3, 5, 64, device=device), codes(3, 24, 64, device=device, seed=2).transpose(1, 2)
    one, two = torch.tensor(0.5, device=device), torch.tensor([0.25], device=device)
    wanted = expected(a, b, one.cpu(), two.cpu())
    out = torch.empty(3, 5, 24, dtype=torch.float16, device=device)
    assert flashinfer.bmm_fp8(a, b, one, two, torch.float16, out) is out
    assert_close(out, *wanted)
    rows = [row for row in fp8route.backends(device) if row["usable"]]
    taken = 0
    for name in ["auto"] + [row["name"] for row in rows]:
        try:
            result = flashinfer.bmm_fp8(a, b, one, two, torch.bfloat16, backend=name)
        except RuntimeError as error:  # that row refuses these sizes, and says why
            assert name != "auto" and name in str(error)
            continue
        assert_close(result, *wanted)
        taken += 1
    assert taken >= 2
    with_config = flashinfer.bmm_fp8(a, b, one, two, torch.bfloat16, backend=ANY_ROW[device], out=out.bfloat16())
    assert_close(with_config, *wanted)


def test_backend_names(device):
    a, b = codes(2, 4, 32, device=device), codes(2, 16, 32, device=device).transpose(1, 2)
    one = torch.ones((), device=device)
    with pytest.raises(ValueError, match="'cudnn': it must be auto, cublas, cutlass, or a row of fp8route: .*reference"):
        flashinfer.bmm_fp8(a, b, one, one, torch.bfloat16, backend="cudnn")
    if device == "cpu":
        for name, row in flashinfer.ROWS.items():
            with pytest.raises(RuntimeError, match=f"{row} .*CUDA"):
                flashinfer.bmm_fp8(a, b, one, one, torch.bfloat16, backend=name)


def test_flashinfer_installed(stand_in):
    module, calls = stand_in("flashinfer", "bmm_fp8")
    a, b = codes(2, 4, 32), codes(2, 16, 32).transpose(1, 2)
    one = torch.ones(())
    with fp8route.install("flashinfer"):
        assert module.bmm_fp8(a, b, one, one, torch.bfloat16).shape == (2, 4, 16)
        assert module.bmm_fp8(a, b.to(torch.float8_e5m2), one, one, torch.bfloat16) == "bmm_fp8"
    assert len(calls) == 1 and fp8route.stats() == {"flashinfer.bmm_fp8": {"routed": 1, "original": 1}}


def test_drop_ins_compile(device):
    x = torch.randn(6, 64, device=device).bfloat16()
    weight, weight_scale = ft.quantize(torch.randn(48, 64, device=device))
    a3, b3, one = codes(3, 5, 64, device=device), codes(3, 24, 64, device=device).transpose(1, 2), torch.ones(1, device=device)

    def function(x):
        q, s = torch.empty_like(x, dtype=torch.float8_e4m3fn), torch.empty(x.shape[0], 1, device=x.device)
        sgl_kernel.sgl_per_token_quant_fp8(x, q, s)
        return sgl_kernel.fp8_scaled_mm(q, weight.t(), s, weight_scale, torch.bfloat16).float() + flashinfer.bmm_fp8(
            a3, b3, one, one, torch.float32).sum()

    torch._dynamo.reset()
    compiled = torch.compile(function, fullgraph=True, dynamic=True)
    for m in (6, 3):
        torch.testing.assert_close(compiled(x[:m]), function(x[:m]), rtol=1e-5, atol=1e-4)


def test_named_rows_compile(device):
    a, b, scale_a, scale_b = product(4, 16, 32, device=device)
    torch._dynamo.reset()
    compiled = torch.compile(lambda a: ft.run_on(ANY_ROW[device], a, b, scale_a, scale_b), fullgraph=True)
    assert torch.equal(compiled(a), ft.run_on(ANY_ROW[device], a, b, scale_a, scale_b))
