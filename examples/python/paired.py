"""Speed of alternatives, measured fairly: all of them in every round, in random order, compared inside the round.

SPDX-License-Identifier: Apache-2.0
"""
import math
import random
import statistics


def interleave(measures, rounds, seed=0):
    """measures: name -> function that returns one time. Returns name -> list of times, entry i of each from round i."""
    order = random.Random(seed)
    times = {name: [] for name in measures}
    for _ in range(rounds):
        names = list(measures)
        order.shuffle(names)
        for name in names:
            times[name].append(measures[name]())
    return times


def median_interval(values, confidence=0.95):
    """(median, low, high): order statistics that hold the true median with this confidence, whatever the distribution.
    With fewer than 6 values no pair of them does; the extremes are given then."""
    ordered, n = sorted(values), len(values)
    below, outside = 0, 0.0
    while True:
        outside += math.comb(n, below) / 2 ** n
        if 2 * outside > 1 - confidence or below >= n // 2:
            break
        below += 1
    cut = max(0, below - 1)
    return statistics.median(ordered), ordered[cut], ordered[n - 1 - cut]


def ratio(times, over, under):
    """(median, low, high) of time(over) / time(under) inside each round: above 1 where `under` is faster."""
    return median_interval([a / b for a, b in zip(times[over], times[under])])
