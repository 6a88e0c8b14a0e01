"""Which products a program asks for: FP8ROUTE_TRACE around a block, and its lines added up.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import json
import os

from . import _context


@contextlib.contextmanager
def trace(path):
    """Appends the products met inside to a file that `fp8route tune --trace` and read_trace take.

    Contexts are made anew on both sides. No product may be under way at the end, nor one queued before be run again from a
    graph: what was traced is closed then, so that its counts are exact.
    """
    before = os.environ.get("FP8ROUTE_TRACE")
    os.environ["FP8ROUTE_TRACE"] = os.fspath(path)
    try:
        _context.renew()
        yield
    finally:
        _restore(before)
        traced = _context.current()
        _context.renew()
        _context.close(traced)


def _restore(value):
    if value is None:
        os.environ.pop("FP8ROUTE_TRACE", None)
    else:
        os.environ["FP8ROUTE_TRACE"] = value


def read_trace(*paths):
    """{problem: calls} of trace files, captured ones under "captured " and the problem."""
    largest = {}
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                if not line.endswith("\n"):
                    break  # cut off by the end of its process
                row = json.loads(line)
                key = (os.fspath(path), row["process"], row["context"], row["problem"], row["captured"])
                largest[key] = max(largest.get(key, 0), row["count"])
    totals = {}
    for (_, _, _, problem, captured), count in largest.items():
        name = f"captured {problem}" if captured else problem
        totals[name] = totals.get(name, 0) + count
    return totals
