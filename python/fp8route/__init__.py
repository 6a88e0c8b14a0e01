"""fp8route: FP8 matrix multiplication, each product sent to the implementation measured fastest on this machine.

This package needs the C library only. `fp8route.torch` holds the PyTorch operators, `fp8route.compat` the functions that
take other libraries' places; both import torch, and nothing else here does.
SPDX-License-Identifier: Apache-2.0
"""
from ._adaptors import register_adaptors
from ._backends import Problem, register_backend, unregister_backend
from ._context import Candidate, Explanation, backends, device_name, explain, route_files, routes_id, user_route_file
from ._library import Error, version_text
from ._trace import read_trace, trace
from ._tune import Tuned, tune
from .compat import install, installed, stats, uninstall

__version__ = version_text()
__all__ = ["Candidate", "Error", "Explanation", "Problem", "Tuned", "backends", "device_name", "explain", "install",
           "installed", "read_trace", "register_adaptors", "register_backend", "route_files", "routes_id", "stats", "trace",
           "tune", "uninstall", "unregister_backend", "user_route_file"]
