"""Tuning from Python: the program's own protocol where only built-in backends race, and here where callables do, too.

A callable lives in this process, so the race is run here: verified first, then timed in rounds of random order on operands
that rotate out of the caches, then winner against default in pairs. Every time is kept in the program's own sample format,
and the program makes the route file of it, by the same rules as always.
SPDX-License-Identifier: Apache-2.0
"""
import collections.abc
import dataclasses
import json
import os
import pathlib
import random
import shutil
import subprocess
import time

from . import _backends, _context
from . import _library as L

GRID = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


@dataclasses.dataclass(frozen=True)
class Tuned:
    """Where routes and samples are; of each problem that was raced here the median time of every candidate, in us."""
    routes: str
    samples: str
    medians: dict


def program():
    """The program fp8route: FP8ROUTE_PROGRAM, the checkout's, or the one on PATH."""
    named = os.environ.get("FP8ROUTE_PROGRAM")
    beside = pathlib.Path(L.path).resolve().parent  # build/src, PREFIX/lib or PREFIX/lib/TRIPLET
    places = [pathlib.Path(named)] if named else [folder / "fp8route" for up in (beside.parent, beside.parent.parent)
                                                  for folder in (up / "tool", up / "bin")]
    for place in places:
        if place.is_file():
            return str(place)
    found = shutil.which("fp8route")
    if found and not named:
        return found
    if named:
        raise RuntimeError(f"FP8ROUTE_PROGRAM is {named}: there is no such file")
    raise RuntimeError("the program fp8route, which writes route files, is not here, and no wheel has it: build it with `make` "
                       "and name it in FP8ROUTE_PROGRAM (build/tool/fp8route of the checkout), or put it on PATH")


def _run(*arguments, good=(0, 3)):
    """What the program prints. good: exit codes; 3 is inconclusive, which the route file says by itself."""
    done = subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode not in good:
        raise RuntimeError(done.stderr.strip() or f"fp8route {arguments[0]} failed with {done.returncode}")
    return done.stdout


def _device_text(device):
    kind, index = _context.parse_device(device)
    return "cpu" if kind == L.CPU else f"cuda:{index}"


def _problems(families, m):
    """Texts of problems; a family is NxK[:OPTION] or B*MxNxK with the letter M."""
    texts = []
    for family in [families] if isinstance(families, str) else families:
        shape, colon, options = family.partition(":")
        if "M" not in shape:
            shape = f"Mx{shape}"
        texts += [shape.replace("M", str(rows)) + colon + options for rows in m]
    return texts


def _rows(m):
    """The values of M, whole numbers, in the order given."""
    rows = tuple(m) if isinstance(m, collections.abc.Iterable) else (m,)
    if not rows or any(type(each) is not int or not 1 <= each < 2 ** 63 for each in rows):
        raise ValueError(f"m is {m!r}: it must be whole numbers from 1")
    return rows


def _check_race(problems, rounds, pairs, seed, budget):
    """What is wrong is said before anything is measured."""
    if not problems:
        raise ValueError("families is empty: it must name what to measure, like 4096x14336")
    for problem in problems:
        _context.matmul_of(problem)
    for name, value, least in (("rounds", rounds, 1), ("pairs", pairs, 0), ("seed", seed, 0)):
        if type(value) is not int or not least <= value < 2 ** 63:
            raise ValueError(f"{name} is {value!r}: it must be a whole number of at least {least}")
    if budget is not None:
        raise ValueError(f"budget is {budget!r}: with registered callables rounds and pairs say how much is measured")


def _machine(device, cold, is_graph):
    facts = json.loads(_run("info", "--json", "--device", device))
    lines = ["fp8route-routes 1", f"device {facts['device']['kind']}", f"identity {facts['device']['identity']}"]
    lines += [f'library {row["name"]} "{row["library"]}"' for row in facts["backends"] if row["library"] and row["fits"]]
    lines += [f'fact name "{facts["device"]["name"]}"', f'fact date "{time.strftime("%Y-%m-%d", time.gmtime())}"',
              f'fact fp8route "{facts["version"]}"']
    mode, operands = "graph" if is_graph else "eager", "cold" if cold else "warm"
    lines += [f"protocol full mode={mode} operands={operands}", "", "end entries=0", ""]
    return "\n".join(lines), facts["user_route_file"]


def _candidates(problem, device):
    """Every configuration that prepares, and the number of the default among them: what an untuned library takes."""
    from . import _race
    with _context.unrouted(device) as address:
        explanation = _context.explain(problem, device, address)
    usable = [row.backend for row in explanation.candidates if row.verdict != "refused"]
    revisions = {row["name"]: row["rev"] for row in _context.backends(device)}
    named = [(f"{row['name']}:{config}", revisions[row["name"]]) for row in _context.backends(device)
             if row["name"] in usable for config in row["configs"]]
    is_hidden = explanation.source == "forced" or not explanation.chosen
    default = _default(explanation, usable) if is_hidden else explanation.chosen
    entrants = [(name, rev) for name, rev in named if name == default or _race.prepares(problem, name, device)]
    return entrants, [name for name, _ in entrants].index(default)


def _default(explanation, usable):
    """The default where FP8ROUTE_BACKEND or FP8ROUTE_UNROUTED hides it: the first by priority, in its own pick."""
    first = next(row for row in explanation.candidates if row.backend in usable)
    return f"{first.backend}:{first.config}"


class _Writer:
    """Appends records to a file of its own, in a folder below the program's samples: where other candidates raced, times are
    not pooled."""

    def __init__(self, folder, seed, machine):
        self.run = f"{time.time_ns():x}-{os.getpid():x}"
        folder = pathlib.Path(folder) / "callables"
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"python-{self.run}.jsonl"
        self.file = open(self.path, "a", encoding="utf-8")
        self.put(record="run", schema="fp8route.samples/1", run=self.run, seed=seed, margin=0.02, machine=machine)

    def sample(self, case, candidate, phase, turn, us):
        self.file.write(f'{{"record":"sample","case":{case},"candidate":{candidate},"phase":"{phase}","round":{turn},'
                        f'"us":{us:.6f},"mhz":0}}\n')

    def put(self, **record):
        self.file.write(json.dumps(record, separators=(",", ":")) + "\n")
        if record["record"] in ("run", "done"):
            self.file.flush()


def _race_case(writer, case, problem, device, options, draw):
    """One problem, from verification to its last pair; the medians."""
    from . import _race
    entrants, default = _candidates(problem, device)
    writer.put(record="case", case=case, problem=problem, weight=1.0, default=default,
               candidates=[{"name": name, "rev": rev} for name, rev in entrants])
    race = _race.Race(problem, [name for name, _ in entrants], device, options["cold"], options["is_graph"], options["seed"])
    running = list(range(len(entrants)))
    for number in list(running):
        why = race.verify(number)
        if why:
            writer.put(record="dropped", case=case, candidate=number, why=why)
            running.remove(number)
    if default not in running:
        raise RuntimeError(f"{problem}: the default, {entrants[default][0]}, computes wrong values")
    times = {number: [] for number in running}

    def sample(numbers, phase, turn):
        for number in draw.sample(numbers, len(numbers)):
            us = race.time(number)
            times[number].append(us)
            writer.sample(case, number, phase, turn, us)

    for turn in range(options["rounds"]):
        sample(running, "grid", turn)
        if turn == 2:
            best = min(_median(times[number]) for number in running)
            for number in [each for each in running if each != default and _median(times[each]) > 1.5 * best]:
                writer.put(record="dropped", case=case, candidate=number, why=f"{_median(times[number]) / best:.1f}x behind")
                running.remove(number)
    winner = min(running, key=lambda number: _median(times[number]))
    if winner != default:
        for turn in range(options["pairs"]):
            sample([winner, default], "confirm", turn)
    writer.put(record="done", case=case, noisy=False)
    return {entrants[number][0]: _median(values) for number, values in times.items()}


def _median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _check(writer, out):
    """Can the file be added to? The program looks before it says that nothing is measured yet (4)."""
    try:
        _run("table", "build", writer.path, "--into", out, good=(4,))
    except RuntimeError:
        writer.file.close()
        writer.path.unlink()
        raise


def tune(families, m=GRID, device="cpu", out=None, samples=None, cold=True, seed=0, rounds=8, pairs=40, budget=None):
    """Measures families ("4096x14336", "6144x4096:bias") at each m and writes their routes, which then decide here.

    Without registered callables the program's own full protocol does it (budget: "10m"); with them the race is run in this
    process, which takes rounds samples of every candidate and pairs of winner and default, and no budget.
    out: the route file to add to; the user's own for this machine unless given. Its entries of other families stay. Another
    one than the user's decides where FP8ROUTE_TABLE names it.
    samples: a folder of raw samples, kept; the program's own unless given, beside the user's route file.
    """
    name, m = _device_text(device), _rows(m)
    if not _backends.registered():
        return _tune_by_program(families, m, name, out, samples, cold, seed, budget)
    from . import _race
    problems = _problems(families, m)
    _check_race(problems, rounds, pairs, seed, budget)
    is_graph = name != "cpu"
    machine, own = _machine(name, cold, is_graph)
    if not own and not (out and samples):
        raise RuntimeError("neither HOME nor XDG_CACHE_HOME names a folder for routes: out and samples say what goes where")
    out, folder = out or own, samples or pathlib.Path(own).with_suffix(".samples")
    writer, draw, medians = _Writer(folder, seed, machine), random.Random(seed), {}
    options = {"cold": cold, "is_graph": is_graph, "rounds": rounds, "pairs": pairs, "seed": seed}
    _check(writer, out)
    with writer.file:
        for case, problem in enumerate(problems):
            medians[problem] = _race_case(writer, case, problem, name, options, draw)
    _race.release()
    try:
        _run("table", "build", writer.path, "--into", out)
    except RuntimeError as error:  # another process changed the file meanwhile
        raise RuntimeError(f"{error}; nothing is lost: fp8route table build {writer.path} --into FILE") from None
    _context.renew()
    return Tuned(str(out), str(writer.path), medians)


def _tune_by_program(families, m, device, out, samples, cold, seed, budget):
    arguments = ["tune", "--device", device, "--seed", seed, "--m", ",".join(map(str, m)), "--json"]
    for option, value in (("--out", out), ("--samples", samples), ("--budget", budget)):
        arguments += [option, value] if value is not None else []
    arguments += [] if cold else ["--warm"]
    arguments += ["--family", *([families] if isinstance(families, str) else families)]
    report = json.loads(_run(*arguments))
    _context.renew()
    return Tuned(report["out"], report["samples"], {})
