"""The operators' fast path: a small shared object on torch's stable C ABI, built with the library and without torch.

Where it is missing, switched off (FP8ROUTE_TORCH_EXTENSION=0) or does not fit this torch, the operators run through Python;
`reason` then says why.
SPDX-License-Identifier: Apache-2.0
"""
import ctypes as c
import os
import pathlib

from . import _context
from . import _library as L

reason = "not started"
_kept = []  # callbacks that the extension holds


def _file():
    package = pathlib.Path(__file__).resolve().parent
    named = os.environ.get("FP8ROUTE_TORCH_EXTENSION")
    if named:
        return named
    beside = pathlib.Path(L.path).resolve().parent
    for place in (package / "lib", beside, beside.parent / "python"):  # a wheel, an install, a build folder
        if (place / "libfp8route_torch.so").exists():
            return str(place / "libfp8route_torch.so")
    return None


@c.CFUNCTYPE(c.c_void_p, c.c_int32, c.c_int32)
def _make(kind, index):
    try:
        return _context.context((kind, index))
    except L.Error:
        return None  # the library's last error of this thread says why


def start():
    """Registers the kernels; the keys that they are there for."""
    global reason
    name = _file()
    if name is None or name == "0":
        reason = "switched off" if name else "libfp8route_torch.so is not there: the build had no C++ compiler"
        return ()
    try:
        extension = c.CDLL(name)
        begin, set_context = extension.fp8r_torch_start, extension.fp8r_torch_set_context
    except (OSError, AttributeError) as error:
        reason = str(error)
        return ()
    begin.restype, begin.argtypes = c.c_char_p, [type(_make), c.POINTER(c.c_int32)]
    set_context.restype, set_context.argtypes = None, [c.c_int32, c.c_int32, c.c_void_p]
    has_cuda = c.c_int32()
    missing = begin(_make, c.byref(has_cuda))
    if missing:
        reason = f"this torch has no {missing.decode()}"
        return ()
    _kept.append(extension)
    _context.observe(set_context)
    reason = ""
    return ("CPU", "CUDA") if has_cuda.value else ("CPU",)
