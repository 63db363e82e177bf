#!/usr/bin/python3
"""Writes the ONNX files of test/error: each a few hundred bytes with one thing wrong.

    apt-get install python3-onnx
    tools/make_error_models.py [FOLDER]

Needed once; the files are kept in the repository. FOLDER is test/error unless said otherwise; a case's folder must
exist. The good model (test/error/good/model.onnx) is a Gemm between two activations, so that each bad one differs from
it in the one place its name says.
"""
import os
import sys

from onnx import TensorProto, helper

OPSET = 17


def value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def weights(name, dims, values=None):
    count = 1
    for d in dims:
        count *= d
    return helper.make_tensor(name, TensorProto.FLOAT, dims, values or [0.5] * count)


def model(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "case", inputs, outputs, list(initializers))
    opset = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8, producer_name="plumbline-test")


def good():
    return model(
        [helper.make_node("Relu", ["x"], ["a"], name="first"),
         helper.make_node("MatMul", ["a", "w"], ["y"], name="second")],
        [value("x", ["batch", 4])], [value("y", ["batch", 3])], [weights("w", [4, 3])])


def cyclic():
    return model(
        [helper.make_node("Add", ["x", "b"], ["a"], name="first"),
         helper.make_node("Relu", ["a"], ["b"], name="second")],
        [value("x", ["batch", 4])], [value("b", ["batch", 4])])


def dangling():
    return model([helper.make_node("Relu", ["nowhere"], ["y"], name="first")],
                 [value("x", ["batch", 4])], [value("y", ["batch", 4])])


def unknown_operator():
    return model([helper.make_node("MatMull", ["x", "w"], ["y"], name="first")],
                 [value("x", ["batch", 4])], [value("y", ["batch", 3])], [weights("w", [4, 3])])


def wrong_rank():
    return model([helper.make_node("Transpose", ["x"], ["y"], name="first", perm=[0, 2, 1])],
                 [value("x", ["batch", 4])], [value("y", ["batch", 4])])


def mismatched_product():
    return model([helper.make_node("MatMul", ["x", "w"], ["y"], name="first")],
                 [value("x", ["batch", 4])], [value("y", ["batch", 3])], [weights("w", [5, 3])])


def negative_dimension():
    return model([helper.make_node("Relu", ["x"], ["y"], name="first")],
                 [value("x", ["batch", -4])], [value("y", ["batch", 4])])


def overflowing_dimensions():
    huge = 2**40
    return model([helper.make_node("Relu", ["x"], ["y"], name="first")],
                 [value("x", ["batch", huge, huge])], [value("y", ["batch", huge, huge])])


def unbound_dimension():
    return model([helper.make_node("Relu", ["x"], ["y"], name="first")],
                 [value("x", ["batch", "width"])], [value("y", ["batch", "width"])])


def shared_output():
    return model(
        [helper.make_node("Relu", ["x"], ["y"], name="first"), helper.make_node("Tanh", ["x"], ["y"], name="second")],
        [value("x", ["batch", 4])], [value("y", ["batch", 4])])


def subgraph():
    inner = helper.make_graph([helper.make_node("Relu", ["x"], ["z"])], "inner", [], [value("z", ["batch", 4])])
    return model([helper.make_node("If", ["c"], ["y"], name="first", then_branch=inner, else_branch=inner)],
                 [value("x", ["batch", 4]), helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
                 [value("y", ["batch", 4])])


def write(folder, case, data):
    path = os.path.join(folder, case)
    if not os.path.isdir(path):
        sys.exit(f"{path}: no such case")
    with open(os.path.join(path, "model.onnx"), "wb") as file:
        file.write(data)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "test/error"
    whole = good().SerializeToString()
    write(folder, "good", whole)
    write(folder, "onnx_truncated", whole[:-20])
    write(folder, "onnx_empty", b"")
    write(folder, "onnx_not_a_model", b"\x0a\x03abc")
    for build in (cyclic, dangling, unknown_operator, wrong_rank, mismatched_product, negative_dimension,
                  overflowing_dimensions, unbound_dimension, shared_output, subgraph):
        write(folder, "onnx_" + build.__name__, build().SerializeToString())


if __name__ == "__main__":
    main()
