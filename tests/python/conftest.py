"""What the Python tests share: the package of this checkout, devices, operands.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))


def _has_cuda():
    try:
        import torch
        import fp8route
        fp8route.backends("cuda")
        return torch.cuda.is_available()
    except (ImportError, RuntimeError):
        return False


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    if request.param == "cuda" and not _has_cuda():
        pytest.skip("no CUDA device, or a torch or a library without CUDA")
    return request.param


@pytest.fixture
def cuda():
    if not _has_cuda():
        pytest.skip("no CUDA device, or a torch or a library without CUDA")
    return "cuda"
