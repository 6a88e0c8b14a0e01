#!/usr/bin/env python3
"""Holds the program's statistics against SciPy: medians, quantiles, order-statistic intervals, binomial constants of
the sequential decision and its inflation. Usage: check_statistics.py PRINT_STATISTICS. Exit: 0 all agree to 1e-9,
1 otherwise, 77 where SciPy cannot be had. SPDX-License-Identifier: Apache-2.0"""
import json
import math
import subprocess
import sys

try:
    import numpy
    import scipy.signal
    import scipy.stats
except ImportError:
    print("skipped: check_statistics needs SciPy, which this Python does not have")
    sys.exit(77)

TOLERANCE = 1e-9
checked = 0


def agree(what, ours, theirs):
    global checked
    checked += 1
    if not abs(ours - theirs) <= TOLERANCE * max(1.0, abs(theirs)):
        print(f"{what}: {ours!r}, SciPy: {theirs!r}")
        sys.exit(1)


def check_sample(line):
    values = numpy.sort(numpy.array(line["values"]))
    n = len(values)
    agree(f"median of {n}", line["median"], float(numpy.median(values)))
    agree(f"0.10 quantile of {n}", line["q10"], float(numpy.quantile(values, 0.10)))
    agree(f"0.99 quantile of {n}", line["q99"], float(numpy.quantile(values, 0.99)))
    for asked, low, high, coverage in line["intervals"]:
        # The rank-th smallest and largest miss with P(B < rank) each. The largest rank that still covers, at least 1.
        rank = 1
        while rank + 1 <= (n + 1) // 2 and 1 - 2 * scipy.stats.binom.cdf(rank, n, 0.5) >= asked:
            rank += 1
        agree(f"lower end at {asked} of {n}", low, values[rank - 1])
        agree(f"upper end at {asked} of {n}", high, values[n - rank])
        agree(f"coverage at {asked} of {n}", coverage, max(0.0, 1 - 2 * scipy.stats.binom.cdf(rank - 1, n, 0.5)))
        theirs = scipy.stats.quantile_test(values, p=0.5).confidence_interval(asked)
        if not math.isnan(theirs.low):
            agree(f"lower end at {asked} of {n} (quantile_test)", low, theirs.low)
            agree(f"upper end at {asked} of {n} (quantile_test)", high, theirs.high)


def check_constants(line):
    """Heads of a fair coin; each look adds a binomial and takes away what stops there."""
    error = line["error"] / line["candidates"]
    last = line["looks"][-1][0]
    alive = numpy.array([1.0])
    before, spent = 0, 0.0
    for pairs, critical, ours in line["looks"]:
        step = scipy.stats.binom.pmf(numpy.arange(pairs - before + 1), pairs - before, 0.5)
        chance = numpy.convolve(alive, step)
        limit = error * (pairs / last) ** 4
        tails = numpy.append(numpy.cumsum(chance[::-1])[::-1], 0.0)  # P(not stopped yet, heads >= i)
        tails = numpy.append(tails, numpy.zeros(pairs + 2 - len(tails)))
        wanted = next(i for i in range(pairs + 2) if spent + tails[i] <= limit)
        agree(f"critical count at {pairs} of {last}", critical, wanted)
        spent += tails[critical]
        agree(f"error spent at {pairs} of {last}", ours, spent)
        alive, before = chance[:critical], pairs


def inflation_of(ratios):
    n = len(ratios)
    ranks = scipy.stats.rankdata(ratios)
    ranks = ranks - ranks.mean()
    if not ranks.any():
        return 1.0
    # full autocorrelation from SciPy's convolution; entry n - 1 + h is distance h
    products = scipy.signal.correlate(ranks, ranks, method="direct")[n - 1:]
    rho = numpy.clip(2 * numpy.sin(math.pi / 6 * products / products[0]) + 1 / n, -1, 1)
    reach = math.isqrt(n)
    h = numpy.arange(1, reach + 1)
    weights = numpy.minimum(1, 2 * (1 - h / (reach + 1)))
    tapered = 1 + 2 * float(numpy.sum(weights * 2 / math.pi * numpy.arcsin(rho[1:reach + 1])))
    nearest = min(float(rho[1]), 0.97)
    powers = nearest ** numpy.arange(1, 2000) if nearest > 0 else numpy.zeros(1)
    powers = powers[powers > 1e-6]
    return max(1.0, tapered, 1 + 2 * float(numpy.sum(2 / math.pi * numpy.arcsin(powers))))


def check_decision(line):
    n = line["pairs"]
    ratios = numpy.array(line["base"][:n]) / numpy.array(line["other"][:n])
    inflation = inflation_of(ratios)
    agree(f"inflation of {n}", line["inflation"], inflation)
    agree(f"median ratio of {n}", line["ratio"], float(numpy.median(ratios)))
    ordered = numpy.sort(ratios)
    count = math.ceil(n / 2 + (line["critical"] - n / 2) * math.sqrt(inflation) - 1e-9)
    if count > n:
        agree(f"lower end of {n}", line["low"], 0.0)
        assert line["high"] is None
        return
    agree(f"lower end of {n}", line["low"], ordered[n - count])
    agree(f"upper end of {n}", line["high"], ordered[count - 1])


def main():
    checks = {"sample": check_sample, "constants": check_constants, "decision": check_decision}
    seen = dict.fromkeys(checks, 0)
    output = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout
    for text in output.splitlines():
        line = json.loads(text)
        checks[line["kind"]](line)
        seen[line["kind"]] += 1
    if not all(seen.values()):
        print(f"nothing was printed of some kind: {seen}")
        return 1
    print(f"{checked} values agree with SciPy {scipy.__version__} to {TOLERANCE}: {seen}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
