#pragma once
// A look over the bytes of an ONNX file before anything is allocated for them.
#include <string_view>

#include "core/result.h"

namespace plumbline::ingest {

/// Walks the protobuf wire format of the messages of onnx.proto without copying. Errors: onnx-syntax with the byte
/// offset where a field is cut off or malformed; too-large for more nodes, items or longer names than
/// graph_limits.h allows. Cost: proportional to the number of fields, not to the bytes of weights.
Status check_wire_limits(std::string_view bytes, const Span& span);

}  // namespace plumbline::ingest
