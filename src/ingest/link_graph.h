#pragma once
// From names to ids: what every model reader does last. Checks that the names make a graph.
#include <string>
#include <vector>

#include "core/result.h"
#include "ingest/graph.h"

namespace plumbline::ingest {

struct NamedNode {
  Node node;                        ///< its inputs and outputs are still empty
  std::vector<std::string> inputs;  ///< "" is an omitted optional input
  std::vector<std::string> outputs;
};

struct NamedGraph {
  std::string name;
  std::string family;
  std::int64_t opset = 0;
  SourceRef source;
  std::vector<Tensor> inputs;
  std::vector<Tensor> parameters;
  std::vector<NamedNode> nodes;
  std::vector<std::string> outputs;
  std::vector<Tensor> declared;  ///< shapes the file states for tensors that nodes make; they are kept, not trusted
};

/// Resolves names, sorts the nodes topologically (keeping the written order where it can), marks tensors that depend
/// on parameters alone as parameters, and gives every node a name of its own. Errors: onnx-graph (dangling or
/// duplicate names, cycles, wrong numbers of inputs, outputs or attributes, no nodes, no outputs), unknown-operator,
/// unsupported (opset), too-large.
Result<Graph> link_graph(NamedGraph named);

}  // namespace plumbline::ingest
