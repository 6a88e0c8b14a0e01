#!/usr/bin/env python3
"""What a call costs on the host: fp8route's operators and drop-ins beside torch's own, in one process, interleaved.

On a CPU the product is the smallest that torch takes at full speed, so that little but the call is left; on a GPU only
queueing is timed, with products short enough that the queue never fills.

Usage: bench/torch_host_cost.py [--device cpu|cuda] [--calls N] [--rounds N] [--out FILE] [--commit NAME]
       (torch; prints a table, FILE gets JSON)
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import datetime
import json
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

import torch

import fp8route
import fp8route.torch as ft
from fp8route import _operators
from fp8route.compat import flashinfer, sgl_kernel
from fp8route.compat import torch as dropin

theirs = torch._scaled_mm


def candidates(device):
    """(name, function) pairs; what torch does not take on this device is left out."""
    n = k = 256 if device == "cuda" else 32
    x = torch.randn(1, k, device=device).bfloat16()
    a, scale_a = ft.quantize(x)
    weight, weight_scale = ft.quantize(torch.randn(n, k, device=device))
    b, scale_b, one = weight.t(), weight_scale.t().contiguous(), torch.ones((), device=device)
    out, bf16 = torch.empty(1, n, dtype=torch.bfloat16, device=device), torch.randn(k, n, device=device).bfloat16()
    a3, b3 = a[None], b[None]
    kind = torch.bfloat16
    table = [
        ("torch.mm bf16", lambda: torch.mm(x, bf16)),
        ("torch._scaled_mm tensor-wise", lambda: theirs(a, b, one, one, out_dtype=kind)),
        ("torch._scaled_mm row-wise", lambda: theirs(a, b, scale_a, scale_b, out_dtype=kind, use_fast_accum=True)),
        ("fp8route.torch.scaled_mm tensor-wise", lambda: ft.scaled_mm(a, b, one, one)),
        ("fp8route.torch.scaled_mm row-wise", lambda: ft.scaled_mm(a, b, scale_a, scale_b)),
        ("  the operator itself", lambda: torch.ops.fp8route.scaled_mm.default(a, b, scale_a, scale_b)),
        ("  with out=", lambda: ft.scaled_mm(a, b, scale_a, scale_b, out=out)),
        ("  through Python, without the fast path", lambda: _operators.REAL["scaled_mm"](a, b, scale_a, scale_b)),
        ("fp8route.torch.linear, bf16 x", lambda: ft.linear(x, weight, weight_scale)),
        ("fp8route.torch.bmm", lambda: ft.bmm(a3, b3, one, one)),
        ("fp8route.torch.quantize", lambda: ft.quantize(x)),
        ("compat.torch._scaled_mm row-wise", lambda: dropin._scaled_mm(a, b, scale_a, scale_b, out_dtype=kind, use_fast_accum=True)),
        ("compat.sgl_kernel.fp8_scaled_mm", lambda: sgl_kernel.fp8_scaled_mm(a, b, scale_a, weight_scale, kind)),
        ("compat.flashinfer.bmm_fp8", lambda: flashinfer.bmm_fp8(a3, b3, one, one, kind)),
    ]
    taken = []
    for name, function in table:
        try:
            function()
        except RuntimeError:
            continue
        taken.append((name, function))
    return taken


def time_calls(function, calls, device):
    """Microseconds a call."""
    if device == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter_ns()
    for _ in range(calls):
        function()
    return (time.perf_counter_ns() - begin) / calls / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out")
    parser.add_argument("--commit", default="", help="of what is measured, for the file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = candidates(options.device)
    times = {name: [] for name, _ in table}
    for turn in range(options.rounds + 1):
        for name, function in random.sample(table, len(table)):
            us = time_calls(function, options.calls, options.device)
            if turn > 0:  # the first warms up
                times[name].append(us)
    medians = {name: sorted(values)[len(values) // 2] for name, values in times.items()}
    print(f"{fp8route.device_name(options.device)}, torch {torch.__version__}, fast path: {ft.fast_path() or 'in use'}")
    for name in times:
        print(f"{name:42} {medians[name]:8.2f} us a call, {min(times[name]):.2f} to {max(times[name]):.2f}")
    if options.out:
        record = {"schema": "fp8route.host_cost/1", "device": fp8route.device_name(options.device), "torch": torch.__version__,
                  "fp8route": fp8route.__version__, "commit": options.commit, "command": " ".join(sys.argv),
                  "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                  "fast_path": not ft.fast_path(), "calls": options.calls,
                  "us": {name: {"median": medians[name], "samples": values} for name, values in times.items()}}
        pathlib.Path(options.out).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
