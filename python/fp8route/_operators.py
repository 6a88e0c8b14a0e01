"""The operators' schemas, their fake implementations, and the Python path of the real ones.

Both sides describe their tensors in _arrays.py and let the library judge: what one refuses the other refuses, in the same
words. A fake one judges the sizes that it was traced with and keeps the symbolic ones in its result.
SPDX-License-Identifier: Apache-2.0
"""
import ctypes as c

import torch

from . import _arrays, _context, _named
from . import _library as L

_FACTORS = "Tensor? scale_a=None, Tensor? scale_b=None, Tensor? bias=None"
_MODES = "bool precise=False, bool invariant=False, bool static_weights=False"
SCHEMAS = (
    f"scaled_mm(Tensor a, Tensor b, {_FACTORS}, ScalarType? out_dtype=None, {_MODES}) -> Tensor",
    f"scaled_mm_out(Tensor a, Tensor b, {_FACTORS}, {_MODES}, *, Tensor(a!) out) -> ()",
    f"bmm(Tensor a, Tensor b, {_FACTORS}, ScalarType? out_dtype=None, {_MODES}) -> Tensor",
    f"bmm_out(Tensor a, Tensor b, {_FACTORS}, {_MODES}, *, Tensor(a!) out) -> ()",
    "linear(Tensor x, Tensor weight, Tensor? weight_scale=None, Tensor? bias=None, Tensor? x_scale=None, "
    f"ScalarType? out_dtype=None, {_MODES}) -> Tensor",
    "run_on(str backend, int form, Tensor a, Tensor b, Tensor? scale_a, Tensor? scale_b, Tensor? bias, ScalarType out_dtype, "
    "bool precise=False, bool invariant=False, bool static_weights=False) -> Tensor",
    "run_on_out(str backend, int form, Tensor a, Tensor b, Tensor? scale_a, Tensor? scale_b, Tensor? bias, "
    "bool precise=False, bool invariant=False, bool static_weights=False, *, Tensor(a!) out) -> ()",
    "quantize(Tensor x, int groups=0) -> (Tensor, Tensor)",
    "quantize_out(Tensor x, *, Tensor(a!) out, Tensor(b!) scale) -> ()",
    "quantize_given(Tensor x, Tensor scale) -> Tensor",
    "quantize_given_out(Tensor x, Tensor scale, *, Tensor(a!) out) -> ()",
)
ROW, TENSOR, COLUMN = range(3)
_HALF = (torch.bfloat16, torch.float16)


# ---- What both sides share

def _matmul(operands, out_dtype, modes, form, is_real):
    """The library's description of a product of (name, tensor) pairs: a, b, scale_a, scale_b, bias, out."""
    _arrays.check_devices(operands)
    tensors = [tensor for _, tensor in operands]
    matmul = L.Matmul()
    arrays = _arrays.arrays(form, *tensors, out_dtype, modes, is_real)
    status = L.matmul_from_arrays(c.byref(arrays), c.byref(matmul))
    if status == L.UNSUPPORTED:  # rows without a common stride: copied where there is something to copy
        copies = [tensors[0].contiguous(), tensors[1], tensors[2].contiguous() if tensors[2] is not None else None]
        arrays = _arrays.arrays(form, *copies, *tensors[3:], out_dtype, modes, is_real)
        status = L.matmul_from_arrays(c.byref(arrays), c.byref(matmul))
        tensors[:3] = copies
    L.check(status)
    return matmul, tensors  # which keep the copies alive


def _operands(form, a, b, scale_a, scale_b, bias, out):
    names = ("x", "weight", "x_scale", "weight_scale") if form == L.LINEAR else ("a", "b", "scale_a", "scale_b")
    return tuple(zip((*names, "bias", "out"), (a, b, scale_a, scale_b, bias, out)))


def _new_out(form, a, b, out_dtype):
    columns = b.shape[0] if form == L.LINEAR else b.shape[-1]
    shape = [*a.shape[:-1], columns]
    if form == L.BATCHED and not isinstance(a.shape[0], torch.SymInt) and a.shape[0] == 1:
        shape[0] = b.shape[0]
    return torch.empty(shape, dtype=out_dtype, device=a.device)


def _stream(tensor):
    return torch.cuda.current_stream(tensor.device).cuda_stream if tensor.is_cuda else None


def _new_scale(x, groups):
    if groups not in (ROW, TENSOR, COLUMN):
        raise RuntimeError(f"groups is {groups}: it must be 0 (row), 1 (tensor) or 2 (column)")
    if groups == COLUMN and x.dim() != 2:
        raise RuntimeError("groups is 2 (column): x must be a matrix")
    shape = (1,) if groups == TENSOR else (1, x.shape[1]) if groups == COLUMN else (*x.shape[:-1], 1) if x.dim() else ()
    return torch.empty(shape, dtype=torch.float32, device=x.device)


def _new_codes(x):
    return torch.empty(x.shape, dtype=torch.float8_e4m3fn, device=x.device)


def _conversion(x, out, scale, scaling, is_real):
    _arrays.check_devices((("x", x), ("out", out), ("scale", scale)))
    matrices = [L.Matrix() for _ in range(3)]

    def read(tensor):
        described = [_arrays.array(each, is_real) for each in (tensor, out, scale)]
        return L.quantize_from_arrays(*map(c.byref, described), scaling, *map(c.byref, matrices))

    status = read(x)
    if status == L.UNSUPPORTED:
        x = x.contiguous()
        status = read(x)
    L.check(status)
    return matrices, x


# ---- The real ones, where the extension is not there

def _product(form, a, b, scale_a, scale_b, bias, out_dtype, modes, out=None, backend=None):
    matmul, kept = _matmul(_operands(form, a, b, scale_a, scale_b, bias, out), out_dtype, modes, form, True)
    if out is None:
        out = _new_out(form, a, b, out_dtype)
        matmul.out.data = out.data_ptr()
    if backend is not None:
        _named.run(backend, matmul, a.device, _stream(a))
    else:
        status = L.scaled_mm(_context.context(a.device), c.byref(matmul), _stream(a))
        if status == L.UNSUPPORTED and a.dtype in _HALF:
            status = _run_in_two(matmul, kept[0])
        L.check(status)
    del kept
    return out


def _run_in_two(matmul, a):
    """Where nothing takes a bf16 or fp16 a as it is, as in a capture, in which the library has no room for its codes: torch
    has, and the codes are the same."""
    batch, rows, columns = matmul.a.batch, matmul.a.rows, matmul.a.cols
    codes = torch.empty((batch, rows, columns), dtype=torch.float8_e4m3fn, device=a.device)
    scale = torch.empty((batch, rows), dtype=torch.float32, device=a.device)
    q = L.Matrix(codes.data_ptr(), L.E4M3, 0, batch, rows, columns, rows * columns, columns, 1)
    s = L.Matrix(scale.data_ptr(), L.FP32, 0, batch, rows, 1, rows, 1, 1)
    context = _context.context(a.device)
    status = L.quantize(context, c.byref(matmul.a), c.byref(q), c.byref(s), L.COMPUTE, _stream(a))
    if status == L.OK:
        matmul.a, matmul.scale_a = q, s
        status = L.scaled_mm(context, c.byref(matmul), _stream(a))
    return status


def _convert(x, out, scale, scaling):
    matrices, kept = _conversion(x, out, scale, scaling, True)
    L.check(L.quantize(_context.context(x.device), *map(c.byref, matrices), scaling, _stream(x)))
    if scaling == L.COMPUTE and x.numel() == 0:
        scale.fill_(1)  # the library touches nothing where there is nothing
    del kept


# ---- Their fake twins

def _fake_product(form, a, b, scale_a, scale_b, bias, out_dtype, modes, out=None, backend=None):
    try:
        _matmul(_operands(form, a, b, scale_a, scale_b, bias, out), out_dtype, modes, form, False)
    except _arrays.Unknown:
        pass  # the real one will judge
    return _new_out(form, a, b, out_dtype) if out is None else out


def _fake_convert(x, out, scale, scaling):
    try:
        _conversion(x, out, scale, scaling, False)
    except _arrays.Unknown:
        pass


def _implementations(product, convert):
    """Every operator by name, of a way to multiply and a way to quantise."""

    def multiply(form):
        def function(a, b, scale_a=None, scale_b=None, bias=None, out_dtype=None, precise=False, invariant=False,
                     static_weights=False):
            return product(form, a, b, scale_a, scale_b, bias, out_dtype or torch.bfloat16,
                           (precise, invariant, static_weights))
        return function

    def multiply_out(form):
        def function(a, b, scale_a=None, scale_b=None, bias=None, precise=False, invariant=False, static_weights=False, *,
                     out):
            product(form, a, b, scale_a, scale_b, bias, None, (precise, invariant, static_weights), out)
        return function

    def linear(x, weight, weight_scale=None, bias=None, x_scale=None, out_dtype=None, precise=False, invariant=False,
               static_weights=False):
        default = x.dtype if x.dtype in _HALF else torch.bfloat16
        return product(L.LINEAR, x, weight, x_scale, weight_scale, bias, out_dtype or default,
                       (precise, invariant, static_weights))

    def run_on(backend, form, a, b, scale_a, scale_b, bias, out_dtype, precise=False, invariant=False, static_weights=False):
        return product(form, a, b, scale_a, scale_b, bias, out_dtype, (precise, invariant, static_weights), None, backend)

    def run_on_out(backend, form, a, b, scale_a, scale_b, bias, precise=False, invariant=False, static_weights=False, *, out):
        product(form, a, b, scale_a, scale_b, bias, None, (precise, invariant, static_weights), out, backend)

    def quantize(x, groups=ROW):
        out, scale = _new_codes(x), _new_scale(x, groups)
        convert(x, out, scale, L.COMPUTE)
        return out, scale

    def quantize_out(x, *, out, scale):
        convert(x, out, scale, L.COMPUTE)

    def quantize_given(x, scale):
        out = _new_codes(x)
        convert(x, out, scale, L.GIVEN)
        return out

    def quantize_given_out(x, scale, *, out):
        convert(x, out, scale, L.GIVEN)

    return {"scaled_mm": multiply(L.PLAIN), "scaled_mm_out": multiply_out(L.PLAIN), "bmm": multiply(L.BATCHED),
            "bmm_out": multiply_out(L.BATCHED), "linear": linear, "run_on": run_on, "run_on_out": run_on_out, "quantize": quantize, "quantize_out": quantize_out,
            "quantize_given": quantize_given, "quantize_given_out": quantize_given_out}


PYTHON_ONLY = ("run_on", "run_on_out")
REAL = _implementations(_product, _convert)
FAKE = _implementations(_fake_product, _fake_convert)


def define():
    """Defines the operators with their fake implementations; the library object keeps them there."""
    library = torch.library.Library("fp8route", "DEF")
    for schema in SCHEMAS:
        library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    for name, function in FAKE.items():
        torch.library.register_fake(f"fp8route::{name}", function, lib=library)
    return library
