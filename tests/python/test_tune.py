"""Tuning and tracing from Python.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import re
import time

import pytest

torch = pytest.importorskip("torch")

import fp8route
import fp8route.torch as ft
from fp8route import _tune
from operands import product


@pytest.fixture
def tool():
    try:
        return _tune.program()
    except RuntimeError as error:
        pytest.skip(str(error))


@pytest.fixture
def clean():
    yield
    os.environ.pop("FP8ROUTE_TABLE", None)
    for name in fp8route._backends.registered():
        fp8route.unregister_backend(name)


def fast(a, b, scale_a, scale_b, bias, out):
    out.copy_((a.float() @ b.float()) * scale_b * scale_a)


def wrong(a, b, scale_a, scale_b, bias, out):
    out.copy_((a.float() @ b.float()) * scale_b * scale_a * 1.25)


def slow(*operands):
    time.sleep(0.002)
    fast(*operands)


def test_a_callable_races(tool, clean, tmp_path):
    """The right one is measured, the wrong one dropped, the slow one left behind; the route file is read back."""
    for name, function in (("fast", fast), ("wrong", wrong), ("slow", slow)):
        fp8route.register_backend(name, function, rev="7")
    out = tmp_path / "mine.routes"
    tuned = fp8route.tune("48x64", m=(1, 4), out=out, samples=tmp_path / "samples", cold=False, rounds=4, pairs=30)
    records = [json.loads(line) for line in open(tuned.samples)]
    assert records[0]["schema"] == "fp8route.samples/1" and records[0]["record"] == "run"
    dropped = [row["why"] for row in records if row["record"] == "dropped"]
    assert sum("wrong in" in why for why in dropped) == 2
    assert set(tuned.medians) == {"1x48x64", "4x48x64"}
    median = tuned.medians["4x48x64"]
    assert median["slow:call"] > 2000 and "wrong:call" not in median and "fast:call" in median
    text = out.read_text()
    assert text.startswith("fp8route-routes 1\n") and "entry Mx48x64" in text
    os.environ["FP8ROUTE_TABLE"] = str(out)
    fp8route._context.renew()
    assert str(out) in fp8route.route_files()
    assert fp8route.explain("4x48x64").source == "route"


def test_a_callable_that_wins_is_routed(tool, clean, tmp_path, monkeypatch):
    """Only itself and the oracle may run: it wins, and products go to it."""
    monkeypatch.setenv("FP8ROUTE_DENY", "cpu,blas")
    calls = []

    def counted(*operands):
        calls.append(operands[0].shape[0])
        fast(*operands)

    fp8route.register_backend("winner", counted, priority=-5)
    fp8route._context.renew()
    out = tmp_path / "mine.routes"
    fp8route.tune(["512x512"], m=(16,), out=out, samples=tmp_path / "samples", cold=False, rounds=4, pairs=30)
    assert "backend=winner config=call" in out.read_text()
    monkeypatch.setenv("FP8ROUTE_TABLE", str(out))
    fp8route._context.renew()
    explanation = fp8route.explain("16x512x512")
    assert explanation.chosen == "winner:call" and explanation.source == "route"
    calls.clear()
    ft.scaled_mm(*product(16, 512, 512))
    assert calls == [16]
    monkeypatch.undo()
    fp8route._context.renew()


def test_a_race_is_timed_on_its_own_device(tool, clean, cuda, tmp_path):
    """Where another device captured first, graphs still hold the runs: 64 MB take longer than 10 us, the callable longest."""
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(0), torch.cuda.graph(graph):
        torch.zeros(4, device="cuda:0")
    fp8route.register_backend("fast", fast)
    out = tmp_path / "mine.routes"
    tuned = fp8route.tune("8192x8192", m=(1,), device="cuda:1", out=out, samples=tmp_path / "samples", rounds=4, pairs=30)
    medians = tuned.medians["1x8192x8192"]
    assert min(medians.values()) > 10 and max(medians, key=medians.get) == "fast:call"
    assert "entry Mx8192x8192" in out.read_text() and "backend=fast" not in out.read_text()


def test_without_callables_the_program_tunes(tool, clean, tmp_path):
    tuned = fp8route.tune("48x64", m=(1, 2), out=tmp_path / "own.routes", samples=tmp_path / "samples", cold=False, budget="20s")
    assert tuned.routes == str(tmp_path / "own.routes") and "entry Mx48x64" in open(tuned.routes).read()


def test_every_tune_keeps_what_others_wrote(tool, clean, tmp_path, monkeypatch):
    """The program's, a quick one and those of callables, of whatever revision, in any order: one file, one folder of samples."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    few = {"m": 1, "cold": False, "rounds": 3, "pairs": 30}
    folders = set()

    def tune(family):
        tuned = fp8route.tune(family, **few)
        folders.add(next(part for part in (pathlib.Path(tuned.samples), *pathlib.Path(tuned.samples).parents)
                         if part.suffix == ".samples"))
        return tuned.routes

    routes = tune("16x24")
    _tune._run("tune", "--quick", "--family", "16x32", "--m", "1")
    fp8route.register_backend("mine", fast, rev="1")
    assert tune("16x40") == routes
    assert tune("16x24") == routes
    fp8route.unregister_backend("mine")
    fp8route.register_backend("mine", fast, rev="2")
    assert tune("16x24") == routes
    fp8route.unregister_backend("mine")
    assert tune("16x48") == routes
    assert tune("16x24") == routes
    text = open(routes).read()
    assert sorted(line for line in text.splitlines() if line.startswith("entry")) == [
        "entry Mx16x24", "entry Mx16x32 quick", "entry Mx16x40", "entry Mx16x48"]
    assert folders == {pathlib.Path(routes).with_suffix(".samples")}
    assert len(list(next(iter(folders)).glob("callables/*.jsonl"))) == 3
    monkeypatch.undo()
    fp8route._context.renew()


@pytest.mark.parametrize("families, wrong, what", [
    (["16x16", "16"], {}, 'family "16": expected NxK or [B*]MxNxK'), ("16x512x64", {}, 'family "16x512x64": expected NxK'),
    ("Mx512", {}, 'family "Mx512": expected a whole number N'), ("2x8:no", {}, 'family "2x8:no": expected one of'), ([], {}, "families is empty"), ("16x16", {"rounds": 0}, "rounds is 0"),
    ("16x16", {"pairs": -1}, "pairs is -1"), ("16x16", {"seed": "x"}, "seed is 'x'"), ("16x16", {"seed": -1}, "seed is -1"),
    ("16x16", {"budget": "10m"}, "budget is '10m': with registered callables"), ("16x16", {"m": None}, "m is None"),
    ("16x16", {"m": True}, "m is True")])
def test_a_race_says_what_is_wrong_before_it_measures(tool, clean, tmp_path, families, wrong, what):
    calls = []
    fp8route.register_backend("mine", lambda *operands: calls.append(1) or fast(*operands))
    given = {"m": 1, "out": tmp_path / "mine.routes", "samples": tmp_path / "samples", "rounds": 3, "pairs": 5, **wrong}
    with pytest.raises((ValueError, fp8route.Error), match=re.escape(what)):
        fp8route.tune(families, **given)
    assert not calls and not list(tmp_path.iterdir())


@pytest.mark.parametrize("change, why", [(("fp8route-routes 1", "something else"), "line 1"), (("threads=", "threads=9"), "threads="),
                                         (("operands=warm", "operands=cold"), "cold operands")])
def test_what_cannot_be_added_to_is_refused_first(tool, clean, tmp_path, change, why):
    out = tmp_path / "mine.routes"
    fp8route.tune("16x24", m=1, out=out, samples=tmp_path / "samples", cold=False, budget="20s")
    out.write_text(before := out.read_text().replace(*change))
    calls = []
    fp8route.register_backend("mine", lambda *operands: calls.append(1) or fast(*operands))
    with pytest.raises(RuntimeError, match=f"{why}.*; move it away, or name another file"):
        fp8route.tune("16x32", m=1, out=out, samples=tmp_path / "samples", cold=False)
    assert not calls and out.read_text() == before
    assert not (tmp_path / "samples" / "callables").exists()


@pytest.mark.parametrize("families, kind, what", [
    ([], ValueError, "families is empty"), (5, TypeError, "families is 5: it must be text"), ([5], TypeError, "families is [5]"),
    ("16x512x64", fp8route.Error, 'problem "16x512x64", position 1: expected the letter M'),
    ("Mx512", fp8route.Error, 'family "Mx512": expected a whole number N'), ("2x8:no", fp8route.Error, 'family "2x8:no": expected')])
def test_families_are_quoted_as_they_were_given(tool, tmp_path, families, kind, what):
    """By the program, too."""
    with pytest.raises(kind, match=re.escape(what)) as caught:
        fp8route.tune(families, m=1, out=tmp_path / "mine.routes", samples=tmp_path / "samples")
    assert kind is not fp8route.Error or caught.value.status == "FP8R_ERROR_INVALID_ARGUMENT"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("has_callable", [False, True])
def test_what_is_denied_stays_out_of_the_user_s_own_file(tool, clean, tmp_path, monkeypatch, has_callable):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("FP8ROUTE_DENY", "blas")
    if has_callable:
        fp8route.register_backend("mine", fast)
    for apart in ({}, {"out": tmp_path / "mine.routes"}, {"samples": tmp_path / "samples"}):
        with pytest.raises(fp8route.Error, match="FP8ROUTE_DENY is set.*: unset it, or name out and samples"):
            fp8route.tune("16x24", m=1, **apart)
    assert not list(tmp_path.iterdir())


def failing(*operands):
    raise LookupError("no such kernel")


def test_a_wrong_callable_is_named_once(tool, clean, tmp_path):
    for name, function in (("wrong", wrong), ("failing", failing)):
        fp8route.register_backend(name, function)
    with pytest.warns(UserWarning) as seen:
        tuned = fp8route.tune("16x24", m=(1, 2), out=tmp_path / "mine.routes", samples=tmp_path / "samples", cold=False, rounds=3,
                              pairs=5)
    texts = sorted(str(each.message) for each in seen)
    assert texts == ["failing:call is left out of 1x16x24: it raised LookupError: no such kernel",
                     f"wrong:call is left out of 1x16x24: {tuned.wrong['1x16x24']['wrong:call']}"]
    assert set(tuned.wrong) == {"1x16x24", "2x16x24"} and "wrong in" in texts[1] and seen[0].filename == __file__
    assert all(set(left_out) == {"wrong:call", "failing:call"} for left_out in tuned.wrong.values())


def test_a_default_that_raises_is_said_to(tool, clean, tmp_path):
    fp8route.register_backend("failing", failing, priority=1000)
    with pytest.raises(fp8route.Error, match="1x16x24: the default, failing:call, cannot be .*: it raised LookupError: no such kernel"):
        fp8route.tune("16x24", m=1, out=tmp_path / "mine.routes", samples=tmp_path / "samples", cold=False)


def test_the_program_s_notes_are_heard(tool, clean, tmp_path):
    """That it kept what a callable won, and that it replaced it."""
    few = {"out": tmp_path / "mine.routes", "samples": tmp_path / "samples", "cold": False}
    fp8route.tune("16x24", m=1, **few)
    kept = re.sub(r"m=1..1 .*backend=\S+ config=\S+", "m=3..3 backend=mine config=call", few["out"].read_text())
    few["out"].write_text(kept)
    with pytest.warns(UserWarning, match="^Mx16x24: nothing was measured now, and the routes that the file holds stay"):
        fp8route.tune("16x24", m=1, **few)
    assert few["out"].read_text() == kept
    with pytest.warns(UserWarning, match="^Mx16x24: its routes went to mine, which did not race here, and are replaced"):
        fp8route.tune("16x24", m=(1, 2), **few)


def test_the_default_is_what_an_untuned_library_takes(tool, clean, tmp_path, monkeypatch):
    """Also where a route decides, and another backend may be first by priority than the one that is expected to be fastest."""
    with fp8route._context.unrouted() as address:
        untuned = fp8route.explain("4x48x64", within=address).chosen
    out = tmp_path / "mine.routes"
    fp8route.tune("48x64", m=4, out=out, samples=tmp_path / "samples", cold=False, budget="20s")
    out.write_text(re.sub(r"backend=\S+ config=\S+", "backend=reference config=double", out.read_text()))
    monkeypatch.setenv("FP8ROUTE_TABLE", str(out))
    fp8route._context.renew()
    assert fp8route.explain("4x48x64").chosen == "reference:double"
    monkeypatch.delattr(_tune, "_default")
    entrants, default = _tune._candidates("4x48x64", "cpu")
    assert entrants[default][0] == untuned
    monkeypatch.undo()
    fp8route._context.renew()


def test_the_user_s_own_routes_decide(tool, clean, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tuned = fp8route.tune("48x64", m=1, cold=False, budget="20s")
    assert pathlib.Path(tuned.routes).is_relative_to(tmp_path) and pathlib.Path(tuned.samples).is_relative_to(tmp_path)
    assert fp8route.explain("1x48x64").source == "route" and fp8route.route_files()[0] == tuned.routes
    with pytest.raises(RuntimeError, match='^fp8route tune: family "48": it must be NxK'):
        fp8route.tune("48", m=1)
    monkeypatch.undo()
    fp8route._context.renew()


def test_without_the_program_the_refusal_says_so(monkeypatch):
    monkeypatch.setenv("FP8ROUTE_PROGRAM", "/nowhere/fp8route")
    with pytest.raises(RuntimeError, match="FP8ROUTE_PROGRAM"):
        fp8route.tune("48x64")


def test_where_there_is_no_program_its_variable_is_named(tmp_path, monkeypatch):
    """As from a wheel: neither beside the library nor on PATH. The README says the same."""
    monkeypatch.delenv("FP8ROUTE_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_tune.L, "path", str(tmp_path / "site-packages" / "fp8route" / "libfp8route.so"))
    with pytest.raises(RuntimeError, match=r"no wheel has it: .*FP8ROUTE_PROGRAM \(build/tool/fp8route of the checkout\)"):
        fp8route.tune("48x64")
    readme = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
    assert "export FP8ROUTE_PROGRAM=$PWD/build/tool/fp8route" in readme.split("## From Python")[1].split("\n## ")[0]


def test_trace(tmp_path):
    file = tmp_path / "trace"
    operands = product(3, 24, 32)
    with fp8route.trace(file):
        for _ in range(5):
            ft.scaled_mm(*operands)
        ft.run_on("reference", *operands)
    ft.scaled_mm(*operands)
    assert fp8route.read_trace(file) == {"3x24x32": 6}
    assert "FP8ROUTE_TRACE" not in os.environ
