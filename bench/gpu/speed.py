#!/usr/bin/env python3
"""Times the sm90 kernels beside torch and the floor: one CUDA graph a candidate, operands rotating over more than five
times L2 with weights cold, candidates interleaved in random order every round, median of the rounds.

    speed.py LIBRARY OUT.jsonl sweep|bars [--families NxK,...] [--m LIST] [--rounds N] [--configs REGEX] [--best N]

sweep: all sm90 configurations against torch and the floor. bars: those that the model likes best, with the chain in
which a small kernel writes `a` before each product; ratios are medians of paired rounds with 95 % intervals.
One JSON object a line: case, medians in us, ratios.
SPDX-License-Identifier: Apache-2.0"""
import argparse
import ctypes
import json
import os
import random
import re
import statistics
import sys
import time

import torch

FAMILIES = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (21504, 5376), (28672, 5376), (14336, 5376),
            (5376, 14336), (5376, 28672), (3584, 5376), (5376, 3584)]
ROTATE_BYTES = 400 << 20
GRAPH_US = 500.0


class Library:
    def __init__(self, path, prefix=""):
        self.c = ctypes.CDLL(path)
        self.prefix = prefix
        self.c.bench_config_name.restype = ctypes.c_char_p
        self.c.bench_error.restype = ctypes.c_char_p
        self.c.bench_prepare.restype = ctypes.c_void_p
        self.c.bench_expected_us.restype = ctypes.c_double
        self.names = [self.c.bench_config_name(i).decode() for i in range(self.c.bench_config_count())]

    def prepare(self, text, config, dependent):
        plan = self.c.bench_prepare(text.encode(), config, int(dependent))
        return ctypes.c_void_p(plan) if plan else None

    def by_expectation(self, text):
        """Names of the configurations that take the problem, the model's favourite first."""
        us = [(self.c.bench_expected_us(text.encode(), i), name) for i, name in enumerate(self.names)]
        return [name for t, name in sorted(us) if t >= 0]

    def shape(self, plan):
        shape = (ctypes.c_int * 4)()
        self.c.bench_shape(plan, shape)
        return list(shape)


def pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def stream():
    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)


def check(status):
    if status != 0:
        raise RuntimeError(f"launch failed: {status}")


class Case:
    """Operands of one problem, several sets of them, taken from one pool of random codes."""

    def __init__(self, pool, m, n, k):
        self.m, self.n, self.k = m, n, k
        each = n * k + m * k + 2 * m * n
        self.sets = max(2, -(-ROTATE_BYTES // each))
        stride = n * k + m * k
        stride += -stride % 256
        limit = pool.numel() - stride
        self.b, self.a, self.source = [], [], []
        for i in range(self.sets):
            start = i * stride if (i + 1) * stride <= pool.numel() else random.randrange(0, limit) // 256 * 256
            self.b.append(pool[start:start + n * k].view(n, k))
            self.a.append(pool[start + n * k:start + n * k + m * k].view(m, k))
            self.source.append(pool[(start + 4096) % limit // 256 * 256:][:m * k].view(m, k))
        self.out = [torch.empty(m, n, dtype=torch.bfloat16, device="cuda") for _ in range(self.sets)]
        self.scale_a = torch.rand(m, 1, device="cuda") + 0.5
        self.scale_b = torch.rand(1, n, device="cuda") + 0.5
        self.one = torch.tensor(0.01, device="cuda")
        self.bytes = each


def graph_of(case, call, expected_us):
    """One graph that calls call(i) for all sets, often enough to last."""
    repeats = max(1, round(GRAPH_US / max(expected_us * case.sets, 1.0)))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call(0)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):  # torch.cuda.graph would collect garbage every time
        graph.capture_begin()
        for _ in range(repeats):
            for i in range(case.sets):
                call(i)
        graph.capture_end()
    return graph, repeats * case.sets


def sm90_call(lib, plan, case):
    def call(i):
        check(lib.c.bench_launch(plan, pointer(case.a[i]), pointer(case.b[i]), pointer(case.out[i]),
                                 pointer(case.scale_a), pointer(case.scale_b), None, stream()))
    return call


def torch_call(case, row):
    scale_a, scale_b = (case.scale_a, case.scale_b) if row else (case.one, case.one)

    def call(i):
        torch._scaled_mm(case.a[i], case.b[i].t(), scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16,
                         use_fast_accum=True, out=case.out[i])
    return call


def floor_call(lib, case, blocks, dependent):
    def call(i):
        check(lib.c.bench_floor(pointer(case.b[i]), ctypes.c_int64(case.n * case.k + case.m * case.k),
                                pointer(case.out[i]), ctypes.c_int64(2 * case.m * case.n), blocks, dependent, stream()))
    return call


def chained(lib, case, call, dependent, early=False):
    """The product with a small kernel before it that writes its `a`; early: which releases its dependents first."""
    def both(i):
        check(lib.c.bench_producer(pointer(case.source[i]), pointer(case.a[i]), ctypes.c_int64(case.m * case.k),
                                   int(dependent), int(early), stream()))
        call(i)
    return both


def measure(graphs, rounds):
    """Medians and samples a candidate, in us a call; every round runs all of them in a new order."""
    samples = {name: [] for name in graphs}
    for name in graphs:
        graphs[name][0].replay()
    torch.cuda.synchronize()
    for _ in range(rounds):
        order = list(graphs)
        random.shuffle(order)
        events = []
        for name in order:
            graph, calls = graphs[name]
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            events.append((name, calls, start, end))
        torch.cuda.synchronize()
        for name, calls, start, end in events:
            samples[name].append(start.elapsed_time(end) * 1e3 / calls)
    return samples


def expected(case):
    return max(4.0, case.bytes / 4.3e6, 2e-6 * case.m * case.n * case.k / 1400)


def emit(out, record):
    out.write(json.dumps(record) + "\n")
    out.flush()


def verify(case, out, name):
    """A coarse look at whole results against torch; check_sm90 is the judge."""
    want = torch.empty_like(out)
    torch._scaled_mm(case.a[0], case.b[0].t(), scale_a=case.scale_a, scale_b=case.scale_b, out_dtype=torch.bfloat16,
                     use_fast_accum=True, out=want)
    error = (out.float() - want.float()).abs().max().item() / want.float().abs().max().item()
    if not error < 0.6:  # the raw accumulator truncates: K in parts differs from K as a whole
        print(f"WRONG {case.m}x{case.n}x{case.k} {name}: {error}")


def sweep(lib, pool, out, args):
    for m in args.m:
        for n, k in args.families:
            if time.time() > args.until:
                return
            case = Case(pool, m, n, k)
            us = expected(case)
            graphs, shapes, plans, calls = {}, {}, [], {}
            for blocks in (528, 1056, 2112):
                for dependent in (0, 1):
                    graphs[f"floor_{blocks}_{dependent}"] = graph_of(case, floor_call(lib, case, blocks, dependent), us)
            graphs["torch_row"] = graph_of(case, torch_call(case, True), us)
            graphs["torch_scalar"] = graph_of(case, torch_call(case, False), us)
            for of, i, name in [(of, i, name) for of in (lib, *args.beside) for i, name in enumerate(of.names)]:
                if not re.search(args.configs, name):
                    continue
                for dependent in args.dependent:
                    plan = of.prepare(f"{m}x{n}x{k}:static{args.options}", i, dependent)
                    if plan is None:
                        continue
                    plans.append((of, plan))
                    label = f"{of.prefix}{name}{'+pdl' if dependent else ''}"
                    shapes[label] = of.shape(plan)
                    case.out[0].fill_(float("nan"))
                    calls[label] = sm90_call(of, plan, case)
                    graphs[label] = graph_of(case, calls[label], us)
                    verify(case, case.out[0], label)
            samples = measure(graphs, args.rounds)
            medians = {name: statistics.median(s) for name, s in samples.items()}
            floor = {d: min(medians[f"floor_{b}_{d}"] for b in (528, 1056, 2112)) for d in (0, 1)}
            ours = sorted((t, name) for name, t in medians.items() if name in shapes)
            # The chain for the fastest few.
            graphs = {"row": graph_of(case, chained(lib, case, torch_call(case, True), False), us),
                      "scalar": graph_of(case, chained(lib, case, torch_call(case, False), False), us)}
            for _, name in ours[:args.show]:
                graphs[name] = graph_of(case, chained(lib, case, calls[name], name.endswith("+pdl")), us)
                graphs[name + " early"] = graph_of(case, chained(lib, case, calls[name], True, True), us)
            chain = {name: statistics.median(s) for name, s in measure(graphs, args.rounds).items()}
            best = min(chain[name] for _, name in ours[:args.show])
            early = min(chain[name + " early"] for _, name in ours[:args.show])
            print(f"{m:5d} {n}x{k} floor {floor[0]:.2f}/{floor[1]:.2f} row {medians['torch_row']:.2f} scalar "
                  f"{medians['torch_scalar']:.2f} best {ours[0][0]:.2f} ({ours[0][0] / floor[1]:.3f}) chain row "
                  f"{chain['row']:.2f} scalar {chain['scalar']:.2f} best {best:.2f} x{chain['row'] / best:.3f} early {early:.2f} "
                  f"x{chain['row'] / early:.3f} | " +
                  " ".join(f"{name.removesuffix('+pdl')} {t:.2f}/{chain[name]:.2f}/{chain[name + ' early']:.2f} {shapes[name][:2]}"
                           for t, name in ours[:args.show]))
            emit(out, {"m": m, "n": n, "k": k, "mode": "sweep", "medians": medians, "chain": chain, "shapes": shapes})
            for of, plan in plans:
                of.c.bench_destroy(plan)
            del graphs, calls


def ratio(over, under):
    """Median of the paired ratios and its 95 % interval, from order statistics."""
    ratios = sorted(x / y for x, y in zip(over, under))
    n = len(ratios)
    low = max(0, int((n - 1.96 * n ** 0.5) / 2))
    return [round(statistics.median(ratios), 4), round(ratios[low], 4), round(ratios[n - 1 - low], 4)]


SETS = [(1, 16), (24, 64), (96, 128), (256, 256), (512, 512), (1024, 2048), (4096, 8192)]


def bars(lib, pool, out, args):
    results = []
    for m in args.m:
        for n, k in args.families:
            if time.time() > args.until:
                break
            results.append(bars_case(lib, pool, out, args, m, n, k))
    geomean = statistics.geometric_mean
    for low, high in SETS:
        part = [r for r in results if low <= r["m"] <= high]
        if not part:
            continue
        text = " ".join(f"{name} {geomean([r[name][0] for r in part]):.3f}" for name in
                        ("row/pick", "row/best", "scalar/best", "early row/pick", "early row/best", "late row/pick",
                         "late row/best", "off row/pick"))
        behind = sum(r["row/pick"][2] < 0.95 or r["scalar/pick"][2] < 0.95 for r in part)
        print(f"M {low}-{high} ({len(part)} cases): {text}; pick behind 0.95 of a torch mode: {behind}")
    small = [r for r in results if r["m"] <= 16]
    for name, some in (("50 MB and more", [r for r in small if r["n"] * r["k"] >= 50e6]),
                       ("below", [r for r in small if r["n"] * r["k"] < 50e6])):
        if some:
            print(f"M 1-16, weights of {name}: pick/floor worst {max(r['pick/floor'][0] for r in some):.3f} mean "
                  f"{geomean([r['pick/floor'][0] for r in some]):.3f}; best/floor worst "
                  f"{max(r['best/floor'][0] for r in some):.3f} mean {geomean([r['best/floor'][0] for r in some]):.3f}")


def bars_case(lib, pool, out, args, m, n, k):
    case = Case(pool, m, n, k)
    us = expected(case)
    text = f"{m}x{n}x{k}:static"
    names = lib.by_expectation(text)[:args.best]
    graphs, plans = {}, []
    for blocks in (528, 1056, 2112):
        graphs[f"floor_{blocks}"] = graph_of(case, floor_call(lib, case, blocks, 1), us)
    for label, row in (("row", True), ("scalar", False)):
        call = torch_call(case, row)
        graphs[label] = graph_of(case, call, us)
        graphs[label + " chain"] = graph_of(case, chained(lib, case, call, False), us)
    for name in names:
        plan = lib.prepare(text, lib.names.index(name), True)
        plans.append(plan)
        call = sm90_call(lib, plan, case)
        graphs[name] = graph_of(case, call, us)
        graphs[name + " late"] = graph_of(case, chained(lib, case, call, True), us)
        graphs[name + " early"] = graph_of(case, chained(lib, case, call, True, True), us)
    plan = lib.prepare(text, lib.names.index(names[0]), False)
    plans.append(plan)
    graphs["off"] = graph_of(case, chained(lib, case, sm90_call(lib, plan, case), False), us)
    samples = measure(graphs, args.rounds)
    medians = {name: round(statistics.median(s), 3) for name, s in samples.items()}
    floor = min((f"floor_{b}" for b in (528, 1056, 2112)), key=medians.get)
    pick = names[0]
    # The best is chosen on the even rounds and judged on the odd ones.
    even = {name: statistics.median(samples[name][::2]) for name in samples}
    odd = {name: s[1::2] for name, s in samples.items()}
    best = {kind: min(names, key=lambda c: even[c + kind]) for kind in ("", " late", " early")}
    record = {"m": m, "n": n, "k": k, "mode": "bars", "pick": pick, "best": best[""], "best early": best[" early"],
              "row/pick": ratio(samples["row"], samples[pick]), "scalar/pick": ratio(samples["scalar"], samples[pick]),
              "pick/floor": ratio(samples[pick], samples[floor]),
              "row/best": ratio(odd["row"], odd[best[""]]), "scalar/best": ratio(odd["scalar"], odd[best[""]]),
              "best/floor": ratio(odd[best[""]], odd[floor]),
              "late row/pick": ratio(samples["row chain"], samples[pick + " late"]),
              "late row/best": ratio(odd["row chain"], odd[best[" late"] + " late"]),
              "early row/pick": ratio(samples["row chain"], samples[pick + " early"]),
              "early row/best": ratio(odd["row chain"], odd[best[" early"] + " early"]),
              "off row/pick": ratio(samples["row chain"], samples["off"]), "us": medians}
    emit(out, record)
    print(f"{m:5d} {n}x{k} floor {medians[floor]:.2f} row {medians['row']:.2f} scalar {medians['scalar']:.2f} pick {pick} "
          f"{medians[pick]:.2f} best {best['']} {medians[best['']]:.2f}; chain row {medians['row chain']:.2f} late "
          f"x{record['late row/pick'][0]:.2f} early x{record['early row/pick'][0]:.2f} best x{record['early row/best'][0]:.2f}")
    for plan in plans:
        lib.c.bench_destroy(plan)
    return record


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("out")
    parser.add_argument("mode", choices=["sweep", "bars"])
    parser.add_argument("--families", default="")
    parser.add_argument("--m", default="1,16,64,128")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--configs", default="")
    parser.add_argument("--dependent", default="1")
    parser.add_argument("--show", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--best", type=int, default=4, help="bars: so many of the model's favourites race")
    parser.add_argument("--beside", default="", help="sweep: other builds of the library, their names prefixed b1:, b2:")
    parser.add_argument("--commit", default="", help="goes into the record")
    parser.add_argument("--options", default="", help="sweep: added to the problems of sm90, e.g. :precise")
    args = parser.parse_args()
    args.families = [tuple(map(int, f.split("x"))) for f in args.families.split(",")] if args.families else FAMILIES
    args.m = [int(m) for m in args.m.split(",")]
    args.dependent = [int(d) for d in args.dependent.split(",")]
    args.until = time.time() + args.seconds
    random.seed(1)
    torch.manual_seed(1)
    lib = Library(args.library)
    args.beside = [Library(path, f"b{i + 1}:") for i, path in enumerate(filter(None, args.beside.split(",")))]
    pool = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").view(torch.float8_e4m3fn)
    for i in range(0, pool.numel(), 1 << 27):
        pool[i:i + (1 << 27)] = torch.randn(1 << 27, device="cuda").to(torch.float8_e4m3fn)
    warm = torch.randn(8192, 8192, device="cuda").to(torch.bfloat16)
    begin = time.time()
    while time.time() - begin < 0.5:
        warm @ warm
        torch.cuda.synchronize()
    with open(args.out, "a") as out:
        emit(out, {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "command": [os.path.basename(word) if os.path.isabs(word) else word for word in sys.argv],
                   "date": time.strftime("%Y-%m-%d"), "commit": args.commit,
                   "protocol": "graph, operands rotating over 400 MB, interleaved rounds in random order, median"})
        {"sweep": sweep, "bars": bars}[args.mode](lib, pool, out, args)


if __name__ == "__main__":
    main()
