"""bench_gpu.py with stubs for programs, library and device: a bar that was not measured never holds, and what goes wrong in one
costs neither the rows of the others nor the result file.

    check_bench_gpu.py BENCH_FOLDER WORK_FOLDER
SPDX-License-Identifier: Apache-2.0"""
import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import types
import unittest
from unittest import mock

BENCH, WORK = sys.argv[1:3]
sys.path.insert(0, BENCH)
import bench_gpu
from fp8route_c import Failure

UNSEEN = {"counted": 50, "left": 0, "mean_regret": 0.004, "worst_regret": 0.03, "worst_low": 0.02, "problems": []}
FIRST = {"beyond_cuda_ms": 100, "cuda_ms": 200, "context_ms": 20, "product_ms": 3}


def program(name, text, code=0, before=""):
    path = os.path.join(WORK, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{before}\ncat <<'END'\n{text}\nEND\nexit {code}\n" if text else f"#!/bin/sh\n{before}\nexit {code}\n")
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


def bars_run(only, *options):
    """bench_gpu.py as a command: exit code, rows by their bar from the result file (None without one), standard error."""
    results = os.path.join(WORK, "results")
    os.makedirs(results, exist_ok=True)
    for name in os.listdir(results):
        os.remove(os.path.join(results, name))
    words = ["bench_gpu.py", "--library", os.devnull, "--kernels", "none", "--only", only, "--routes", "some.routes",
             "--results", results, "--commit", "c", *options]
    library = mock.Mock(device=lambda: ("Stub", 1))
    errors = io.StringIO()
    with mock.patch.object(sys, "argv", words), mock.patch("bench_gpu.Library", return_value=library), \
            mock.patch("bench_gpu.Machine", return_value=types.SimpleNamespace(torch=None)), \
            mock.patch("bench_gpu.import_torch", return_value=None), mock.patch.object(bench_gpu.Run, "warm"), \
            contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            code = bench_gpu.main()
        except SystemExit as end:
            code = end.code
    files = os.listdir(results)
    if not files:
        return code, None, errors.getvalue()
    with open(os.path.join(results, files[0]), encoding="utf-8") as file:
        kept = json.load(file)
    return code, {row["bar"]: row for row in kept["bars"]}, errors.getvalue()


def gate(text, code=0, **more):
    return ["--program", program("fp8route", text, code, **more)]


class Files(unittest.TestCase):
    def test_two_that_end_in_one_second_keep_a_file_each(self):
        folder = tempfile.mkdtemp(dir=WORK)
        for _ in range(3):
            with bench_gpu.create(folder, "gpu-now") as file:
                file.write("{}")
        self.assertEqual(sorted(os.listdir(folder)), ["gpu-now-2.json", "gpu-now-3.json", "gpu-now.json"])


class Unmeasured(unittest.TestCase):
    """Each beside `library`, which needs a file only, and comes last."""

    def not_measured(self, only, options, why):
        code, rows, _ = bars_run(only + ",library", *options)
        self.assertEqual(code, 0)
        self.assertTrue(rows["library"]["holds"])
        for name in only.split(","):
            self.assertFalse(rows[name]["measured"])
            self.assertRegex(rows[name]["note"], why)

    def test_gate(self):
        zeros = json.dumps({"unseen": dict(UNSEEN, counted=0, left=50, mean_regret=0, worst_regret=0, worst_low=0)})
        both = "regret-mean,regret-worst"
        self.not_measured(both, gate(zeros), "no unseen problem was measured, 50 were left")
        self.not_measured(both, gate(zeros, 4), "ended with 4|why not")
        self.not_measured(both, gate(json.dumps({"unseen": UNSEEN}), 5, before="echo why not >&2"), "^why not$")
        self.not_measured(both, gate('{"unseen": {"coun', 0), "fp8route gate: no JSON")
        self.not_measured(both, gate('{"unseen":', before="trap 'kill -KILL $$' EXIT"), "ended with -9|no JSON")
        self.not_measured(both, gate(""), "fp8route gate: no JSON")
        self.not_measured(both, gate("[]"), "fp8route gate: no JSON object")
        self.not_measured(both, gate('{"unseen": {}}'), "KeyError: 'counted'")
        self.not_measured(both, ["--program", os.path.join(WORK, "missing")], "missing: No such file")

    def test_gate_file(self):
        path = os.path.join(WORK, "gate.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"routes": []}, file)
        self.not_measured("regret-mean,regret-worst", ["--gate", path], "without --unseen")

    def test_first_call(self):
        for text, code, why in (("", 0, "first_call: no JSON"), ("", 3, "ended with 3"), ("7", 0, "no JSON object"),
                                ('{"cuda_ms": 1}', 0, "KeyError: 'beyond_cuda_ms'")):
            self.not_measured("first-call", ["--first-call", program("first_call", text, code)], why)

    def test_products(self):
        """A case that cannot be laid out, or a device that fails while it is timed."""
        for error in Failure("out of memory"), RuntimeError("torch's"):
            with mock.patch("bench_gpu.Point", side_effect=error):
                self.not_measured("bias,portable", [], str(error))
        point = mock.Mock(labels={}, failures={})
        point.measure.side_effect = Failure("bench_rounds: lost")
        with mock.patch("bench_gpu.Point", return_value=point):
            self.not_measured("bias", [], "bench_rounds: lost")

    def test_nothing(self):
        code, rows, _ = bars_run("first-call", "--first-call", program("first_call", ""))
        self.assertEqual(code, 4)
        self.assertFalse(rows["first-call"]["measured"])


class Measured(unittest.TestCase):
    def test_they_hold_or_not(self):
        code, rows, _ = bars_run("regret-mean,regret-worst,first-call", *gate(json.dumps({"unseen": UNSEEN})),
                                 "--first-call", program("first_call", json.dumps(FIRST)))
        self.assertEqual(code, 0)
        self.assertEqual([row["ratio"] for row in rows.values()], [0.4, 3.0, 100])
        worse = json.dumps({"unseen": dict(UNSEEN, mean_regret=0.05)})
        code, rows, _ = bars_run("regret-mean", *gate(worse, 1))
        self.assertEqual((code, rows["regret-mean"]["holds"]), (1, False))


class Kept(unittest.TestCase):
    def test_interrupted(self):
        """Bars come in their own order: of the two the second is the library."""
        with mock.patch("bench_gpu.singles.library", side_effect=KeyboardInterrupt):
            code, rows, errors = bars_run("first-call,library", "--first-call", program("first_call", json.dumps(FIRST)))
        self.assertEqual((code, list(rows)), (130, ["first-call"]))
        self.assertIn("interrupted", errors)

    def test_folders_and_files_are_looked_at_first(self):
        with mock.patch("bench_gpu.Run", side_effect=AssertionError):
            for option, value in ("--results", "missing"), ("--results", __file__), ("--gate", "missing"), ("--rounds", "2"), \
                    ("--only", "missing"):
                code, _, errors = bars_run("library", option, value)
                self.assertEqual(code, 2)
                self.assertRegex(errors, f"error: .*({option}|no such bar)")

    def test_no_context(self):
        with mock.patch("bench_gpu.Run", side_effect=Failure("another machine's routes")):
            code, rows, errors = bars_run("library")
        self.assertEqual((code, rows, errors), (4, None, "bench-gpu: another machine's routes\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
