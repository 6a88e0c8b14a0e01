"""The bars of the GPU backends: the one list that everything else derives from. Each is a ratio of two ways to compute a
problem, taken in one interleaved run, or a number of its own.
SPDX-License-Identifier: Apache-2.0"""
from dataclasses import dataclass

FAMILIES = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (21504, 5376), (28672, 5376), (14336, 5376),
            (5376, 14336), (5376, 28672), (3584, 5376), (5376, 3584)]
SETS = [[1, 2, 4, 8, 16], [24, 32, 48, 64], [96, 128], [256], [512], [1024, 2048], [4096, 8192]]

# Ways to compute a problem "{b}{m}x{n}x{k}{o}": what is appended to its text, and who runs it (None: the routes).
WAYS = {
    "routed": (":static", None),
    "own": (":static", "sm90"),
    "bias": (":static:bias", None),
    "precise": (":static:precise", None),
    "invariant": (":static:invariant", None),
    "quantised": (":static:a=bf16", None),
    "portable": ("", "cuda"),
    "heuristic": ("", "cublaslt:heuristic"),
    "one fewer": (":static", None),      # M - 1
    "padded": (":static", None),         # K up to the next multiple of 16
    "torch row": ("", "cublaslt:heuristic"),            # torch._scaled_mm where torch is there
    "torch scalar": (":tensor", "cublaslt:heuristic"),  # likewise
    "floor": ("", None),                 # the same bytes, streamed once
}


@dataclass(frozen=True)
class Case:
    """A problem. batch: "" or "16*"; options: ":tensor"..."""
    m: int
    n: int
    k: int
    batch: str = ""
    options: str = ""

    def text(self, way):
        m = self.m - 1 if way == "one fewer" else self.m
        k = self.k + -self.k % 16 if way == "padded" else self.k
        return f"{self.batch}{m}x{self.n}x{k}{self.options}{WAYS[way][0]}"

    def name(self):
        return f"{self.batch}{self.m}x{self.n}x{self.k}{self.options}"


def grid(ms, families=None):
    return [Case(m, n, k) for n, k in families or FAMILIES for m in ms]


@dataclass(frozen=True)
class Bar:
    """over, under: (way, mode), time over time. mode: bare; chain: behind a small kernel that writes `a`, counted; early:
    one that lets go of its dependents before its own wait; off: chain without programmatic dependent launch.
    judge: geomean over the cases; upper: the upper end of its interval; each: no case's interval wholly misses the limit;
    sets: the worst geomean of a family over a set of M.
    beside: further modes of the routed side, printed and judged by nobody."""
    name: str
    what: str
    must: float
    aim: float
    larger: bool = False
    judge: str = "geomean"
    cases: tuple = ()
    over: tuple = ("routed", "bare")
    under: tuple = ("floor", "bare")
    beside: tuple = ()
    unit: str = ""       # of a number that is no ratio
    special: str = ""    # the function that measures it, in singles.py
    sustained: bool = False


def row_wise(index, must, aim):
    ms = SETS[index]
    return Bar(f"row-{ms[0]}", f"row-wise torch over routed, M {','.join(map(str, ms))}, 11 families", must, aim, True,
               cases=tuple(grid(ms)), over=("torch row", "chain"), under=("routed", "chain"), beside=("early", "off"))


def invariant(name, ms, must, aim):
    return Bar(name, f"batch-invariant over routed, M {ms[0]}-{ms[-1]}", must, aim, cases=tuple(grid(ms)),
               over=("invariant", "bare"), under=("routed", "bare"))


DECODE = SETS[0]
LARGE = [f for f in FAMILIES if f[0] * f[1] >= 50e6]
SMALL = [f for f in FAMILIES if f[0] * f[1] < 50e6]
UP_TO_64, UP_TO_512, BEYOND = SETS[0] + SETS[1], SETS[2] + SETS[3] + SETS[4], SETS[5] + SETS[6]
SIX = UP_TO_64 + UP_TO_512 + SETS[5]
SOME = [(4096, 4096), (28672, 4096), (4096, 14336), (5376, 3584)]
MLA = [Case(m, n, k, "128*", f":tensor:lda={128 * k}:ba={k}:ldo={128 * n}:bo={n}")
       for n, k in ((128, 512), (512, 128)) for m in (1, 16, 64, 256, 1024)]
BMM = MLA + [Case(m, 4096, 4096, "16*", ":tensor") for m in (1, 16, 64, 256, 1024)]
LAYOUTS = ("ta", "tb", "ta:tb", "to", "align=1", "align=4", "ta:tb:align=1", "ia=2", "ib=3", "lda=4099:align=1")

BARS = [
    Bar("floor-50MB", "time over floor, M 1-16, weights of 50 MB and more", 1.15, 1.05, judge="each",
        cases=tuple(grid(DECODE, LARGE))),
    Bar("floor-16MB", "time over floor, M 1-16, weights of 16 to 26 MB", 1.30, 1.12, judge="each",
        cases=tuple(grid(DECODE, SMALL))),
    row_wise(0, 1.75, 1.95), row_wise(1, 1.55, 1.72), row_wise(2, 1.42, 1.58), row_wise(3, 1.22, 1.40),
    row_wise(4, 1.14, 1.20), row_wise(5, 1.03, 1.08),
    Bar("each-row", "row-wise torch over routed, every case of those", 0.95, 1.0, True, "each", tuple(grid(SIX)),
        ("torch row", "chain"), ("routed", "chain")),
    Bar("each-scalar", "scalar-scale torch over routed, every case of those", 0.95, 1.0, True, "each", tuple(grid(SIX)),
        ("torch scalar", "chain"), ("routed", "chain")),
    Bar("scalar", "scalar-scale torch over routed, M 1-512", 1.05, 1.15, True,
        cases=tuple(grid(UP_TO_64 + UP_TO_512)), over=("torch scalar", "chain"), under=("routed", "chain"),
        beside=("early", "off")),
    Bar("sustained", "routed over row-wise torch, M 4096, 8192 sustained", 1.01, 0.97, judge="upper",
        cases=tuple(grid(SETS[6])), under=("torch row", "bare"), sustained=True),
    Bar("sustained-own", "sm90 over row-wise torch, M 4096, 8192 sustained", 1.08, 1.00, cases=tuple(grid(SETS[6])),
        over=("own", "bare"), under=("torch row", "bare"), sustained=True),
    Bar("precise", "PRECISE over FAST, M 512 and more", 1.05, 1.01, judge="each",
        cases=tuple(grid([512, 1024, 2048, 8192], SOME)), over=("precise", "bare"), under=("routed", "bare")),
    Bar("bias", "with a bias over without", 1.02, 1.00, judge="each", cases=tuple(grid([16, 512, 4096], SOME)),
        over=("bias", "bare"), under=("routed", "bare")),
    Bar("ragged", "M 65, 129, 257 over one row fewer", 1.10, 1.03, judge="each", cases=tuple(grid([65, 129, 257])),
        under=("one fewer", "bare")),
    Bar("bmm", "batched routed over cuBLASLt's first heuristic", 1.01, 0.85, judge="each", cases=tuple(BMM),
        under=("heuristic", "bare")),
    invariant("invariant-64", UP_TO_64, 1.05, 1.02), invariant("invariant-512", UP_TO_512, 1.10, 1.03),
    invariant("invariant-8192", BEYOND, 1.03, 1.01),
    Bar("invariant-worst", "the same, worst family and set of M", 1.20, 1.08, judge="sets", cases=tuple(grid(SIX + SETS[6])),
        over=("invariant", "bare"), under=("routed", "bare")),
    Bar("quantised", "bf16 a over the e4m3 product alone, M 1-64", 1.15, 1.08, cases=tuple(grid(UP_TO_64)),
        over=("quantised", "bare"), under=("routed", "bare")),
    Bar("K-3420", "packed K = 3420 over K = 3424", 1.5, 1.1, judge="each",
        cases=tuple(Case(m, n, 3420) for m in (16, 256, 1024) for n in (1280, 4096)), under=("padded", "bare")),
    Bar("regret-mean", "regret on unseen problems, mean", 2.0, 0.5, unit="%", special="regret"),
    Bar("regret-worst", "regret on unseen problems, worst", 10.0, 3.0, unit="%", special="regret", judge="each"),
    Bar("quantiser", "row quantiser over copy bandwidth, 512 MB and more", 0.80, 0.92, True, "each", special="quantiser"),
    Bar("host", "a warm routed call over a bare launch, host time", 0.8, 0.4, unit="us", special="host"),
    Bar("decision", "a decision for one of 1,000 known problems, host time", 100, 30, unit="ns", special="decision"),
    Bar("portable", "cuda row, aligned, M 512 and more", 100, 300, True, "each",
        tuple(grid([512, 1024, 4096], [(4096, 4096)])), ("portable", "bare"), ("portable", "bare"), unit="TFLOP/s",
        special="tflops"),
    Bar("portable-any", "cuda row, any layout, M 512", 20, 50, True, "each",
        tuple(Case(512, 4096, 4096, options=":" + o) for o in LAYOUTS), ("portable", "bare"), ("portable", "bare"),
        unit="TFLOP/s", special="tflops"),
    Bar("first-call", "first routed call of a cold process beyond CUDA's start", 300, 150, unit="ms",
        special="first_call"),
    Bar("library", "size of the library", 30, 15, unit="MB", special="library"),
]
