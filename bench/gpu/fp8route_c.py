"""The library's public C interface and the benchmark's own kernels, by ctypes.
SPDX-License-Identifier: Apache-2.0"""
import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

ELEMENT_BYTES = [0, 1, 1, 2, 2, 4]
CODES, HALVES, SCALES = 0, 1, 2  # kinds of bench_fill


class Matrix(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int32), ("reserved", c_int32)] + \
               [(name, c_int64) for name in ("batch", "rows", "cols", "batch_stride", "row_stride", "col_stride")]

    def extent_bytes(self):
        last = (self.batch - 1) * self.batch_stride + (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride
        return (last + 1) * ELEMENT_BYTES[self.dtype] if self.dtype else 0


class Matmul(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t)] + [(name, Matrix) for name in ("a", "b", "out", "scale_a", "scale_b", "bias")] + \
               [("accumulation", c_int32), ("numerics", c_int32), ("flags", c_uint32), ("reserved", c_uint32)]


class Pointers(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("m", c_int64)] + \
               [(name, c_void_p) for name in ("a", "b", "out", "scale_a", "scale_b", "bias")]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("threads", c_int32), ("flags", c_uint32), ("routes", c_char_p),
                ("backends", c_void_p), ("backend_count", c_size_t), ("log", c_void_p), ("log_user", c_void_p)]


class Device(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("index", c_int32)]


class Failure(RuntimeError):
    pass


class Library:
    """Both shared objects. Every call that fails raises with the library's own line."""

    def __init__(self, fp8route, bench):
        self.c = ctypes.CDLL(fp8route, mode=ctypes.RTLD_GLOBAL)
        self.kernels = ctypes.CDLL(bench)
        self.c.fp8r_last_error.restype = c_char_p
        self.c.fp8r_plan_backend.restype = c_char_p
        self.c.fp8r_plan_backend.argtypes = [c_void_p, c_int64]
        self.c.fp8r_plan_workspace.restype = c_size_t
        self.c.fp8r_plan_workspace.argtypes = [c_void_p]
        self.c.fp8r_plan_destroy.argtypes = [c_void_p]
        self.c.fp8r_plan_run.argtypes = [c_void_p, POINTER(Pointers), c_void_p, c_size_t, c_void_p]
        self.c.fp8r_context_destroy.argtypes = [c_void_p]
        k = self.kernels
        k.bench_error_text.restype = c_char_p
        k.bench_fill.argtypes = [c_void_p, c_int64, c_int, c_uint64, c_void_p]
        k.bench_copy.argtypes = [c_void_p, c_void_p, c_int64, c_void_p]
        k.bench_floor.argtypes = [c_void_p, c_int64, c_void_p, c_int64, c_int, c_int, c_void_p]
        k.bench_producer.argtypes = [c_void_p, c_void_p, c_int64, c_int, c_int, c_void_p]
        k.bench_allocate.argtypes = [POINTER(c_void_p), c_int64]
        for name in ("bench_free", "bench_wait", "bench_capture_begin", "bench_graph_free"):
            getattr(k, name).argtypes = [c_void_p]
        k.bench_capture_end.argtypes = [c_void_p, POINTER(c_void_p)]
        k.bench_replay.argtypes = [c_void_p, c_void_p, c_int]
        k.bench_rounds.argtypes = [POINTER(c_void_p), c_int, c_int, c_uint32, c_void_p, POINTER(c_double)]

    def ok(self, status):
        if status != 0:
            raise Failure(self.c.fp8r_last_error().decode())

    def cuda(self, name, *arguments):
        error = getattr(self.kernels, name)(*arguments)
        if error != 0:
            raise Failure(f"{name}: {self.kernels.bench_error_text(error).decode()}")

    def device(self):
        """Name and driver; Failure where there is no GPU."""
        name, driver = ctypes.create_string_buffer(256), c_int()
        self.cuda("bench_device", name, 256, byref(driver))
        return name.value.decode(), driver.value

    def allocate(self, size):
        memory = c_void_p()
        self.cuda("bench_allocate", byref(memory), size)
        return memory.value

    def parse(self, text):
        matmul = Matmul()
        self.ok(self.c.fp8r_matmul_parse(text.encode(), byref(matmul)))
        return matmul

    def context(self, routes, **environment):
        """A context that reads `routes` first, made while the environment holds these variables."""
        kept = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        options = Options(struct_size=ctypes.sizeof(Options), routes=routes.encode() if routes else None)
        context = c_void_p()
        try:
            self.ok(self.c.fp8r_context_create(Device(1, 0), byref(options), byref(context)))
        finally:
            for name, value in kept.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        return context

    def plan(self, context, matmul, backend):
        plan = c_void_p()
        self.ok(self.c.fp8r_plan_create(context, byref(matmul), backend.encode() if backend else None, byref(plan)))
        return plan
