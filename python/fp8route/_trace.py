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
    # The library only warns of a file that it cannot write. Without waiting for a reader, should it be a pipe.
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o666))
    before, untraced = os.environ.get("FP8ROUTE_TRACE"), _context.every()
    os.environ["FP8ROUTE_TRACE"] = os.fspath(path)
    try:
        _context.renew()
        yield
    finally:
        _restore(before)
        _context.renew()
        current = _context.current()
        _context.close([each for each in _context.every() if each not in untraced and each not in current])


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
            for number, line in enumerate(lines, 1):
                if not line.endswith("\n"):
                    break  # cut off by the end of its process
                try:
                    row = json.loads(line)
                    key = (os.fspath(path), row["process"], row["context"], row["problem"], row["captured"])
                    largest[key] = max(largest.get(key, 0), row["count"])
                except (ValueError, KeyError, TypeError):
                    raise ValueError(f"{path}, line {number}: it is not a line of a trace") from None
    totals = {}
    for (_, _, _, problem, captured), count in largest.items():
        name = f"captured {problem}" if captured else problem
        totals[name] = totals.get(name, 0) + count
    return totals
