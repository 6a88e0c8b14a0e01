"""fp8route for PyTorch: operators on CPU and CUDA tensors, and a linear layer.

Work is queued on the current stream of the tensors' device; the current device stays what it was. Strides are honoured;
only an activation whose leading dimensions are not at one stride is copied. docs/pytorch.md walks through it.
SPDX-License-Identifier: Apache-2.0
"""
try:
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("fp8route.torch needs PyTorch: pip install torch", name=error.name) from None

from . import _extension, _operators
from ._context import Candidate, Explanation
from ._context import explain as _explain

__all__ = ["Linear", "bmm", "explain", "fast_path", "linear", "quantize", "quantize_into", "quantize_linears",
           "run_on", "scaled_mm"]

_library = _operators.define()
_keys = _extension.start()
for _key in ("CPU", "CUDA"):
    for _name, _function in _operators.REAL.items():
        if _key not in _keys or _name in _operators.PYTHON_ONLY:
            _library.impl(_name, _function, _key)

_scaled_mm = torch.ops.fp8route.scaled_mm.default
_scaled_mm_out = torch.ops.fp8route.scaled_mm_out.default
_bmm = torch.ops.fp8route.bmm.default
_bmm_out = torch.ops.fp8route.bmm_out.default
_linear = torch.ops.fp8route.linear.default
_run_on = torch.ops.fp8route.run_on.default
_run_on_out = torch.ops.fp8route.run_on_out.default
_quantize = torch.ops.fp8route.quantize.default
_quantize_out = torch.ops.fp8route.quantize_out.default
_quantize_given = torch.ops.fp8route.quantize_given.default
_quantize_given_out = torch.ops.fp8route.quantize_given_out.default
_LINEAR = (torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2)
_GROUPS = {"row": _operators.ROW, "tensor": _operators.TENSOR, "column": _operators.COLUMN}


def fast_path():
    """"" where the compiled path is in use, else the reason why it is not."""
    return _extension.reason


def scaled_mm(a, b, scale_a=None, scale_b=None, bias=None, out_dtype=None, precise=False, invariant=False,
              static_weights=False, out=None):
    """(a @ b) * scale_b * scale_a + bias, rounded once to out_dtype (bf16 unless named).

    a [..., K] e4m3 or e5m2 (or bf16, fp16 without scale_a: quantised a row on the way), b [K, N] e4m3; scale_a one element
    or one a row of a, scale_b one element or [N]; bias [N]. precise: partial sums promoted to fp32. invariant: a row's bits
    do not depend on how many rows there are. static_weights: b stays as it is while products with it are queued.
    """
    if out is None:
        return _scaled_mm(a, b, scale_a, scale_b, bias, out_dtype, precise, invariant, static_weights)
    _check_out(out, out_dtype)
    place = _place(out)
    _scaled_mm_out(a, b, scale_a, scale_b, bias, precise, invariant, static_weights, out=place)
    return _settled(out, place)


def bmm(a, b, scale_a=None, scale_b=None, bias=None, out_dtype=None, precise=False, invariant=False, static_weights=False,
        out=None):
    """scaled_mm of a [B, M, K] and b [B, K, N]; scales of one element, [B|1, M|1, 1] and [B|1, 1, N|1]."""
    if out is None:
        return _bmm(a, b, scale_a, scale_b, bias, out_dtype, precise, invariant, static_weights)
    _check_out(out, out_dtype)
    place = _place(out)
    _bmm_out(a, b, scale_a, scale_b, bias, precise, invariant, static_weights, out=place)
    return _settled(out, place)


def run_on(backend, a, b, scale_a=None, scale_b=None, bias=None, out_dtype=None, precise=False, invariant=False,
           static_weights=False, out=None):
    """scaled_mm, or bmm for three dimensions each, on the backend named ("sm90" or "sm90:CONFIG") and no other."""
    form = _operators.L.BATCHED if a.dim() == 3 and b.dim() == 3 else _operators.L.PLAIN
    if out is None:
        return _run_on(backend, form, a, b, scale_a, scale_b, bias, out_dtype or torch.bfloat16, precise, invariant,
                       static_weights)
    _check_out(out, out_dtype)
    place = _place(out)
    _run_on_out(backend, form, a, b, scale_a, scale_b, bias, precise, invariant, static_weights, out=place)
    return _settled(out, place)


def _check_out(out, out_dtype=None):
    if not isinstance(out, torch.Tensor):
        raise TypeError(f"out is a {type(out).__name__}: it must be a tensor")
    if not torch.compiler.is_compiling() and out.is_neg():  # torch's own fallback takes it for a result that is returned
        raise RuntimeError("out is a negated view: its elements are not what its memory holds; give a copy")
    if out_dtype is not None and out.dtype != out_dtype:
        raise RuntimeError(f"out is {out.dtype}, out_dtype {out_dtype}: they must be equal, or out_dtype not given")


def _place(out):
    """Where an operator writes: under torch.compile, which hands no operator an `out` with gaps, a packed tensor."""
    if not torch.compiler.is_compiling() or out.is_contiguous():
        return out
    return torch.empty(out.shape, dtype=out.dtype, device=out.device)


def _settled(out, place):
    if place is not out:
        out.copy_(place)
    return out


def linear(x, weight, weight_scale=None, bias=None, x_scale=None, out_dtype=None, precise=False, invariant=False,
           static_weights=False):
    """torch.nn.functional.linear with an e4m3 weight [N, K] and weight_scale of one element, [N] or [N, 1].

    x [..., K] bf16 or fp16 is quantised a row on the way; fp32 in a step of its own; e4m3 or e5m2 comes with x_scale.
    The result is of x's type, bf16 for an fp8 x, unless out_dtype says otherwise.
    """
    dtype = x.dtype
    if dtype == torch.float32:
        if x_scale is not None:
            raise RuntimeError("x_scale is given, but x is torch.float32 and is quantised with scales of its own: leave x_scale "
                               "out, or give the codes of quantize(x, scale=x_scale)")
        x, x_scale = _quantize(x, 0)
        out_dtype = out_dtype or torch.float32
    elif dtype not in _LINEAR:  # the operator's own words leave out fp32
        raise RuntimeError(f"x.dtype is {dtype}: it must be e4m3, e5m2, bf16, fp16 or fp32")
    return _linear(x, weight, weight_scale, bias, x_scale, out_dtype, precise, invariant, static_weights)


def quantize(x, scaling="row", scale=None, out=None):
    """(codes, scale): x as e4m3, with one scale a "row", "column" or for the whole "tensor".

    scale: one that is already known; only codes are computed then.
    """
    if scaling not in _GROUPS:
        raise ValueError(f'scaling is {scaling!r}: it must be "row", "tensor" or "column"')
    if scale is not None:
        if out is None:
            return _quantize_given(x, scale), scale
        quantize_into(x, out, scale, True)
        return out, scale
    if out is None:
        return _quantize(x, _GROUPS[scaling])
    scale = _operators._new_scale(x, _GROUPS[scaling])
    quantize_into(x, out, scale)
    return out, scale


def quantize_into(x, out, scale, is_given=False):
    """quantize into tensors of the caller's: out of x's shape, scale of one element, one a row or one a column."""
    _check_out(out)
    place = _place(out)
    if is_given:
        _quantize_given_out(x, scale, out=place)
    else:
        _check_out(scale)
        _quantize_out(x, out=place, scale=scale)
    _settled(out, place)


def explain(a, b, scale_a=None, scale_b=None, bias=None, out_dtype=torch.bfloat16, precise=False, invariant=False,
            static_weights=False):
    """What scaled_mm would run for these tensors, and of every other backend why not."""
    modes = (precise, invariant, static_weights)
    form = _operators.L.BATCHED if a.dim() == 3 and b.dim() == 3 else _operators.L.PLAIN
    operands = _operators._operands(form, a, b, scale_a, scale_b, bias, None)
    matmul, _ = _operators._matmul(operands, out_dtype, modes, form, True)
    return _explain(matmul, a.device)


class Linear(torch.nn.Module):
    """A linear layer with an e4m3 weight and one scale a row of it. For inference: it has no gradients."""

    def __init__(self, weight, weight_scale, bias=None, invariant=False):
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("weight_scale", weight_scale)
        self.register_buffer("bias", bias)
        self.out_features, self.in_features = weight.shape
        self.invariant = invariant

    def _apply(self, function, *arguments):
        """Conversions such as half() are for the bias: codes and their scales move between devices, and keep their types."""
        kept = {name: getattr(self, name) for name in ("weight", "weight_scale")}
        super()._apply(function, *arguments)
        for name, before in kept.items():
            after = getattr(self, name)
            if before is not None and after.dtype != before.dtype:
                setattr(self, name, before.to(after.device))
        return self

    @classmethod
    def from_float(cls, layer, invariant=False):
        """The fp8 form of a torch.nn.Linear."""
        with torch.no_grad():
            weight, scale = quantize(layer.weight.detach())
            return cls(weight, scale, None if layer.bias is None else layer.bias.detach().clone(), invariant)

    def forward(self, x):
        return linear(x, self.weight, self.weight_scale, self.bias, invariant=self.invariant, static_weights=True)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def quantize_linears(module, select=lambda name, layer: True):
    """Replaces the torch.nn.Linear layers below a module that select(name, layer) names; how many."""
    made = {}  # a layer in two places stays one
    for name, layer in list(module.named_modules(remove_duplicate=False)):
        if type(layer) is torch.nn.Linear and name and (layer in made or select(name, layer)):
            parent, _, leaf = name.rpartition(".")
            if layer not in made:
                made[layer] = Linear.from_float(layer).train(layer.training)
            owner = module.get_submodule(parent)
            setattr(owner, leaf, made[layer])
            if isinstance(owner, torch.nn.TransformerEncoderLayer):
                owner.activation_relu_or_gelu = 0  # off with its fused path, which reads the layers' weights past them
    return len(made)
