"""What callables, layers and drop-ins do when they are used against their sense: no wrong number, no wait without end.

SPDX-License-Identifier: Apache-2.0
"""
import copy
import gc
import pickle
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

import fp8route
import fp8route.torch as ft
from fp8route import _named, compat
from fp8route.compat import count
from fp8route.compat import sgl_kernel
from fp8route.compat import torch as torch_dropin
from operands import product
from test_backends import backend, plain  # noqa: F401 -- a fixture


@pytest.fixture
def often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(count, function):
    threads = [threading.Thread(target=function, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def raising(error):
    def fn(*_):
        raise error
    return fn


@pytest.mark.parametrize("error", (KeyboardInterrupt(), SystemExit(0), GeneratorExit(), RecursionError()))
def test_whatever_a_callable_raises_the_product_fails(backend, capfd, error):
    backend("mine", raising(error))
    with pytest.raises(fp8route.Error, match="FP8R_ERROR_DEVICE"):
        ft.run_on("mine", *product(4, 16, 32))
    assert type(error).__name__ in capfd.readouterr().err


@pytest.mark.parametrize("returned", (torch.ones(16), torch.ones(()), torch.ones(1, 16), torch.ones(4, 1), 5, "out", (1,)))
def test_what_is_not_of_out_s_shape_is_not_spread(backend, capfd, returned):
    backend("mine", lambda *_: returned)
    with pytest.raises(fp8route.Error):
        ft.run_on("mine", *product(4, 16, 32))
    assert "it must be a tensor of out's shape, [4, 16], or None" in capfd.readouterr().err


def test_a_callable_that_comes_back_to_itself_fails(backend, capfd):
    backend("mine", lambda a, b, scale_a, scale_b, bias, out: ft.scaled_mm(a, b, scale_a, scale_b), priority=1000)
    with pytest.raises(RuntimeError, match="backend mine failed"):
        ft.scaled_mm(*product(4, 16, 32))
    assert "products that come back to it" in capfd.readouterr().err


def test_a_callable_may_ask_another_backend(backend):
    backend("mine", lambda a, b, scale_a, scale_b, bias, out: ft.run_on("reference", a, b, scale_a, scale_b))
    operands = product(4, 16, 32)
    assert torch.equal(ft.run_on("mine", *operands), ft.run_on("reference", *operands))


def test_supports_that_multiplies_does_not_wait_for_itself(backend):
    operands = product(4, 16, 32)
    words = []

    def supports(problem):
        try:
            ft.scaled_mm(*operands)
        except RuntimeError as error:
            words.append(str(error))
            raise
        return True

    backend("mine", plain, supports, priority=1000)
    together(1, lambda _: ft.scaled_mm(*operands))
    assert "asks for a product while it is asked" in words[0]


def test_supports_that_explains_is_asked_once(backend):
    backend("mine", plain, lambda problem: fp8route.explain("4x16x32").chosen is not None)
    ft.run_on("mine", *product(4, 16, 32))


@pytest.mark.parametrize("answer, verdict", ((1, "eligible"), (0, "refused"), (None, "refused"), ("", "refused"), ("no", "refused")))
def test_answers_are_true_or_false(backend, answer, verdict):
    backend("mine", plain, lambda problem: answer)
    row = next(each for each in fp8route.explain("4x16x32").candidates if each.backend == "mine")
    assert row.verdict == verdict and row.sentence


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="must be functions"):
        fp8route.register_backend("mine", 5)
    with pytest.raises(TypeError, match="must be functions"):
        fp8route.register_backend("mine", plain, True)


def test_registrations_at_once_all_count(often):
    together(12, lambda i: fp8route.register_backend(f"mine{i}", plain))
    names = {each["name"] for each in fp8route.backends()}
    together(12, lambda i: fp8route.unregister_backend(f"mine{i}"))
    assert {f"mine{i}" for i in range(12)} <= names
    assert not any(each["name"].startswith("mine") for each in fp8route.backends())


def test_plans_of_named_rows_end():
    a, b, _, _ = product(1, 16, 32)
    ended, destroy = [], _named.L.plan_destroy
    try:
        _named.L.plan_destroy = lambda address: (ended.append(address), destroy(address))
        for m in range(1, _named._PLANS_MOST + 40):
            ft.run_on("reference", a.expand(m, 32), b)
    finally:
        _named.L.plan_destroy = destroy
    gc.collect()
    assert len(_named._plans) <= _named._PLANS_MOST and len(ended) >= 39


def test_counts_survive_a_reset(often):
    failures = []

    def work(i):
        try:
            for _ in range(3000):
                count("test", True) if i else fp8route.stats(reset=True)
        except KeyError as error:
            failures.append(error)

    together(4, work)
    fp8route.stats(reset=True)
    assert not failures


def test_counts_outlive_their_threads():
    fp8route.stats(reset=True)
    before = len(compat._counts)
    for _ in range(20):
        together(4, lambda i: count("test", i % 2 == 0))
    gc.collect()
    assert len(compat._counts) <= before + 1
    assert fp8route.stats(reset=True) == {"test": {"routed": 40, "original": 40}}
    assert fp8route.stats() == {}


def test_installs_at_once_keep_the_original(often):
    original = torch._scaled_mm
    for _ in range(20):
        together(4, lambda _: fp8route.install("torch"))
        fp8route.uninstall()
        assert torch._scaled_mm is original


def test_an_exception_inside_uninstalls():
    original = torch._scaled_mm
    with pytest.raises(ZeroDivisionError):
        with fp8route.install("torch"), fp8route.install("torch"):
            1 / 0
    assert torch._scaled_mm is original and not fp8route.installed()


def test_a_trace_counts_what_came_before_a_registration(backend, tmp_path):
    operands = product(4, 16, 32)
    with fp8route.trace(tmp_path / "outer"):
        for _ in range(5):
            ft.scaled_mm(*operands)
        backend("mine")
        with fp8route.trace(tmp_path / "inner"):
            for _ in range(3):
                ft.scaled_mm(*operands)
        for _ in range(6):
            ft.scaled_mm(*operands)
    assert sum(fp8route.read_trace(tmp_path / "outer").values()) == 11
    assert sum(fp8route.read_trace(tmp_path / "inner").values()) == 3


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16, torch.float64))
def test_a_layer_that_is_cast_keeps_codes_and_scales(dtype):
    layer = ft.Linear.from_float(torch.nn.Linear(32, 16))
    x = torch.randn(3, 32).to(torch.bfloat16)
    before = layer(x)
    cast = copy.deepcopy(torch.nn.Sequential(layer)).to(dtype)
    assert cast[0].weight.dtype == torch.float8_e4m3fn and cast[0].weight_scale.dtype == torch.float32
    assert torch.equal(cast[0].weight.view(torch.uint8), layer.weight.view(torch.uint8))
    if dtype is not torch.float64:
        assert cast[0].bias.dtype == dtype
        torch.testing.assert_close(cast(x), before, rtol=2 ** -7, atol=2 ** -7)
    assert cast.to("meta")[0].weight.device.type == "meta"


def test_a_layer_in_two_places_is_replaced_in_both():
    layer = torch.nn.Linear(8, 8)
    model = torch.nn.Sequential(layer, torch.nn.ReLU(), layer)
    assert ft.quantize_linears(model) == 1
    assert isinstance(model[0], ft.Linear) and model[0] is model[2]


@pytest.mark.parametrize("keywords", ({"scale_a": None}, {"scale_b": None}, {"scale_result": torch.ones(3)},
                                      {"scale_result": torch.ones((), dtype=torch.bfloat16)}))
def test_what_torch_refuses_the_drop_in_does_not_guess(keywords):
    a, b, scale_a, scale_b = product(16, 32, 32, rows=False)
    given = {"scale_a": scale_a, "scale_b": scale_b, "out_dtype": torch.bfloat16, **keywords}
    with pytest.raises((TypeError, RuntimeError)) as expected:
        torch._scaled_mm(a, b, **given)
    with pytest.raises(expected.type):
        torch_dropin._scaled_mm(a, b, **given)


def test_a_scale_that_sgl_kernel_needs_is_not_left_out():
    a, b, scale_a, scale_b = product(16, 32, 32)
    for missing in ((None, scale_b, torch.bfloat16), (scale_a, None, torch.bfloat16), (scale_a, scale_b, None)):
        with pytest.raises(RuntimeError, match="a scale is missing, or out_dtype"):
            sgl_kernel.fp8_scaled_mm(a, b, *missing)


def test_errors_reach_another_process():
    with pytest.raises(fp8route.Error) as raised:
        fp8route.explain("1x2")
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is fp8route.Error and again.status == raised.value.status and str(again) == str(raised.value)


@pytest.mark.parametrize("activation", ("relu", "gelu"))
def test_a_transformer_of_torch_s_takes_the_layers(activation):
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, activation=activation, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2).eval()
    x = torch.randn(2, 5, 64)
    with torch.inference_mode():
        before = model(x)
        assert ft.quantize_linears(model) == 4
        torch.testing.assert_close(model(x), before, rtol=0.1, atol=0.2)
    assert not any(module.training for module in model.modules())


def test_what_c_would_cut_short_is_refused():
    a, b, _, _ = product(4, 16, 32)
    for call in (lambda: fp8route.explain("1x2x3\0"), lambda: ft.run_on("reference\0x", a, b),
                 lambda: fp8route.register_backend("mine", plain, rev="1\0")):
        with pytest.raises(ValueError, match="holds a NUL"):
            call()
    with pytest.raises(ValueError, match="priority is 1099511627776"):
        fp8route.register_backend("mine", plain, priority=2 ** 40)
    for device in ("cuda:4294967296", "cuda:\u00b2"):
        with pytest.raises(ValueError, match="it must be cpu, cuda or cuda:INDEX"):
            fp8route.backends(device)
