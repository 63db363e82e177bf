#!/usr/bin/python3
"""Writes catalog/models/encoder-tiny.onnx: a small BERT-like encoder as torch exports it, without its weights.

    apt-get install python3-torch python3-onnx
    tools/export_transformer.py [OUT]

The graph is what torch.onnx.export makes of a hand-written encoder, with open batch and sequence: shapes are computed
by chains of Shape, Gather, Concat and Reshape nodes. Every floating-point weight is then replaced by a ConstantOfShape
node of the same name and shape, so the file keeps the topology and says by itself that it carries no trained values.
The result is a valid ONNX file. Needed once; the file is kept in the repository.
"""
import io
import math
import sys

import numpy
import onnx
import torch
from onnx import helper, numpy_helper

LAYERS, HIDDEN, HEADS, FFN, VOCABULARY, POSITIONS = 2, 128, 4, 512, 1000, 512
OPSET = 17


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query = torch.nn.Linear(HIDDEN, HIDDEN)
        self.key = torch.nn.Linear(HIDDEN, HIDDEN)
        self.value = torch.nn.Linear(HIDDEN, HIDDEN)
        self.output = torch.nn.Linear(HIDDEN, HIDDEN)

    @staticmethod
    def split(x):
        return x.view(x.size(0), x.size(1), HEADS, HIDDEN // HEADS).permute(0, 2, 1, 3)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(HIDDEN // HEADS)
        context = torch.matmul(torch.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        return self.output(context.view(context.size(0), context.size(1), HIDDEN))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.attention_norm = torch.nn.LayerNorm(HIDDEN)
        self.widen = torch.nn.Linear(HIDDEN, FFN)
        self.narrow = torch.nn.Linear(FFN, HIDDEN)
        self.output_norm = torch.nn.LayerNorm(HIDDEN)

    def forward(self, x):
        x = self.attention_norm(x + self.attention(x))
        return self.output_norm(x + self.narrow(torch.nn.functional.gelu(self.widen(x))))


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(VOCABULARY, HIDDEN)
        self.positions = torch.nn.Embedding(POSITIONS, HIDDEN)
        self.norm = torch.nn.LayerNorm(HIDDEN)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.pooler = torch.nn.Linear(HIDDEN, HIDDEN)

    def forward(self, tokens):
        places = torch.arange(tokens.size(1), device=tokens.device).unsqueeze(0)
        x = self.norm(self.tokens(tokens) + self.positions(places))
        for layer in self.layers:
            x = layer(x)
        return torch.tanh(self.pooler(x[:, 0]))


def without_weights(model):
    """Replaces floating-point initializers and constants of rank 1 or more by ConstantOfShape nodes."""
    fills, kept = [], []
    for tensor in model.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT or not tensor.dims:
            kept.append(tensor)
            continue
        shape = tensor.name + "__shape"
        kept.append(numpy_helper.from_array(numpy.array(tensor.dims, dtype=numpy.int64), shape))
        fill = helper.make_tensor("value", onnx.TensorProto.FLOAT, [1], [0.02])
        fills.append(helper.make_node("ConstantOfShape", [shape], [tensor.name], name=tensor.name + "__fill", value=fill))
    nodes = list(model.graph.node)
    del model.graph.node[:], model.graph.initializer[:], model.graph.value_info[:]
    model.graph.node.extend(fills + nodes)
    model.graph.initializer.extend(kept)
    for node in model.graph.node:
        node.ClearField("doc_string")
    return model


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else "catalog/models/encoder-tiny.onnx"
    torch.manual_seed(1)
    model = Encoder().eval()
    for parameter in model.parameters():  # equal values would be merged into one tensor by the exporter
        torch.nn.init.normal_(parameter)
    parameters = sum(p.numel() for p in model.parameters())
    stream = io.BytesIO()
    torch.onnx.export(model, (torch.zeros(2, 16, dtype=torch.int64),), stream, opset_version=OPSET,
                      input_names=["tokens"], output_names=["pooled"],
                      dynamic_axes={"tokens": {0: "batch", 1: "sequence"}, "pooled": {0: "batch"}})
    exported = without_weights(onnx.load_from_string(stream.getvalue()))
    exported.graph.name = "encoder-tiny"
    onnx.checker.check_model(exported)
    with open(out, "wb") as file:
        file.write(exported.SerializeToString())
    print(f"{out}: {exported.ByteSize()} bytes, {len(exported.graph.node)} nodes, {parameters} parameters in torch")


if __name__ == "__main__":
    main()
