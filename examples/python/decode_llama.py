"""Tokens a second of Llama-3.1-8B's layers in decoding: bf16, fp8route, and torch's row-wise FP8 product.

    python decode_llama.py --device cuda [--batches 1,16,64] [--layers 32] [--context 512] [--out FILE.jsonl]

On a GPU each variant's step is one CUDA graph. Every variant is checked before it is timed; all of them are measured
in every round. Without a GPU: --device cpu with a small shape (--layers 2 --hidden 256 --inner 512 --heads 8
--kv-heads 2). There is no embedding, no head and no sampling: the layers alone.
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import datetime
import json
import os
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("decode_llama: needs PyTorch, which this Python cannot import (pip install torch)")

import fp8route
import llama_layers as llama
import paired

VARIANTS = {"bf16": llama.multiply_bf16, "fp8route": llama.multiply_fp8route,
            "torch_rowwise": llama.multiply_torch_rowwise}


# What each of llama.Shape's sizes is.
SIZES = {"hidden": "elements of a token between the layers", "inner": "elements between gate or up and down",
         "heads": "heads of the queries", "kv_heads": "heads of keys and values", "layers": "how many layers",
         "context": "tokens that attention looks back at"}


class Failed(Exception):
    """A variant computed something else than it should."""


def usable_variants(stack, x):
    """The variants that run here, and the reason of each that does not."""
    usable, missing = {}, {}
    for name, multiply in VARIANTS.items():
        try:
            multiply(x, stack.layers[0]["qkv"])
            usable[name] = multiply
        except (RuntimeError, NotImplementedError) as error:
            is_known = name == "torch_rowwise" and not x.is_cuda
            missing[name] = "torch has no row-wise FP8 product on a CPU" if is_known else str(error).splitlines()[0]
    return usable, missing


def check_products(stack, variants, batch, device):
    """name -> largest error of any product of the first layer, as a share of what is allowed."""
    worst = {}
    for name, multiply in variants.items():
        shares = []
        for product, (n, k) in stack.shape.products().items():
            x = torch.randn(batch, k, device=device, dtype=torch.bfloat16)
            shares.append(llama.worst_product(multiply, x, stack.layers[0][product], name != "bf16"))
            if not shares[-1] <= 1:
                raise Failed(f"{name}, {batch}x{n}x{k}: the error is {shares[-1]:.3g} times what is allowed")
        worst[name] = max(shares)
    return worst


def stepper(stack, x, multiply, device):
    """(a function that runs one step, its result, how near a replay is to the step outside of a graph)."""
    expected = stack.step(x, multiply)
    if device.type != "cuda":
        return lambda: stack.step(x, multiply), expected, 1.0
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = stack.step(x, multiply)
    result.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    return graph.replay, result, least_cosine(expected, result)


def milliseconds(run, device, repeats):
    def measure_gpu():
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(repeats):
            run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / repeats

    def measure_cpu():
        begin = time.perf_counter()
        for _ in range(repeats):
            run()
        return (time.perf_counter() - begin) * 1e3 / repeats
    return measure_gpu if device.type == "cuda" else measure_cpu


def least_cosine(left, right):
    """Of the batch's rows."""
    return torch.nn.functional.cosine_similarity(left.double(), right.double()).min().item()


def checked_steps(stack, batch, device):
    """(name -> a function that runs one step, what the checks found). Raises Failed where a variant is wrong."""
    x = torch.randn(batch, stack.shape.hidden, device=device, dtype=torch.bfloat16)
    variants, missing = usable_variants(stack, x)
    found = {"batch": batch, "error_of_allowed": check_products(stack, variants, batch, device), "missing": missing}
    variants["no products"] = llama.MultiplyNothing(stack.shape, batch, device)
    steps, results, replayed = {}, {}, {}
    for name, multiply in variants.items():
        steps[name], results[name], replayed[name] = stepper(stack, x, multiply, device)
        if not replayed[name] >= 0.99:
            raise Failed(f"{name}, batch {batch}: a replayed graph is as near to the step as cosine {replayed[name]:.4f}")
    pairs = [("fp8route", "bf16"), ("torch_rowwise", "bf16"), ("fp8route", "torch_rowwise")]
    found["least_cosine"] = {f"{left} to {right}": least_cosine(results[left], results[right])
                             for left, right in pairs if left in results and right in results}
    found["replay_cosine"] = replayed
    return steps, found


def measure_batch(stack, batch, options, device):
    steps, row = checked_steps(stack, batch, device)
    measures = {name: milliseconds(run, device, options.repeats) for name, run in steps.items()}
    paired.interleave(measures, 3)  # warm
    times = paired.interleave(measures, options.rounds)
    row["ms"] = {name: paired.median_interval(values) for name, values in times.items()}
    row["tokens_a_second"] = {name: batch * 1e3 / row["ms"][name][0] for name in steps if name in VARIANTS}
    row["fp8route over"], row["products only"] = {}, {}
    for name in set(row["tokens_a_second"]) - {"fp8route"}:
        row["fp8route over"][name] = paired.ratio(times, name, "fp8route")
        row["products only"][name] = paired.median_interval(
            [(a - idle) / (b - idle) for a, b, idle in zip(times[name], times["fp8route"], times["no products"])])
    row["chosen"] = {name: fp8route.explain(f"{batch}x{n}x{k}:static", options.device).chosen
                     for name, (n, k) in stack.shape.products().items()}
    return row


def header(options, shape, command):
    name = torch.cuda.get_device_name() if options.device.startswith("cuda") else fp8route.device_name("cpu")
    return {"schema": "fp8route.decode_llama/1", "device": name, "torch": torch.__version__,
            "fp8route": fp8route.__version__, "commit": options.commit, "command": command,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "shape": vars(shape), "rounds": options.rounds, "repeats": options.repeats,
            "protocol": "layers only, one step a CUDA graph on a GPU, variants in random order in every round, medians "
                        "and 95 % intervals; attention: scaled_dot_product_attention over a full bf16 cache; one "
                        "quantiser (fp8route's) for both FP8 variants; 'products only' takes off the step without them"}


def show(row):
    print(f"batch {row['batch']}:  step without any product {row['ms']['no products'][0]:.3f} ms")
    for name, rate in row["tokens_a_second"].items():
        middle, low, high = row["ms"][name]
        line = f"  {name:14} {middle:9.3f} ms [{low:.3f}, {high:.3f}] {rate:10.1f} tokens/s"
        if name in row["fp8route over"]:
            step, products = row["fp8route over"][name], row["products only"][name]
            line += (f"   fp8route: {step[0]:.2f} times as fast [{step[1]:.2f}, {step[2]:.2f}], "
                     f"products alone {products[0]:.2f} [{products[1]:.2f}, {products[2]:.2f}]")
        print(line)
    for name, reason in row["missing"].items():
        print(f"  {name:14} left out: {reason}")


def whole_numbers(text):
    return [int(each) for each in text.split(",")]


def check(parser, options):
    """What torch would say in the middle of a step."""
    if options.device.partition(":")[0] not in ("cpu", "cuda"):
        parser.error(f"--device is {options.device}: it must be cpu, cuda or cuda:INDEX")
    if min(options.batches) < 1 or any(getattr(options, name) < 1 for name in vars(llama.Shape())):
        parser.error("every size must be 1 or more")
    if options.hidden % (2 * options.heads) or options.heads % options.kv_heads:
        parser.error(f"--hidden {options.hidden} must be a multiple of twice --heads {options.heads}, and that a multiple of "
                     f"--kv-heads {options.kv_heads}")
    return options


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="The sizes are Llama-3.1-8B's unless given, some 25 GB of memory. For a CPU smaller ones:\n"
               "  --device cpu --layers 2 --hidden 256 --inner 512 --heads 8 --kv-heads 2")
    parser.add_argument("--device", default="cuda", help="cpu, cuda or cuda:INDEX; %(default)s unless given")
    parser.add_argument("--batches", type=whole_numbers, default=[1, 16, 64],
                        help="sequences that are decoded at once, with commas; 1,16,64 unless given")
    for name, value in vars(llama.Shape()).items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value, metavar="N",
                            help=f"{SIZES[name]}; {value} unless given")
    parser.add_argument("--rounds", type=int, default=21, help="measurements of each variant; %(default)s unless given")
    parser.add_argument("--repeats", type=int, default=5, help="steps in one measurement; %(default)s unless given")
    parser.add_argument("--out", help="also write JSON lines there, a line a batch as soon as it is measured")
    parser.add_argument("--commit", default="", help="of what is measured, for the file")
    return check(parser, parser.parse_args(arguments))


@torch.inference_mode()
def main(arguments=None):
    options = parse(arguments)
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        print("decode_llama: torch sees no GPU; --device cpu with a small shape runs without", file=sys.stderr)
        return 4
    device = torch.device(options.device)
    shape = llama.Shape(*(getattr(options, name) for name in vars(llama.Shape())))
    first = header(options, shape, " ".join(["decode_llama.py", *(sys.argv[1:] if arguments is None else arguments)]))
    torch.manual_seed(1)
    stack = llama.Stack(shape, max(options.batches), device)
    print(f"{shape.layers} layers, hidden {shape.hidden}, inner {shape.inner}, context {shape.context}, on {first['device']}")
    with open(options.out or os.devnull, "w") as lines:
        print(json.dumps(first), file=lines, flush=True)
        for batch in options.batches:
            try:
                row = measure_batch(stack, batch, options, device)
            except Failed as error:
                print(f"decode_llama: {error}", file=sys.stderr)
                return 1
            print(json.dumps(row), file=lines, flush=True)
            show(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
