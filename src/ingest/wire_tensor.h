#pragma once
// Tensors of an ONNX file. Includes generated protobuf code: for read_onnx.cc alone.
#include "core/result.h"
#include "ingest/graph.h"
#include "ingest/onnx.pb.h"

namespace plumbline::ingest {

/// Name, type, shape and small contents of a tensor the file holds; `parameter` is set. `what` names it in messages.
/// A tensor with a shape but no values, or with values in another file, has has_data = false.
/// Errors: onnx-graph (values that do not match the shape, unknown type), onnx-shape (negative or overflowing shape).
Result<Tensor> read_wire_tensor(const wire::Tensor& tensor, const std::string& what, const Span& span);

}  // namespace plumbline::ingest
