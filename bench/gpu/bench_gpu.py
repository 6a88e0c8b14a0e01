#!/usr/bin/env python3
"""Measures every bar of the GPU backends (bars.py) beside torch and the floor, prints one table and keeps a result file.
Where torch is missing, cuBLASLt's first heuristic plays its part, and the table says so.

    bench_gpu.py --library libfp8route.so --kernels libbench_gpu.so [--only BAR,...] [--rounds N] [--routes FILE]
                 [--results DIR] [--commit TEXT] [--program fp8route] [--gate FILE.json] [--first-call PROGRAM]
                 [--bench-cpu PROGRAM] [--list]

--only makes shards: each writes a result file of its own. --gate: what `fp8route gate ROUTES --unseen 50 --json` printed.
Exit: 0 every bar that was measured holds, 1 one does not, 2 usage, 4 nothing was measured, 77 no GPU, 130 interrupted; what was
measured until then is kept.
SPDX-License-Identifier: Apache-2.0"""
import argparse
import glob
import itertools
import json
import os
import signal
import statistics
import sys
import time
from ctypes import byref, c_double, c_void_p

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import singles
from bars import BARS, SETS, Case
from fp8route_c import Failure, Library
from point import Machine, Point
from ratios import combine, geomean_interval, paired, reaches

SKIPPED, INTERRUPTED = 77, 130


def import_torch():
    try:
        import torch
        return torch if torch.cuda.is_available() else None
    except ImportError:
        return None


class Run:
    """The points that were measured, each once for all bars that need it."""

    def __init__(self, args, library, bars):
        self.args, self.library, self.bars, self.gate = args, library, bars, None
        self.routes = args.routes or self._shipped()
        if args.gate:
            with open(args.gate, encoding="utf-8") as file:
                self.gate = singles.parsed(file.read(), args.gate)
        self.machine = Machine(library, self.routes, import_torch())
        self.wanted, self.measured = self._wanted(), {}
        self.warm(Case(4096, 8192, 8192), 1000)

    def warm(self, case, ms):
        """Clocks as under load: an idle device takes a while to reach them."""
        point = Point(self.machine, case, {("routed", "bare")})
        point.replay(ms)
        point.close()

    def _shipped(self):
        """The route file of the source tree that this machine takes."""
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "routes")
        for file in sorted(glob.glob(os.path.join(folder, "*.routes"))):
            try:
                self.library.c.fp8r_context_destroy(self.library.context(file))
                return os.path.normpath(file)
            except Failure:
                continue
        return None

    def _wanted(self):
        wanted = {}
        for bar in self.bars:
            for case in bar.cases:
                ways, sustained = wanted.setdefault(case, [set(), False])
                wanted[case][1] = sustained or bar.sustained
                ways.update({bar.over, bar.under}, {("routed", mode) for mode in bar.beside})
        return wanted

    def measure_all(self):
        """Short products first; what is to be sustained last, behind a second of load."""
        cases = sorted(self.wanted, key=lambda c: (self.wanted[c][1], c.m * c.n * c.k))
        is_hot = False
        for i, case in enumerate(cases):
            ways, sustained = self.wanted[case]
            try:
                self.measured[case] = self._measure(case, ways, 10 if not sustained else 100 if is_hot else 1500, 7 + i)
            except RuntimeError as failure:  # ours or torch's
                self.measured[case] = ({}, {}, dict.fromkeys(ways, f"{case.name()}: {failure}"))
            is_hot = is_hot or sustained

    def _measure(self, case, ways, ms, seed):
        point = Point(self.machine, case, ways)
        try:
            point.replay(ms)
            return point.measure(self.args.rounds, seed), dict(point.labels), dict(point.failures)
        finally:
            point.close()

    def samples(self, case):
        samples, _, failures = self.measured[case]
        if failures:
            raise Failure(next(iter(failures.values())))
        return samples

    def rounds_of(self, calls, repeats):
        """Samples in us of plain calls, each captured `repeats` times."""
        graphs = []
        for call in calls:
            graph = c_void_p()
            call()
            self.library.cuda("bench_capture_begin", self.machine.stream)
            for _ in range(repeats):
                call()
            self.library.cuda("bench_capture_end", self.machine.stream, byref(graph))
            graphs.append(graph)
        us = (c_double * (len(calls) * self.args.rounds))()
        self.library.cuda("bench_rounds", (c_void_p * len(graphs))(*graphs), len(graphs), self.args.rounds, 3,
                          self.machine.stream, us)
        for graph in graphs:
            self.library.cuda("bench_graph_free", graph)
        return [[us[r * len(calls) + i] / repeats for r in range(self.args.rounds)] for i in range(len(calls))]

    def ratios(self, bar, over, under):
        named = []
        for case in bar.cases:
            samples, _, failures = self.measured[case]
            if over not in samples or under not in samples:
                raise Failure(failures.get(over) or failures.get(under) or f"{case.name()} was not measured")
            named.append((case.name(), paired(samples[over], samples[under])))
        return named

    def judge(self, bar):
        if bar.special:
            return getattr(singles, bar.special)(bar, self)
        groups = [f"{c.n}x{c.k}, M {s[0]}-{s[-1]}" for c in bar.cases for s in SETS if c.m in s]
        result = combine(bar, self.ratios(bar, bar.over, bar.under), groups)
        for mode in bar.beside:
            ratio = geomean_interval([r for _, r in self.ratios(bar, bar.over, ("routed", mode))])
            result.note += f", {mode} {ratio[0]:.3f}"
        return result


def judged(bar, run):
    """A bar's row. Whatever goes wrong in one bar costs its row, not those of the others."""
    try:
        return row_of(bar, run.judge(bar), None)
    except Failure as failure:
        return row_of(bar, None, str(failure))
    except Exception as error:  # pylint: disable=broad-exception-caught
        return row_of(bar, None, f"{type(error).__name__}: {error}")


def row_of(bar, result, failure):
    if result is None:
        return {"bar": bar.name, "what": bar.what, "must": bar.must, "aim": bar.aim, "measured": False, "note": failure}
    return {"bar": bar.name, "what": bar.what, "must": bar.must, "aim": bar.aim, "larger_is_better": bar.larger,
            "judge": bar.judge, "unit": bar.unit, "measured": True, "ratio": round(result.ratio, 4),
            "interval_95": [round(result.low, 4), round(result.high, 4)], "worst_case": result.worst_case,
            "worst": None if result.worst is None else round(result.worst, 4), "note": result.note,
            "holds": reaches(bar, result, bar.must), "reaches_aim": reaches(bar, result, bar.aim)}


def print_row(row):
    if not row["measured"]:
        print(f"{row['bar']:16} not measured: {row['note']}")
        return
    sign = ">=" if row["larger_is_better"] else "<="
    low, high = row["interval_95"]
    worst = f"; worst {row['worst']:.3f} {row['worst_case']}" if row["worst_case"] else ""
    print(f"{row['bar']:16} {row['ratio']:8.3f} [{low:.3f}, {high:.3f}] {row['unit']:7} must {sign} {row['must']:<6g} aim "
          f"{row['aim']:<5g} {'yes' if row['holds'] else 'NO ':3} {'aim' if row['reaches_aim'] else '   '}  {row['what']} "
          f"({row['note']}{worst})")


def commit_of(given):
    if given:
        return given
    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        done = singles.ran(["git", "-C", folder, "describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*"])
    except Failure:
        return "unknown"
    return done.stdout.strip() or "unknown"


def cases_json(run):
    def line(case):
        samples, labels, failures = run.measured[case]
        return {"case": case.name(), "us": {f"{w}, {m}": round(statistics.median(s), 3) for (w, m), s in samples.items()},
                "by": {f"{w}, {m}": label for (w, m), label in labels.items()}, "failures": list(failures.values())}
    return [line(case) for case in run.measured]


def create(folder, name):
    """An empty file of that name, or with a number where others, ended in the same second, have it."""
    for count in itertools.count(1):
        try:
            return open(os.path.join(folder, f"{name}{f'-{count}' if count > 1 else ''}.json"), "x", encoding="utf-8")
        except FileExistsError:
            continue


def write(args, run, device, rows, seconds, is_whole):
    date = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
    torch = run.machine.torch
    words = [os.path.basename(word) if word.startswith("/") else word for word in sys.argv]
    result = {"schema": "fp8route-bench-gpu-1", "date": date, "commit": commit_of(args.commit), "device": device[0],
              "driver": device[1], "torch": torch.__version__ if torch else None,
              "routes": os.path.basename(run.routes) if run.routes else None, "rounds": args.rounds,
              "seconds": round(seconds), "whole": is_whole, "command": words, "bars": rows, "cases": cases_json(run)}
    with create(args.results, f"gpu-{date}-{'-'.join(device[0].lower().split())}") as file:
        head = {key: value for key, value in result.items() if key not in ("bars", "cases")}
        file.write(json.dumps(head)[:-1] + ',\n"bars": [\n' + ",\n".join(map(json.dumps, rows)) + '],\n"cases": [\n' +
                   ",\n".join(map(json.dumps, result["cases"])) + "]}\n")
    print(f"bench-gpu: wrote {file.name}", file=sys.stderr)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--kernels", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--routes", default="")
    parser.add_argument("--results", default="")
    parser.add_argument("--commit", default="")
    parser.add_argument("--program", default="fp8route")
    parser.add_argument("--gate", default="")
    parser.add_argument("--gate-budget", default="4m")
    parser.add_argument("--first-call", default="first_call")
    parser.add_argument("--bench-cpu", default="bench_cpu")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    named = [name for name in args.only.split(",") if name]
    unknown = set(named) - {bar.name for bar in BARS}
    if unknown:
        parser.error(f"no such bar: {', '.join(sorted(unknown))}; there are {', '.join(b.name for b in BARS)}")
    if args.rounds < 3:
        parser.error("--rounds: at least 3")
    # What would only be noticed when everything is measured.
    if args.results and not (os.path.isdir(args.results) and os.access(args.results, os.W_OK)):
        parser.error(f"--results: {args.results} is no folder that can be written to")
    if args.gate and not os.path.isfile(args.gate):
        parser.error(f"--gate: there is no file {args.gate}")
    return args, [bar for bar in BARS if not named or bar.name in named]


def main():
    args, bars = read_arguments()
    if args.list:
        print("\n".join(f"{bar.name:16} {bar.what}" for bar in bars))
        return 0
    library = Library(args.library, args.kernels)
    try:
        device = library.device()
    except Failure as failure:
        print(f"bench-gpu: skipped: no GPU ({failure})")
        return SKIPPED
    start = time.time()
    try:
        run = Run(args, library, bars)
    except Failure as failure:
        print(f"bench-gpu: {failure}", file=sys.stderr)
        return 4
    peer = f"torch {run.machine.torch.__version__}" if run.machine.torch else "no torch: cuBLASLt's first heuristic in its part"
    print(f"{device[0]}, driver {device[1]}, {peer}, routes {os.path.basename(run.routes) if run.routes else 'none'}")
    rows, is_whole = [], False
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run.measure_all()
        for bar in bars:
            rows.append(judged(bar, run))
            print_row(rows[-1])
            sys.stdout.flush()
        is_whole = True
    except KeyboardInterrupt:
        print("bench-gpu: interrupted", file=sys.stderr)
    finally:
        print(f"{time.time() - start:.0f} s")
        if args.results and (rows or run.measured):
            write(args, run, device, rows, time.time() - start, is_whole)
    measured = [row for row in rows if row["measured"]]
    if not is_whole:
        return INTERRUPTED
    return 4 if not measured else 0 if all(row["holds"] for row in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
