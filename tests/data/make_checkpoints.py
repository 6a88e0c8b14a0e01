"""Writes the checkpoints in tests/data/checkpoints with the safetensors library (not needed to build or test).

    pip install safetensors && python3 tests/data/make_checkpoints.py tests/data/checkpoints

The values follow formulas that tests/model/test_weights.c repeats, so that a wrong offset, type or scale shows.
"""
import ctypes
import json
import os
import struct
import sys

import safetensors  # 0.8


def codes(rows, columns):
    """e4m3 codes without NaN: element i is 37 i + 11 mod 126, negative where i is a multiple of 3."""
    return bytes((37 * i + 11) % 126 | (0x80 if i % 3 == 0 else 0) for i in range(rows * columns))


def values(count):
    """(i mod 64 - 31) / 8: exact in every wide type."""
    return [(i % 64 - 31) / 8 for i in range(count)]


def scales(count):
    """(i + 1) / 64: exact in bf16 for i < 255."""
    return [(i + 1) / 64 for i in range(count)]


def bf16(numbers):
    return b"".join(struct.pack("<f", x)[2:] for x in numbers)


def fp16(numbers):
    return b"".join(struct.pack("<e", x) for x in numbers)


def fp32(numbers):
    return b"".join(struct.pack("<f", x) for x in numbers)


def tensor(dtype, shape, data):
    return dtype, shape, ctypes.create_string_buffer(data, len(data))


def save(tensors, path):
    """The library's lowest level, because numpy has neither bf16 nor e4m3. It borrows the buffers in tensors."""
    specs = {
        name: safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=ctypes.addressof(data), data_len=len(data))
        for name, (dtype, shape, data) in tensors.items()
    }
    safetensors.serialize_file(specs, path, {"format": "pt"})


def e4m3(rows, columns):
    return tensor("float8_e4m3fn", [rows, columns], codes(rows, columns))


def layer(number):
    at = f"model.layers.{number}."
    return {
        at + "self_attn.q_proj.weight": e4m3(48, 64),
        at + "self_attn.q_proj.weight_scale": tensor("float32", [48, 1], fp32(scales(48))),
        at + "self_attn.k_proj.weight": e4m3(16, 64),
        at + "self_attn.k_proj.weight_scale": tensor("bfloat16", [], bf16([0.375])),
        at + "self_attn.v_proj.weight": e4m3(16, 64),
        at + "self_attn.v_proj.scale_weight": tensor("float32", [1], fp32([0.1])),
        at + "self_attn.o_proj.weight": tensor("bfloat16", [64, 48], bf16(values(64 * 48))),
        at + "mlp.gate_proj.weight": e4m3(96, 64),
        at + "mlp.gate_proj.weight_scale": tensor("float16", [96], fp16(scales(96))),
        at + "mlp.up_proj.weight": tensor("float16", [96, 64], fp16(values(96 * 64))),
        at + "mlp.down_proj.weight": e4m3(64, 96),
        at + "mlp.down_proj.weight_scale_inv": tensor("float32", [1, 1], fp32([0.5])),
        at + "input_layernorm.weight": tensor("bfloat16", [64], bf16([1.0] * 64)),
    }


def main(folder):
    os.makedirs(folder, exist_ok=True)
    ends = {
        "model.embed_tokens.weight": tensor("bfloat16", [40, 64], bf16(values(40 * 64))),
        "model.norm.weight": tensor("bfloat16", [64], bf16([1.0] * 64)),
        "lm_head.weight": tensor("float32", [40, 64], fp32(values(40 * 64))),
    }
    whole = {**layer(0), **layer(1), **ends}
    save(whole, os.path.join(folder, "small.safetensors"))
    shards = {"shard-1-of-2.safetensors": layer(0), "shard-2-of-2.safetensors": {**layer(1), **ends}}
    # A scale in another shard than its weight, as splitting by size produces.
    name = "model.layers.0.self_attn.q_proj.weight_scale"
    shards["shard-2-of-2.safetensors"][name] = shards["shard-1-of-2.safetensors"].pop(name)
    for file, tensors in shards.items():
        save(tensors, os.path.join(folder, file))
    index = {
        "metadata": {"total_size": sum(len(data) for _, _, data in whole.values())},
        "weight_map": {name: file for file, tensors in sorted(shards.items()) for name in sorted(tensors)},
    }
    with open(os.path.join(folder, "small.safetensors.index.json"), "w", encoding="ascii") as out:
        out.write(json.dumps(index, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
