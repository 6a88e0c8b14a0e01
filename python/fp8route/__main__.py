"""`python -m fp8route info [--device cpu|cuda[:INDEX]] [--json]` and `explain PROBLEM`. Needs neither a GPU nor torch.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import dataclasses
import json
import os
import sys

import fp8route
from fp8route import _context, _library


_NOWHERE = "none, XDG_CACHE_HOME (or HOME, where it is not set) is not an absolute path"


def _info(device):
    return {"schema": "fp8route.python.info/1", "version": fp8route.__version__, "library": _library.path,
            "device": str(device), "device_name": _context.device_name(device), "backends": _context.backends(device),
            "routes": _context.route_files(device), "user_route_file": _context.user_route_file(device),
            "routes_id": _context.routes_id(device)}


def _print_info(facts):
    print(f"fp8route {facts['version']}\n  library: {facts['library']}\n  device: {facts['device']}, {facts['device_name']}")
    print("Backends, in the order of defaults")
    for row in facts["backends"]:
        note = row["description"] if row["usable"] else f"{row['description']}: {row['reason']}"
        print(f"  {row['name']:12} {'yes' if row['usable'] else 'no':4} {note}" + (f"; {row['library']}" if row["library"] else ""))
    print("Routes\n  " + ("\n  ".join(facts["routes"]) or "none in use"))
    print(f"  the user's file: {facts['user_route_file'] or _NOWHERE}")
    print(f"  id: {facts['routes_id']}")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m fp8route", description="What there is on this machine, and who runs a "
                                     "problem. Needs neither a GPU nor torch.")
    parser.add_argument("--version", action="version", version=f"fp8route {fp8route.__version__}")
    parser.add_argument("verb", choices=("info", "explain"))
    parser.add_argument("problem", nargs="?", help="for explain, e.g. 1x4096x14336")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:INDEX")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if (options.verb == "explain") != (options.problem is not None):
        parser.error("explain takes one PROBLEM, info none")
    try:
        if options.verb == "info":
            facts = _info(options.device)
            print(json.dumps(facts)) if options.json else _print_info(facts)
        else:
            explanation = _context.explain(options.problem, options.device)
            print(json.dumps(dataclasses.asdict(explanation)) if options.json else explanation)
    except (_library.Error, ValueError) as error:
        print(f"fp8route: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) or error.status == "FP8R_ERROR_INVALID_ARGUMENT" else 4
    return 0


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)
