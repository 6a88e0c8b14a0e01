"""Builds the wheel: the package, and inside it the C library and the committed routes.

The library is FP8ROUTE_LIBRARY, or the checkout's build/, or else is built here with CMake.
SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent.parent


def header_version():
    header = ROOT / "include/fp8route/fp8route.h"
    if not header.exists():
        raise SystemExit(f"fp8route is built from a whole checkout, of which python/ is a part: there is no {header}")
    text = header.read_text()
    return ".".join(re.search(rf"#define FP8R_VERSION_{part} (\d+)", text).group(1) for part in ("MAJOR", "MINOR", "PATCH"))


def built_libraries(folder):
    """The library's file and the operators' fast path (where there is one), built where they are not there yet."""
    named = os.environ.get("FP8ROUTE_LIBRARY")
    if named:
        build = pathlib.Path(named).resolve().parent.parent
        return pathlib.Path(named), build / "python/libfp8route_torch.so"
    ready = ROOT / "build"
    if not (ready / "src/libfp8route.so.0").exists():
        ready = folder
        compiler = subprocess.run([ROOT / "scripts/cuda_compiler"], capture_output=True, text=True).stdout.strip()
        cuda = ["-DFP8R_CUDA=ON", f"-DCMAKE_CUDA_COMPILER={compiler}"] if compiler else ["-DFP8R_CUDA=OFF"]
        subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-DFP8R_TESTS=OFF", *cuda], check=True)
        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(len(os.sched_getaffinity(0)))
        subprocess.run(["cmake", "--build", folder, "--parallel", jobs], check=True)  # without a number make starts all at once
    return ready / "src/libfp8route.so.0", ready / "python/libfp8route_torch.so"


class BuildPy(build_py):
    """Adds what is not Python. The library finds its routes beside itself."""

    def run(self):
        package = pathlib.Path(self.build_lib) / "fp8route"
        shutil.rmtree(package, ignore_errors=True)  # what an earlier build left, which may be no part of this one
        super().run()
        temporary = pathlib.Path(self.get_finalized_command("build").build_temp).resolve() / "fp8route"
        library, fast_path = built_libraries(temporary)
        (package / "lib").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(library, package / "lib/libfp8route.so.0")
        if fast_path.exists():
            shutil.copyfile(fast_path, package / "lib/libfp8route_torch.so")
        routes = package / "share/fp8route/routes"
        routes.mkdir(parents=True, exist_ok=True)
        for file in ROOT.glob("routes/*.routes"):
            shutil.copyfile(file, routes / file.name)


class BinaryDistribution(Distribution):
    """The wheel holds machine code, though no extension module."""

    def has_ext_modules(self):
        return True


setup(version=header_version(), cmdclass={"build_py": BuildPy}, distclass=BinaryDistribution)
