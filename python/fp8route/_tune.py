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
import re
import shutil
import subprocess
import tempfile
import time
import warnings

from . import _backends, _context
from . import _library as L

GRID = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


@dataclasses.dataclass(frozen=True)
class Tuned:
    """Where routes and samples are; of each problem that was raced here, which takes registered callables, the median time of
    every candidate in us, and of those that were left out since they are wrong or raised, why."""
    routes: str
    samples: str
    medians: dict
    wrong: dict = dataclasses.field(default_factory=dict)


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
        raise L.Error("FP8R_ERROR_NOT_FOUND", f"FP8ROUTE_PROGRAM is {named}: there is no such file")
    raise L.Error("FP8R_ERROR_NOT_FOUND",
                  "the program fp8route, which writes route files, is not here, and no wheel has it: build it with `make` "
                  "and name it in FP8ROUTE_PROGRAM (build/tool/fp8route of the checkout), or put it on PATH")


_STATUS_OF_EXIT = {2: "FP8R_ERROR_INVALID_ARGUMENT", 4: "FP8R_ERROR_UNSUPPORTED", 5: "FP8R_ERROR_IO"}


def _run(*arguments, good=(0, 3)):
    """What the program prints. good: exit codes; 3 is inconclusive, which the route file says by itself."""
    done = subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode not in good:
        raise L.Error(_STATUS_OF_EXIT.get(done.returncode, "FP8R_ERROR_UNKNOWN"),
                      done.stderr.strip() or f"fp8route {arguments[0]} failed with {done.returncode}")
    for line in done.stderr.splitlines():
        if not re.match(r" *\d+ %|fp8route", line):  # neither progress nor the library's own lines
            warnings.warn(line, stacklevel=4)
    return done.stdout


def _device_text(device):
    kind, index = _context.parse_device(device)
    return "cpu" if kind == L.CPU else f"cuda:{index}"


def _families(families):
    """The texts of families, in the order given."""
    is_many = isinstance(families, collections.abc.Iterable) and not isinstance(families, str)
    texts = list(families) if is_many else [families]
    if any(not isinstance(each, str) for each in texts):
        raise TypeError(f"families is {families!r}: it must be text such as '4096x14336', or a list of such")
    if not texts:
        raise ValueError("families is empty: it must name what to measure, like 4096x14336")
    return texts


def _problems(families, m):
    """Texts of problems; a family is NxK[:OPTION], where the letter M is put in, or [B*]MxNxK. Each is looked at first."""
    texts = []
    for family in families:
        shape, colon, options = family.partition(":")
        if shape.count("x") == 1:
            batch, star, sizes = shape.rpartition("*")
            shape = f"{batch}{star}Mx{sizes}"
        if not re.match(r"(\d+\*)?Mx", shape):
            raise L.Error("FP8R_ERROR_INVALID_ARGUMENT", f'family "{family}": expected NxK or [B*]MxNxK, where M stays a letter')
        made = [shape.replace("M", str(rows), 1) + colon + options for rows in m]
        try:
            for problem in made:
                _context.matmul_of(problem)
        except L.Error as error:
            why = re.sub(r'^problem ".*", position \d+: ', "", str(error))
            raise L.Error(error.status, f'family "{family}": {why}') from None
        texts += made
    return texts


def _rows(m):
    """The values of M, whole numbers, in the order given."""
    rows = tuple(m) if isinstance(m, collections.abc.Iterable) else (m,)
    if not rows or any(type(each) is not int or not 1 <= each < 2 ** 63 for each in rows):
        raise ValueError(f"m is {m!r}: it must be whole numbers from 1")
    return rows


def _check_race(rounds, pairs, seed, budget):
    """What is wrong is said before anything is measured."""
    for name, value, least in (("rounds", rounds, 1), ("pairs", pairs, 0), ("seed", seed, 0)):
        if type(value) is not int or not least <= value < 2 ** 63:
            raise ValueError(f"{name} is {value!r}: it must be a whole number of at least {least}")
    if budget is not None:
        raise ValueError(f"budget is {budget!r}: with registered callables rounds and pairs say how much is measured")


def _check_denied(out, samples):
    if os.environ.get("FP8ROUTE_DENY") and not (out and samples):
        raise L.Error("FP8R_ERROR_INVALID_ARGUMENT", "FP8ROUTE_DENY is set, and routes measured without those backends are not for "
                      "the user's own file, which decides for processes that have them: unset it, or name out and samples")


def _machine(device, cold, is_graph):
    facts = json.loads(_run("info", "--json", "--device", device))
    lines = ["fp8route-routes 1", f"device {facts['device']['kind']}", f"identity {facts['device']['identity']}"]
    lines += [f'library {row["name"]} "{row["library"]}"' for row in facts["backends"] if row["library"] and row["fits"]]
    lines += [f'fact name "{facts["device"]["name"]}"', f'fact date "{time.strftime("%Y-%m-%d", time.gmtime())}"',
              f'fact fp8route "{facts["version"]}"']
    mode, operands = "graph" if is_graph else "eager", "cold" if cold else "warm"
    behind = " behind=both" if is_graph else ""
    lines += [f"protocol full mode={mode} operands={operands}{behind}", "", "end entries=0", ""]
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
    not pooled. Nothing is made where the route file cannot be added to: the program looks before it says that nothing is
    measured yet (4)."""

    def __init__(self, folder, seed, machine, out):
        self.run = f"{time.time_ns():x}-{os.getpid():x}"
        first = _line(record="run", schema="fp8route.samples/1", run=self.run, seed=seed, margin=0.02, machine=machine)
        with tempfile.TemporaryDirectory() as begun:
            pathlib.Path(begun, "begun.jsonl").write_text(first, encoding="utf-8")
            _run("table", "build", begun, "--into", out, good=(4,))
        folder = pathlib.Path(folder) / "callables"
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"python-{self.run}.jsonl"
        self.file = open(self.path, "a", encoding="utf-8")
        self.file.write(first)
        self.file.flush()

    def sample(self, case, candidate, phase, turn, us):
        self.file.write(f'{{"record":"sample","case":{case},"candidate":{candidate},"phase":"{phase}","round":{turn},'
                        f'"us":{us:.6f},"mhz":0}}\n')

    def put(self, **record):
        self.file.write(_line(**record))
        if record["record"] == "done":
            self.file.flush()


def _line(**record):
    return json.dumps(record, separators=(",", ":")) + "\n"


def _race_case(writer, case, problem, device, options, draw):
    """One problem, from verification to its last pair; the medians, and who was left out and why."""
    from . import _race
    entrants, default = _candidates(problem, device)
    writer.put(record="case", case=case, problem=problem, weight=1.0, default=default,
               candidates=[{"name": name, "rev": rev} for name, rev in entrants])
    race = _race.Race(problem, [name for name, _ in entrants], device, options["cold"], options["is_graph"], options["seed"])
    running, wrong = list(range(len(entrants))), {}
    for number in list(running):
        why = race.verify(number)
        if why:
            writer.put(record="dropped", case=case, candidate=number, why=why)
            running.remove(number)
            wrong[entrants[number][0]] = why
    if default not in running:
        name = entrants[default][0]
        raise L.Error("FP8R_ERROR_DEVICE", f"{problem}: the default, {name}, cannot be raced against: {wrong[name]}")
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
    return {entrants[number][0]: _median(values) for number, values in times.items()}, wrong


def _median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def tune(families, m=GRID, device="cpu", out=None, samples=None, cold=True, seed=0, rounds=8, pairs=40, budget=None):
    """Measures families ("4096x14336", "6144x4096:bias") at each m and writes their routes, which then decide here.

    Without registered callables the program's own full protocol does it (budget: "10m"); with them the race is run in this
    process, which takes rounds samples of every candidate and pairs of winner and default, and no budget.
    out: the route file to add to; the user's own for this machine unless given. Its entries of other families stay. Another
    one than the user's decides where FP8ROUTE_TABLE names it.
    samples: a folder of raw samples, kept; the program's own unless given, beside the user's route file.
    """
    name, families, m = _device_text(device), _families(families), _rows(m)
    _check_denied(out, samples)
    if not _backends.registered():
        return _tune_by_program(families, m, name, out, samples, cold, seed, budget)
    from . import _race
    problems = _problems(families, m)
    _check_race(rounds, pairs, seed, budget)
    is_graph = name != "cpu"
    machine, own = _machine(name, cold, is_graph)
    if not own and not (out and samples):
        raise L.Error("FP8R_ERROR_NOT_FOUND",
                      "neither HOME nor XDG_CACHE_HOME names a folder for routes: out and samples say what goes where")
    out, folder = out or own, samples or pathlib.Path(own).with_suffix(".samples")
    writer, draw, medians, wrong = _Writer(folder, seed, machine, out), random.Random(seed), {}, {}
    options = {"cold": cold, "is_graph": is_graph, "rounds": rounds, "pairs": pairs, "seed": seed}
    with writer.file:
        for case, problem in enumerate(problems):
            medians[problem], left_out = _race_case(writer, case, problem, name, options, draw)
            for each in left_out.keys() - {named for others in wrong.values() for named in others}:
                warnings.warn(f"{each} is left out of {problem}: {left_out[each]}", stacklevel=2)  # once each
            wrong.update({problem: left_out} if left_out else {})
    _race.release()
    try:
        _run("table", "build", writer.path, "--into", out)
    except L.Error as error:  # another process changed the file meanwhile
        raise L.Error(error.status, f"{error}; nothing is lost: fp8route table build {writer.path} --into FILE") from None
    _context.renew()
    return Tuned(str(out), str(writer.path), medians, wrong)


def _tune_by_program(families, m, device, out, samples, cold, seed, budget):
    arguments = ["tune", "--device", device, "--seed", seed, "--m", ",".join(map(str, m)), "--json"]
    for option, value in (("--out", out), ("--samples", samples), ("--budget", budget)):
        arguments += [option, value] if value is not None else []
    arguments += [] if cold else ["--warm"]
    report = json.loads(_run(*arguments, "--family", *families))
    _context.renew()
    return Tuned(report["out"], report["samples"], {})
