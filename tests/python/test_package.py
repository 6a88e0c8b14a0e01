"""The package without torch: information, explanations, errors.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import subprocess
import sys

import pytest

import fp8route

PYTHON = pathlib.Path(fp8route.__file__).resolve().parent.parent


def run(*arguments):
    environment = dict(os.environ, PYTHONPATH=str(PYTHON))
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)


def test_info():
    done = run("-m", "fp8route", "info")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"fp8route {fp8route.__version__}\n")
    facts = json.loads(run("-m", "fp8route", "info", "--json").stdout)
    names = [row["name"] for row in facts["backends"]]
    assert facts["schema"] == "fp8route.python.info/1" and {"cpu", "blas", "reference"} <= set(names)
    assert facts["routes_id"] == fp8route.routes_id()


def test_info_names_the_user_s_file(tmp_path):
    """Whether it is there or not."""
    environment = dict(os.environ, PYTHONPATH=str(PYTHON), XDG_CACHE_HOME=str(tmp_path))
    command = [sys.executable, "-m", "fp8route", "info"]
    text = subprocess.run(command, capture_output=True, text=True, env=environment).stdout
    assert f"\n  the user's file: {tmp_path}/fp8route/cpu-" in text
    named = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, env=environment).stdout)
    assert pathlib.Path(named["user_route_file"]).parent == tmp_path / "fp8route"
    text = subprocess.run(command, capture_output=True, text=True, env=dict(environment, XDG_CACHE_HOME="here")).stdout
    assert "the user's file: none, XDG_CACHE_HOME (or HOME, where it is not set) is not an absolute path" in text
    assert fp8route.user_route_file() == json.loads(run("-m", "fp8route", "info", "--json").stdout)["user_route_file"]


def test_torch_is_not_imported():
    done = run("-c", "import sys, fp8route; fp8route.explain('1x64x64'); sys.exit('torch' in sys.modules)")
    assert done.returncode == 0, done.stderr


def test_without_torch_its_part_says_so_in_a_line():
    done = run("-c", "import sys; sys.modules['torch'] = None; import fp8route.torch")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: fp8route.torch needs PyTorch: pip install torch"


def test_explain():
    explanation = fp8route.explain("1x4096x14336:static")
    assert explanation.chosen and explanation.source in ("default", "route", "extrapolated", "neighbour")
    assert sum(row.verdict == "chosen" for row in explanation.candidates) == 1
    assert all(row.sentence for row in explanation.candidates)
    assert explanation.chosen in str(explanation)


def test_errors_are_the_library_s_own():
    with pytest.raises(fp8route.Error, match="position 5") as caught:
        fp8route.explain("1x40")
    assert caught.value.status == "FP8R_ERROR_INVALID_ARGUMENT"
    with pytest.raises(ValueError, match="cpu, cuda or cuda:INDEX"):
        fp8route.explain("1x2x3", "tpu")
    assert run("-m", "fp8route", "explain", "1x40").returncode == 2
    assert run("-m", "fp8route", "explain").returncode == 2
    with pytest.raises(TypeError, match="problem is None: it must be text"):
        fp8route.explain(None)


def test_a_reader_that_has_enough_is_no_error():
    done = subprocess.run(f"{sys.executable} -m fp8route info | true", shell=True, capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=str(PYTHON)))
    assert done.returncode == 0 and done.stderr == ""


def test_a_trace_that_cannot_be(tmp_path):
    with pytest.raises(FileNotFoundError), fp8route.trace(tmp_path / "nowhere" / "file"):
        pass
    file = tmp_path / "trace"
    with fp8route.trace(file):
        pass
    assert fp8route.read_trace(file) == {}
    for text in ("hello", "[1]", '{"problem": "1x2x3"}'):
        file.write_text(text + "\n")
        with pytest.raises(ValueError, match="line 1: it is not a line of a trace"):
            fp8route.read_trace(file)


def test_a_path_that_is_longer_leaves_the_room_as_it_was():
    import ctypes
    from fp8route import _context, _library
    for size in (0, 1, 3, 20):
        room = ctypes.create_string_buffer(b"?" * 32)
        assert _library.context_user_route_file(_context.context("cpu"), room, size) != 0
        assert room.value == b"?" * 32


def test_a_place_that_is_no_text(tmp_path):
    """Bytes that are no UTF-8 are a path all the same."""
    environment = dict(os.environ, PYTHONPATH=str(PYTHON), XDG_CACHE_HOME=os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    script = "import os, fp8route; print(ascii(os.fsencode(fp8route.user_route_file())))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert f"{tmp_path}/\\xff/fp8route/cpu-" in done.stdout, done.stderr


def test_a_backend_is_a_function():
    with pytest.raises(TypeError, match="must be functions"):
        fp8route.register_backend("mine", 3)
    assert fp8route.explain("1x64x64").chosen


@pytest.mark.parametrize("m", [0, (), (1, 0), (1.5,)])
def test_tune_takes_whole_numbers_of_rows(m):
    with pytest.raises(ValueError, match="m is .*: it must be whole numbers from 1"):
        fp8route.tune("48x64", m=m)


def test_a_missing_library_is_one_line():
    done = subprocess.run([sys.executable, "-c", "import fp8route"], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=str(PYTHON), FP8ROUTE_LIBRARY="/nowhere/libfp8route.so"))
    assert done.returncode != 0 and "ImportError: libfp8route.so.0 cannot be loaded" in done.stderr.splitlines()[-1]
