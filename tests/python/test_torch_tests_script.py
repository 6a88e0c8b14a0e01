"""scripts/torch_scaled_mm_tests, on a file made like PyTorch's own.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="torch's own test library needs expecttest")

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "torch_scaled_mm_tests"
TESTS = '''
import unittest
import torch

class TestFP8MatmulCPU(unittest.TestCase):
    def test_float8_routed_cpu(self):
        a = torch.ones(4, 32).to(torch.float8_e4m3fn)
        rows = torch._scaled_mm(a, a.t(), torch.ones(4, 1), torch.ones(1, 4), out_dtype=torch.float32)
        self.assertTrue(bool((rows == 32).all()))  # torch itself has no row-wise scales on a CPU

    def test_float32_output_errors_with_bias_cpu(self):
        self.fail("as torch has it")

    def test_blockwise_is_left_out_cpu(self):
        self.fail("not to be run")

    def test_other_is_left_out_cpu(self):
        self.fail("not to be run")

class TestFP8MatmulCUDA(unittest.TestCase):
    def test_float8_elsewhere_cuda(self):
        self.fail("not to be run")
'''


def run(folder, extra=""):
    file = folder / "test_scaled_matmul_cuda.py"
    file.write_text(TESTS + extra)
    return subprocess.run([sys.executable, SCRIPT, file, "--device", "cpu"], capture_output=True, text=True)


def test_exceptions_are_not_failures(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed    test_float8_routed_cpu" in done.stdout
    assert "exception test_float32_output_errors_with_bias_cpu: fp8route adds a bias" in done.stdout
    assert "torch._scaled_mm: 1 calls routed, 0 handed to torch" in done.stdout
    assert "1 passed, 0 failed, 1 skipped" in done.stdout


def more(line):
    """Another case, of that one line."""
    return (f"\n    def test_float8_wrong_cpu(self):\n        {line}\n"
            "TestFP8MatmulCPU.test_float8_wrong_cpu = TestFP8MatmulCUDA.test_float8_wrong_cpu\n")


def test_another_failure_is_one(tmp_path):
    done = run(tmp_path, more('self.assertNotIn("fp8route", torch._scaled_mm.__module__ or "")'))
    assert done.returncode == 1 and "failed    test_float8_wrong_cpu: AssertionError: 'fp8route'" in done.stdout


def test_what_fails_without_fp8route_is_an_exception(tmp_path):
    done = run(tmp_path, more("self.assertEqual(1, 2)"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_float8_wrong_cpu: torch's own functions fail it, too: AssertionError: 1 != 2" in done.stdout


def test_torchs_refusal_excuses_no_wrong_result(tmp_path):
    done = run(tmp_path, more("a = torch.ones(4, 32).to(torch.float8_e4m3fn); self.assertEqual(33, torch._scaled_mm(a, a.t(), "
                              "torch.ones(4, 1), torch.ones(1, 4), out_dtype=torch.float32)[0, 0].item())"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "failed    test_float8_wrong_cpu: AssertionError: 33 != 32.0; torch's own functions: " in done.stdout


def test_no_such_file(tmp_path):
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True)
    assert done.returncode == 1 and "no PyTorch checkout" in done.stderr
