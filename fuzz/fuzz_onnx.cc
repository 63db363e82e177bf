// The ONNX reader and shape inference: any bytes give a linked graph or diagnostics; a shaped graph has its shapes.
#include "core/check.h"
#include "fuzz_target.h"
#include "ingest/graph.h"

const std::string_view kSeedEndings = ".onnx";

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace plumbline;
  using namespace plumbline::ingest;
  const auto graph = read_onnx("input.onnx", std::string(bytes, bytes + size));
  if (!graph.ok()) {
    PL_CHECK(!render(graph.errors()).empty());
    return 0;
  }
  const auto shaped = infer_shapes(*graph, {{"batch", 2}, {"sequence", 8}});
  if (!shaped.ok()) {
    PL_CHECK(!render(shaped.errors()).empty());
    return 0;
  }
  PL_CHECK(shaped->shapes.size() == shaped->graph.tensors.size());
  for (const auto& shape : shaped->shapes) {
    if (!shape) continue;
    for (const auto size_of_axis : *shape) PL_CHECK(size_of_axis >= 0);
  }
  return 0;
}
