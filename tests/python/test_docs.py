"""The documents' Python, as it stands there, in a process that has imported nothing.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What a reader has already.
MODEL = """
import torch
layer, x = torch.nn.Linear(64, 32), torch.randn(3, 64)
codes = [torch.randn(16, 64).to(torch.float8_e4m3fn) for _ in range(2)]
model = lambda x: torch._scaled_mm(codes[0], codes[1].t(), torch.ones(()), torch.ones(()), out_dtype=torch.bfloat16)
"""


def blocks(document):
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.S)


def run(text, tmp_path):
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"), XDG_CACHE_HOME=str(tmp_path))
    return subprocess.run([sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, env=environment)


def test_readme(tmp_path):
    (block,) = blocks("README.md")
    done = run(f"{MODEL}\n{block}\nprint(*y.shape, fp8route.stats()['torch._scaled_mm'])", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 32 {'routed': 1, 'original': 0}\n"


def test_operators_and_drop_ins(tmp_path):
    operators, dropins, _ = blocks("docs/pytorch.md")
    done = run(f"{operators}\nprint(*y.shape, y.dtype)", tmp_path)
    assert done.returncode == 0 and done.stdout == "3 14336 torch.bfloat16\n", done.stderr
    done = run(f"{MODEL}\n{dropins}", tmp_path)
    assert done.returncode == 0 and "'routed': 1, 'original': 0" in done.stdout, done.stderr


def test_callables(tmp_path):
    """But for the race itself, which takes minutes: test_tune.py has one. Its callable runs, and is right."""
    *_, callables = blocks("docs/pytorch.md")
    without_race, races = re.subn(r"^fp8route\.tune\(.*$", "", callables, flags=re.M)
    check = """
import fp8route.torch as ft
(a, scale_a), (b, scale_b) = (ft.quantize(torch.randn(*shape, device=device)) for shape in ((3, 64), (32, 64)))
ours, mine = (ft.run_on(name, a, b.t(), scale_a, scale_b) for name in ("reference" if device == "cpu" else "cuda", "mine"))
assert torch.allclose(ours.float(), mine.float(), rtol=0.02, atol=0.05)
try:
    ft.run_on("mine", a, b.t(), scale_a, scale_b, torch.ones(32, device=device))
except fp8route.Error as error:
    print(error)
"""
    done = run(without_race + check, tmp_path)
    assert races == 1 and done.returncode == 0, done.stderr
    assert re.search("^  mine +eligible", done.stdout, re.M) and "takes no bias" in done.stdout


def test_ranks_agree(tmp_path):
    """One rank without a GPU, by gloo."""
    block = blocks("docs/engines.md")[-1].replace('f"cuda:{torch.cuda.current_device()}"', '"cpu"').replace('"cuda"', '"cpu"')
    one = f"import torch\ntorch.distributed.init_process_group('gloo', init_method='file://{tmp_path}/store', rank=0, world_size=1)"
    done = run(f"{one}\n{block}\ntorch.distributed.destroy_process_group()", tmp_path)
    assert done.returncode == 0, done.stderr
