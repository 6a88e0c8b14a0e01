"""The engine adaptors of examples/python/engines, against modules that stand in for the engines.

SPDX-License-Identifier: Apache-2.0
"""
import importlib
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import fp8route.torch as ft
from operands import assert_close, codes, expected, product, scales
from standins import sglang_standin, vllm_standin
from standins.modules import present

ENGINES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python" / "engines"


@pytest.fixture
def adaptor(monkeypatch):
    monkeypatch.syspath_prepend(str(ENGINES))
    return importlib.import_module


# ---- SGLang

@pytest.fixture
def sglang(adaptor):
    with present(sglang_standin.modules(), also_forget=("sglang_kernel",)):
        yield sys.modules["sglang.kernels.ops.gemm"], adaptor("sglang_kernel")


@pytest.mark.parametrize("shape", [(1, 64, 96), (5, 3584, 5376)])  # the second: where SGLang's rule takes torch's kernel
def test_sglang_operator_runs_ours(sglang, shape):
    gemm, ours = sglang
    a, b, scale_a, scale_b = product(*shape)
    scale_b = scale_b.view(-1, 1)  # as its layers keep it
    ours.install()
    out = gemm.fp8_scaled_mm(a, b, scale_a, scale_b, torch.bfloat16)
    assert sglang_standin.CALLS == []
    assert torch.equal(out, ft.scaled_mm(a, b, scale_a, scale_b.view(-1), out_dtype=torch.bfloat16))
    assert_close(out, *expected(a, b, scale_a, scale_b.view(1, -1)))


def test_sglang_registry_leads_to_ours(sglang):
    _, ours = sglang
    operator = ours.install()
    spec = sglang_standin.registry.specs["gemm.fp8_scaled_mm", sglang_standin.KernelBackend.AOT]
    assert spec.load().__self__ is operator and ours.install() is operator


def test_sglang_batched(sglang):
    gemm, ours = sglang
    ours.install()
    a, b, scale = codes(3, 5, 32), codes(3, 24, 32, seed=1).transpose(1, 2), scales(1)
    out = gemm.bmm_fp8(a, b, scale, scale, torch.bfloat16)
    assert sglang_standin.CALLS == []
    assert_close(out, *expected(a, b, scale, scale))


def test_sglang_uninstall(sglang):
    gemm, ours = sglang
    before, registered = gemm._FP8_SCALED_MM, dict(sglang_standin.registry.specs)
    ours.install()
    ours.uninstall()
    ours.uninstall()
    gemm.fp8_scaled_mm(*product(2, 16, 32), torch.bfloat16)
    gemm.bmm_fp8(codes(1, 2, 16), codes(1, 16, 8), scales(1), scales(1), torch.bfloat16)
    assert gemm._FP8_SCALED_MM is before and sglang_standin.CALLS == ["torch", "flashinfer"]
    assert sglang_standin.registry.specs == registered


def test_sglang_leaves_what_is_not_fp8(sglang):
    gemm, ours = sglang
    ours.install()
    a, b, scale_a, scale_b = product(2, 16, 32)
    gemm.fp8_scaled_mm(a, b.float(), scale_a, scale_b, torch.bfloat16)
    assert sglang_standin.CALLS == ["torch"]


def test_sglang_stays_while_compiled(sglang):
    gemm, ours = sglang
    ours.install().enter_torch_compile(num_tokens=4)
    operands = product(4, 32, 64)
    compiled = torch.compile(lambda *args: gemm.fp8_scaled_mm(*args, torch.bfloat16), fullgraph=True, backend="eager")
    assert torch.equal(compiled(*operands), gemm.fp8_scaled_mm(*operands, torch.bfloat16))
    assert sglang_standin.CALLS == []


def test_sglang_invariant(sglang):
    gemm, ours = sglang
    ours.install(invariant=True)
    a, b, scale_a, scale_b = product(33, 64, 256)
    every = gemm.fp8_scaled_mm(a, b, scale_a, scale_b, torch.float32)
    for m in (1, 7, 32):
        assert torch.equal(gemm.fp8_scaled_mm(a[:m], b, scale_a[:m], scale_b, torch.float32), every[:m])


def test_sglang_registry_without_a_class_for_the_operator(sglang):
    """As its older versions have it: a specification with a target, and nothing to derive from."""
    standin = sglang_standin
    standin.register_kernel(standin.KernelSpec(op="gemm.fp8_scaled_mm", backend=standin.KernelBackend.AOT,
                                               target="fp8route.compat.sgl_kernel:fp8_scaled_mm"))
    operands = product(5, 48, 64)
    out = standin.get_kernel("gemm.fp8_scaled_mm", standin.KernelBackend.AOT)(*operands, torch.bfloat16)
    assert_close(out, *expected(*operands))


# ---- Tensor parallel

def test_routes_id_tells_equal_ranks_from_others():
    def rank(**environment):
        code = "import fp8route; print(fp8route.routes_id())"
        path = {"PYTHONPATH": str(ENGINES.parents[2] / "python")}
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                              env={**os.environ, **path, **environment}).stdout
    first, second, denied = rank(), rank(), rank(FP8ROUTE_DENY="cpu")
    assert len(first.strip()) == 64 and first == second != denied


# ---- vLLM

class Layer(torch.nn.Module):
    """As vLLM keeps a layer whose checkpoint has weight [N,K] and weight_scale [N,1]."""

    def __init__(self, n, k, whole=False):
        super().__init__()
        self.weight = codes(n, k).t()
        self.weight_scale = scales(1).view(()) if whole else scales(n, 1)
        self.input_scale = self.input_scale_ub = None


@pytest.fixture
def vllm(adaptor):
    with present(vllm_standin.modules(), also_forget=("vllm_kernel",)):
        yield sys.modules["vllm.model_executor.kernels.linear"], adaptor("vllm_kernel")


def choose(linear, activation=(1, -1), weight=(-1, 1), static=False, shape=(48, 64), out_dtype=torch.bfloat16, **more):
    return linear.init_fp8_linear_kernel(vllm_standin.fp8_key(static, *activation), vllm_standin.fp8_key(True, *weight),
                                         torch.bfloat16, out_dtype, shape, **more)


def test_vllm_takes_ours_first(vllm):
    linear, ours = vllm
    kernel_class = ours.register()
    assert ours.register() is kernel_class
    assert linear._POSSIBLE_FP8_KERNELS[vllm_standin.PlatformEnum.CPU] == [kernel_class, vllm_standin.EngineKernel]
    assert type(choose(linear)) is kernel_class


def test_vllm_takes_ours_last(vllm):
    linear, ours = vllm
    kernel_class = ours.register(first=False)
    assert type(choose(linear)) is vllm_standin.EngineKernel
    sys.modules["vllm.envs"].VLLM_DISABLED_KERNELS.append("EngineKernel")
    assert type(choose(linear)) is kernel_class


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("leading", [(5,), (2, 3)])
def test_vllm_layer(vllm, leading, whole):
    linear, ours = vllm
    ours.register()
    kernel = choose(linear, activation=(-1, -1) if whole else (1, -1), weight=(-1, -1) if whole else (-1, 1))
    layer, x, bias = Layer(48, 64, whole), torch.randn(*leading, 64, dtype=torch.bfloat16), torch.randn(48).bfloat16()
    kernel.process_weights_after_loading(layer)
    out = kernel.apply_weights(layer, x, bias)
    assert out.shape == (*leading, 48) and out.dtype == torch.bfloat16
    exact = x.double() @ (layer.weight.double() * layer.weight_scale.double().view(1, -1)) + bias.double()
    assert torch.nn.functional.cosine_similarity(out.double().view(-1), exact.view(-1), 0) > 0.998


def test_vllm_layer_that_quantises(vllm):
    linear, ours = vllm
    kernel = choose(linear, force_kernel=ours.register(quantises=True))
    layer, x = Layer(48, 64), torch.randn(2, 3, 64, dtype=torch.bfloat16)
    expected_out = ft.linear(x, layer.weight.t(), layer.weight_scale)
    assert type(kernel) is ours.Fp8RouteLinearKernel and torch.equal(kernel.apply_weights(layer, x), expected_out)
    layer.input_scale_ub = torch.tensor(1.0)  # a bound on the scale: vLLM's quantiser knows it, ours does not
    assert kernel.apply_weights(layer, x).shape == (2, 3, 48)


@pytest.mark.parametrize("asked, reason", [
    (dict(weight=(128, 128)), "takes weights scaled a tensor or a channel"),
    (dict(activation=(1, 128)), "takes activations scaled a tensor or a token"),
    (dict(out_dtype=torch.float32), "writes bfloat16 and float16, not torch.float32"),
])
def test_vllm_refusals_have_reasons(vllm, asked, reason):
    linear, ours = vllm
    with pytest.raises(ValueError, match=reason):
        choose(linear, force_kernel=ours.register(), **asked)


def test_vllm_static_activation_is_left_to_the_other_class(vllm):
    linear, ours = vllm
    with pytest.raises(ValueError, match="quantises activations a token"):
        choose(linear, static=True, force_kernel=ours.Fp8RouteLinearKernel)


def test_vllm_batch_invariant(vllm):
    linear, ours = vllm
    sys.modules["vllm.envs"].VLLM_BATCH_INVARIANT = True
    kernel, layer = choose(linear, force_kernel=ours.register(quantises=True)), Layer(48, 64)
    x = torch.randn(40, 64, dtype=torch.bfloat16)
    every = kernel.apply_weights(layer, x)
    for m in (1, 9):
        assert torch.equal(kernel.apply_weights(layer, x[:m]), every[:m])


def test_vllm_elsewhere_says_where_it_runs(adaptor):
    with present(vllm_standin.modules("ROCM"), also_forget=("vllm_kernel",)):
        assert adaptor("vllm_kernel").Fp8RouteScaledMMLinearKernel.is_supported() == (
            False, "runs on CUDA devices and CPUs")
