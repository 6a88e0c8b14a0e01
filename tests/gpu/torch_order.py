#!/usr/bin/env python3
"""PyTorch and the library in one process: imported before it, after it, and with a cuBLASLt of its own beside torch's. Products
through the C interface on torch's memory and stream agree with torch._scaled_mm; the vendor row says which file it took.
77, by name, where torch or a GPU is missing.

    torch_order.py FP8ROUTE_SO BENCH_GPU_FOLDER [CASE]

SPDX-License-Identifier: Apache-2.0"""
import ctypes
import os
import subprocess
import sys
from ctypes import byref, c_char_p, c_int32, c_size_t, c_void_p

CASES = ("before", "after", "two copies", "two copies, after")


class Info(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t)] + [(n, c_char_p) for n in ("name", "description", "rev", "library")] + \
               [("configs", c_void_p)] + [(n, c_int32) for n in ("priority", "is_built", "fits", "reason")] + \
               [("sentence", ctypes.c_char * 256), ("library_file", c_char_p)]


def open_library(path):
    from fp8route_c import Device, Options
    library = ctypes.CDLL(path)
    library.fp8r_last_error.restype = c_char_p
    library.fp8r_context_backend_count.restype = c_size_t
    context = c_void_p()
    options = Options(struct_size=ctypes.sizeof(Options))
    status = library.fp8r_context_create(Device(1, 0), byref(options), byref(context))
    if status != 0:
        sys.exit(f"context: {library.fp8r_last_error().decode()}")
    return library, context


def vendor(library, context):
    for i in range(library.fp8r_context_backend_count(context)):
        info = Info(struct_size=ctypes.sizeof(Info))
        library.fp8r_context_backend(context, c_size_t(i), byref(info))
        if info.name == b"cublaslt":
            return info
    return sys.exit("there is no row cublaslt")


def compare(torch, library, context, backend, m, n, k):
    from fp8route_c import Matmul, Pointers
    fp8 = torch.float8_e4m3fn
    a = torch.randn(m, k, device="cuda").to(fp8)
    b = torch.randn(n, k, device="cuda").to(fp8)
    scale_a, scale_b = torch.rand(m, 1, device="cuda") + 0.5, torch.rand(1, n, device="cuda") + 0.5
    out = torch.full((m, n), float("nan"), dtype=torch.bfloat16, device="cuda")
    matmul, plan = Matmul(), c_void_p()
    library.fp8r_matmul_parse(f"{m}x{n}x{k}".encode(), byref(matmul))
    status = library.fp8r_plan_create(context, byref(matmul), backend, byref(plan))
    if status != 0:
        sys.exit(f"{backend} {m}x{n}x{k}: {library.fp8r_last_error().decode()}")
    library.fp8r_plan_workspace.restype = c_size_t
    size = library.fp8r_plan_workspace(plan)
    space = torch.empty(size + 256, dtype=torch.uint8, device="cuda")
    start = space.data_ptr() + -space.data_ptr() % 256
    pointers = Pointers(ctypes.sizeof(Pointers), m, *[t.data_ptr() for t in (a, b, out, scale_a, scale_b)], None)
    stream = torch.cuda.current_stream().cuda_stream
    if library.fp8r_plan_run(plan, byref(pointers), c_void_p(start), c_size_t(size), c_void_p(stream)) != 0:
        sys.exit(library.fp8r_last_error().decode())
    want = torch._scaled_mm(a, b.t(), scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16, use_fast_accum=True)
    torch.cuda.synchronize()
    off = (out.float() - want.float()).abs().max().item() / want.float().abs().max().item()
    library.fp8r_plan_destroy.argtypes = [c_void_p]
    library.fp8r_plan_destroy(plan)
    if not off < 0.01:
        sys.exit(f"{backend} {m}x{n}x{k}: {off} of the largest value off torch's")


def run_case(case, path):
    """In a process of its own."""
    def with_torch():
        import torch
        x = torch.randn(256, 256, device="cuda").to(torch.float8_e4m3fn)
        one = torch.ones((), device="cuda")
        torch._scaled_mm(x, x.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)  # torch's cuBLASLt is in use
        return torch
    if case in ("before", "two copies"):
        torch = with_torch()
        library, context = open_library(path)
    else:
        library, context = open_library(path)
        torch = with_torch()
    info = vendor(library, context)
    if not info.fits:
        print(f"{case}: cublaslt {info.sentence.decode()}")
    for backend in (None, b"sm90", b"cuda") + ((b"cublaslt",) if info.fits else ()):
        for shape in ((1, 256, 256), (33, 512, 1024), (300, 1024, 2048)):
            compare(torch, library, context, backend, *shape)
    maps = open("/proc/self/maps", encoding="utf-8").read()
    copies = sorted({word for line in maps.splitlines() for word in line.split()[-1:] if "libcublasLt.so" in word})
    print(f"{case}: cublaslt from {info.library_file.decode()}; in the process: {', '.join(copies)}")
    if case == "before" and len(copies) != 1:
        sys.exit(f"{case}: a second copy was loaded")


def other_copy():
    """A cuBLASLt that is not torch's."""
    named = os.environ.get("FP8ROUTE_CUBLASLT", "")
    for file in (named, "/usr/local/cuda/lib64/libcublasLt.so.13"):
        if file and os.path.exists(file):
            return file
    return None


def main():
    path, folder = sys.argv[1:3]
    sys.path.insert(0, folder)
    if len(sys.argv) > 3:
        run_case(sys.argv[3], path)
        return 0
    try:
        import torch
    except ImportError:
        print("skipped: torch is not installed")
        return 77
    if not torch.cuda.is_available():
        print("skipped: torch sees no GPU")
        return 77
    failed = 0
    for case in CASES:
        environment = {k: v for k, v in os.environ.items() if k != "FP8ROUTE_CUBLASLT"}
        if case.startswith("two copies"):
            if not other_copy():
                print(f"skipped: {case}: there is no second cuBLASLt")
                continue
            environment["FP8ROUTE_CUBLASLT"] = other_copy()
        done = subprocess.run([sys.executable, __file__, path, folder, case], env=environment, check=False)
        if done.returncode != 0:
            print(f"{case}: failed with {done.returncode}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
