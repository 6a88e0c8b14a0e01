"""The C library through ctypes: where it lies, its structs, and its public functions.

Nothing here judges an argument: the library does, and its one line becomes the exception's text.
SPDX-License-Identifier: Apache-2.0
"""
import ctypes as c
import os
import pathlib

OK, INVALID_ARGUMENT, UNSUPPORTED, AMBIGUOUS, NOT_FOUND, OUT_OF_MEMORY, DEVICE, IO, FORMAT = range(9)
NONE, E4M3, E5M2, BF16, FP16, FP32 = range(6)
PLAIN, LINEAR, BATCHED = range(3)
FAST, PRECISE = range(2)
ANY, BATCH_INVARIANT = range(2)
WEIGHTS_STATIC = 1
NO_ROUTE_FILES = 2  # of a context
COMPUTE, GIVEN = range(2)
CPU, CUDA = range(2)
VERDICTS = ("chosen", "eligible", "refused")


class Error(RuntimeError):
    """A call that the library refused; `status` is its stable name."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status

    def __reduce__(self):  # so that it reaches another process
        return type(self), (self.status, str(self))


class Matrix(c.Structure):
    _fields_ = [("data", c.c_void_p), ("dtype", c.c_int32), ("reserved", c.c_int32), ("batch", c.c_int64),
                ("rows", c.c_int64), ("cols", c.c_int64), ("batch_stride", c.c_int64), ("row_stride", c.c_int64),
                ("col_stride", c.c_int64)]


class Matmul(c.Structure):
    _fields_ = [("struct_size", c.c_size_t)] + [(name, Matrix) for name in ("a", "b", "out", "scale_a", "scale_b", "bias")]
    _fields_ += [("accumulation", c.c_int32), ("numerics", c.c_int32), ("flags", c.c_uint32), ("reserved", c.c_uint32)]


class Array(c.Structure):
    _fields_ = [("data", c.c_void_p), ("extents", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)),
                ("dtype", c.c_int32), ("rank", c.c_int32)]


class Arrays(c.Structure):
    _fields_ = [("struct_size", c.c_size_t)] + [(name, Array) for name in ("a", "b", "out", "scale_a", "scale_b", "bias")]
    _fields_ += [("form", c.c_int32), ("accumulation", c.c_int32), ("numerics", c.c_int32), ("flags", c.c_uint32)]


class Pointers(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("m", c.c_int64)]
    _fields_ += [(name, c.c_void_p) for name in ("a", "b", "out", "scale_a", "scale_b", "bias")]


class Device(c.Structure):
    _fields_ = [("kind", c.c_int32), ("index", c.c_int32)]


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("threads", c.c_int32), ("flags", c.c_uint32), ("routes", c.c_char_p),
                ("backends", c.c_void_p), ("backend_count", c.c_size_t), ("log", c.c_void_p), ("log_user", c.c_void_p)]


class Facts(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("kind", c.c_int32), ("index", c.c_int32), ("arch", c.c_int32),
                ("sm_count", c.c_int32), ("driver", c.c_int32), ("threads", c.c_int32), ("cpu_features", c.c_uint32),
                ("reserved", c.c_uint32), ("l2_bytes", c.c_int64), ("last_level_bytes", c.c_int64),
                ("bandwidth_gbs", c.c_int64), ("name", c.c_char * 64)]


class BackendInfo(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("description", c.c_char_p), ("rev", c.c_char_p),
                ("library", c.c_char_p), ("configs", c.POINTER(c.c_char_p)), ("priority", c.c_int32),
                ("is_built", c.c_int32), ("fits", c.c_int32), ("reason", c.c_int32), ("sentence", c.c_char * 256),
                ("library_file", c.c_char_p)]


class Candidate(c.Structure):
    _fields_ = [("backend", c.c_char_p), ("config", c.c_char_p), ("numerics", c.c_char_p), ("verdict", c.c_int32),
                ("reason", c.c_int32), ("sentence", c.c_char_p), ("have", c.c_int64), ("need", c.c_int64),
                ("median_us", c.c_double), ("gain_low", c.c_double), ("gain_high", c.c_double)]


_PACKAGE = pathlib.Path(__file__).resolve().parent


def _places():
    """Where the library may lie, in this order; a bare name is looked up by the system."""
    named = os.environ.get("FP8ROUTE_LIBRARY")
    if named:
        return [named]
    places = [_PACKAGE / "lib" / "libfp8route.so.0"]
    if (_PACKAGE.parent / "pyproject.toml").exists():  # a source checkout
        places.append(_PACKAGE.parent.parent / "build" / "src" / "libfp8route.so.0")
    return [str(place) for place in places if place.exists()] + ["libfp8route.so.0"]


def _load():
    failures = []
    for place in _places():
        try:
            return c.CDLL(place), place
        except OSError as error:
            failures.append(str(error))
    raise ImportError("libfp8route.so.0 cannot be loaded; build it with `make`, or name it in FP8ROUTE_LIBRARY ("
                      + "; ".join(failures) + ")")


lib, path = _load()

_P = c.POINTER
for _name, _result, _arguments in (
        ("status_name", c.c_char_p, [c.c_int]), ("last_error", c.c_char_p, []), ("version", c.c_uint32, []),
        ("context_create", c.c_int, [Device, _P(Options), _P(c.c_void_p)]), ("context_destroy", None, [c.c_void_p]),
        ("context_routes_id", None, [c.c_void_p, c.c_char * 32]), ("context_device", _P(Facts), [c.c_void_p]),
        ("context_backend_count", c.c_size_t, [c.c_void_p]),
        ("context_backend", c.c_int, [c.c_void_p, c.c_size_t, _P(BackendInfo)]),
        ("context_route_file", c.c_char_p, [c.c_void_p, c.c_size_t]),
        ("context_user_route_file", c.c_int, [c.c_void_p, c.c_char_p, c.c_size_t]),
        ("scaled_mm", c.c_int, [c.c_void_p, _P(Matmul), c.c_void_p]),
        ("plan_create", c.c_int, [c.c_void_p, _P(Matmul), c.c_char_p, _P(c.c_void_p)]),
        ("plan_run", c.c_int, [c.c_void_p, _P(Pointers), c.c_void_p, c.c_size_t, c.c_void_p]),
        ("plan_workspace", c.c_size_t, [c.c_void_p]), ("plan_backend", c.c_char_p, [c.c_void_p, c.c_int64]),
        ("plan_destroy", None, [c.c_void_p]),
        ("explain", c.c_int, [c.c_void_p, _P(Matmul), _P(c.c_void_p)]),
        ("explanation_count", c.c_size_t, [c.c_void_p]),
        ("explanation_candidate", _P(Candidate), [c.c_void_p, c.c_size_t]),
        ("explanation_source", c.c_char_p, [c.c_void_p]), ("explanation_note", c.c_char_p, [c.c_void_p]),
        ("explanation_destroy", None, [c.c_void_p]),
        ("quantize", c.c_int, [c.c_void_p, _P(Matrix), _P(Matrix), _P(Matrix), c.c_int32, c.c_void_p]),
        ("dequantize", c.c_int, [c.c_void_p, _P(Matrix), _P(Matrix), _P(Matrix), c.c_void_p]),
        ("matmul_from_arrays", c.c_int, [_P(Arrays), _P(Matmul)]),
        ("quantize_from_arrays", c.c_int, [_P(Array), _P(Array), _P(Array), c.c_int32, _P(Matrix), _P(Matrix), _P(Matrix)]),
        ("matmul_parse", c.c_int, [c.c_char_p, _P(Matmul)]),
        ("matmul_format", c.c_int, [_P(Matmul), c.c_char_p, c.c_size_t])):
    try:
        _function = getattr(lib, "fp8r_" + _name)
    except AttributeError:
        raise ImportError(f"{path} has no fp8r_{_name}: it is another library, or older than this package") from None
    _function.restype, _function.argtypes = _result, _arguments
    globals()[_name] = _function


def text(value):
    """As C takes it, which would stop at a NUL."""
    if "\0" in value:
        raise ValueError(f"{value[:64]!r} holds a NUL character: text must not")
    return value.encode()


def check(status):
    """Raises the library's own line where a call did not succeed."""
    if status != OK:
        raise Error(status_name(status).decode(), last_error().decode(errors="replace"))


def version_text():
    number = version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
