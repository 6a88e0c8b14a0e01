"""Ratios of paired samples: medians, their 95 % intervals, and what a bar makes of many cases.
SPDX-License-Identifier: Apache-2.0"""
import math
import random
import statistics
from dataclasses import dataclass

RESAMPLES = 200


@dataclass
class Result:
    ratio: float
    low: float
    high: float
    worst: float = None  # of the cases, with its name
    worst_case: str = ""
    note: str = ""


def median_interval(values):
    """Median and the order statistics around it that hold it with 95 %."""
    ordered, n = sorted(values), len(values)
    low = max(0, int((n - 1.96 * n ** 0.5) / 2))
    return statistics.median(ordered), ordered[low], ordered[n - 1 - low]


def paired(over, under):
    return [x / y for x, y in zip(over, under)]


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def geomean_interval(lists):
    """Geomean of the cases' medians, with an interval from resampling every case's rounds."""
    draw = random.Random(1)
    centre = geomean([statistics.median(r) for r in lists])
    resampled = sorted(geomean([statistics.median(draw.choices(r, k=len(r))) for r in lists]) for _ in range(RESAMPLES))
    return centre, resampled[RESAMPLES // 40], resampled[-1 - RESAMPLES // 40]


def worst_of(named, larger):
    """The case that misses most surely: (name, median, low, high)."""
    judged = [(name, *median_interval(r)) for name, r in named]
    return min(judged, key=lambda j: j[3]) if larger else max(judged, key=lambda j: j[2])


def combine(bar, named, groups=None):
    """What a bar makes of [(case's name, paired ratios)]. groups: for judge "sets", a label a case."""
    name, median, low, high = worst_of(named, bar.larger)
    if bar.judge == "each":
        mean = geomean([statistics.median(r) for _, r in named])
        return Result(median, low, high, median, name, f"geomean {mean:.3f} of {len(named)} cases")
    if bar.judge == "sets":
        sets = {}
        for label, (_, ratios) in zip(groups, named):
            sets.setdefault(label, []).append(ratios)
        worst = max((geomean_interval(lists), label) for label, lists in sets.items())
        return Result(*worst[0], median, name, f"{worst[1]}, of {len(sets)}")
    return Result(*geomean_interval([r for _, r in named]), median, name, f"{len(named)} cases")


def reaches(bar, result, limit):
    """Holds: by the median, by the upper end, or unless a case's whole interval misses."""
    value = {"each": result.high if bar.larger else result.low, "upper": result.high}.get(bar.judge, result.ratio)
    return value >= limit if bar.larger else value <= limit
