"""Bars that are no ratio of two products: numbers of the host, of a process, of the quantiser.
SPDX-License-Identifier: Apache-2.0"""
import ctypes
import json
import os
import statistics
import subprocess
import tempfile
from ctypes import byref, c_double, c_void_p

from bars import Case
from fp8route_c import Failure, Matrix
from point import Point
from ratios import Result, combine, median_interval, paired

QUANTISED = [(65536, 4096), (49152, 5376), (32768, 14336), (16384, 28672)]


def ran(command):
    """A program, to its end. One that is not there costs what it was to say, not the run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from error


def last_line(done):
    return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"{done.args[0]} ended with {done.returncode}"


def parsed(text, name):
    """The JSON object that a program printed, or left in a file."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Failure(f"{name}: no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Failure(f"{name}: no JSON object")
    return found


def regret(bar, run):
    """Of `fp8route gate ROUTES --unseen`, read from --gate FILE or measured now."""
    if run.gate is None:
        command = [run.args.program, "gate", run.routes or "", "--unseen", "50", "--device", "cuda", "--json", "--budget",
                   run.args.gate_budget]
        done = ran(command)
        if done.returncode not in (0, 1):  # 1: the routes lose too much, which is what the bars are about
            raise Failure(last_line(done))
        run.gate = parsed(done.stdout, "fp8route gate")
    if "unseen" not in run.gate:
        raise Failure("the gate was one without --unseen")
    found = run.gate["unseen"]
    if found["counted"] == 0:
        raise Failure(f"no unseen problem was measured, {found['left']} were left by the budget")
    note = f"{found['counted']} problems, seed {run.gate.get('seed', 0)}, {found['left']} left by the budget"
    if bar.name == "regret-mean":
        mean = 100 * found["mean_regret"]
        return Result(mean, mean, mean, note=note)
    worst = 100 * found["worst_regret"]
    case = found["problems"][0]["problem"] if found["problems"] else ""
    return Result(worst, 100 * found["worst_low"], worst, worst, case, note)


def quantiser(bar, run):
    """3 bytes an element, against a copy that reads and writes as many."""
    machine, library = run.machine, run.library
    named = []
    for rows, cols in QUANTISED:
        halves, out, space = (machine.regions[name][0] for name in ("halves", "out", "space"))
        data = Matrix(halves, 3, 0, 1, rows, cols, 0, cols, 1)
        codes = Matrix(out, 1, 0, 1, rows, cols, 0, cols, 1)
        scale = Matrix(space, 5, 0, 1, rows, 1, 0, 1, 1)

        def quantise():
            library.ok(library.c.fp8r_quantize(machine.context, byref(data), byref(codes), byref(scale), 0,
                                               c_void_p(machine.stream)))

        def copy():
            library.cuda("bench_copy", out, halves, rows * cols * 3 // 2, machine.stream)
        samples = run.rounds_of([quantise, copy], repeats=2)
        named.append((f"{rows}x{cols}", paired(samples[1], samples[0])))
    return combine(bar, named)


def host(bar, run):
    """Per call, in us: scaled_mm and a plan's run, each above the bare launch of the same kernel."""
    point = Point(run.machine, Case(1, 4096, 4096), {("routed", "bare")})
    matmul, plan, pointers = point.matmuls["routed"], point.plans[0], point.pointers("routed", 0)
    for name in ("a", "b", "out", "scale_a", "scale_b"):
        getattr(matmul, name).data = getattr(pointers, name)
    results = [(c_double * 41)() for _ in range(3)]
    failed = run.library.kernels.bench_host(run.machine.context, byref(matmul), plan, byref(pointers),
                                            c_void_p(run.machine.stream), 41, *results)
    if failed:
        raise Failure(f"no bare launch of {point.labels['routed', 'bare']}")
    call, planned, bare = (list(r) for r in results)
    above = median_interval([x - y for x, y in zip(call, bare)])
    note = (f"bare {statistics.median(bare):.2f}, scaled_mm {statistics.median(call):.2f}, plan's run "
            f"{statistics.median(planned):.2f} us; {point.labels['routed', 'bare']}")
    point.close()
    return Result(*above, note=note)


def decision(bar, run):
    """The look itself, as bench_cpu times it; beside it a whole routed call on this device whose backend launches nothing."""
    matmul = run.library.parse("1x4096x4096:static")
    for i, name in enumerate(("a", "b", "out", "scale_a", "scale_b")):
        getattr(matmul, name).data = run.machine.regions["codes"][0] + (i << 26)
    ns = (c_double * 21)()
    if run.library.kernels.bench_decision(byref(matmul), 21, ns):
        raise Failure(run.library.c.fp8r_last_error().decode())
    with tempfile.TemporaryDirectory() as folder:
        done = ran([run.args.bench_cpu, "--results", folder, "decision"])
        files = os.listdir(folder)
        if not files:
            raise Failure(last_line(done))
        with open(os.path.join(folder, files[0]), encoding="utf-8") as file:
            found = parsed(file.read(), run.args.bench_cpu)["bars"][0]
    scale = found["mine_us"] * 1e3 / found["ratio"]
    return Result(found["mine_us"] * 1e3, *[scale * x for x in found["interval_95"]],
                  note=f"a routed call that launches nothing {statistics.median(list(ns)):.0f}")


def tflops(bar, run):
    named = []
    for case in bar.cases:
        samples = run.samples(case)["portable", "bare"]
        named.append((case.name(), [2e-6 * case.m * case.n * case.k / us for us in samples]))
    return combine(bar, named)


def first_call(bar, run):
    """Processes one after the other; the first of them may find files that nothing has read yet."""
    command = [run.args.first_call, "1x4096x14336:static"] + ([run.routes] if run.routes else [])
    found = []
    for _ in range(7):
        done = ran(command)
        if done.returncode != 0:
            raise Failure(last_line(done))
        found.append(parsed(done.stdout, "first_call"))
    beyond = [f["beyond_cuda_ms"] for f in found]
    note = (f"first process {beyond[0]:.0f}; median of CUDA's start {statistics.median(f['cuda_ms'] for f in found):.0f}, "
            f"context {statistics.median(f['context_ms'] for f in found):.0f}, product "
            f"{statistics.median(f['product_ms'] for f in found):.0f}")
    return Result(*median_interval(beyond), note=note)


def library(bar, run):
    size = os.path.getsize(os.path.realpath(run.args.library)) / 1e6
    return Result(size, size, size, note=os.path.basename(os.path.realpath(run.args.library)))
