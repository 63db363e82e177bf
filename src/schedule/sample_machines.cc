#include "schedule/sample_machines.h"

#include <fstream>
#include <iterator>
#include <memory>

#include "core/check.h"

namespace plumbline::schedule {
namespace {

ingest::Value read_yaml(const std::string& path) {
  std::ifstream file(std::string(PLUMBLINE_SOURCE_DIR) + "/" + path);
  auto source = std::make_shared<Source>();
  source->name = path;
  source->text.assign(std::istreambuf_iterator<char>(file), {});
  auto value = ingest::parse_yaml(source);
  PL_CHECK(value.ok());
  return std::move(*value);
}

ingest::Dataflow dataflow(const std::string& stationary, const std::string& gemm_x, const std::string& gemm_y,
                          const std::string& conv_x, const std::string& conv_y) {
  ingest::Dataflow made;
  made.stationary = stationary;
  made.name = stationary.substr(0, stationary.size() - 1) + "_stationary";
  ingest::ConstraintRow gemm;
  gemm.operation = "gemm";
  gemm.level = "array";
  gemm.spatial_x = gemm_x;
  gemm.spatial_y = gemm_y;
  ingest::ConstraintRow conv = gemm;
  conv.operation = "conv";
  conv.spatial_x = conv_x;
  conv.spatial_y = conv_y;
  made.constraints = {gemm, conv};
  return made;
}

}  // namespace

ingest::Accelerator catalog_accelerator(const std::string& name) {
  const ingest::Value document = read_yaml("catalog/accelerators/" + name + ".yaml");
  const ingest::Value* energy = document.find("energy");
  PL_CHECK(energy != nullptr);
  auto accelerator = ingest::read_accelerator(document, read_yaml("catalog/energy/" + energy->text + ".yaml"));
  PL_CHECK(accelerator.ok());
  return std::move(*accelerator);
}

std::map<std::string, ingest::Dataflow> sample_dataflows() {
  std::map<std::string, ingest::Dataflow> dataflows;
  for (auto& made : {dataflow("weights", "N", "K", "K", "C"), dataflow("inputs", "M", "K", "Q", "C"),
                     dataflow("outputs", "N", "M", "K", "Q")}) {
    dataflows[made.name] = made;
  }
  return dataflows;
}

ingest::CompileOptions sample_options() {
  ingest::CompileOptions options;
  options.dataflow = "weight_stationary";
  options.fuse_epilogue = true;
  options.fuse_attention = true;
  return options;
}

ingest::Policy int8_policy() {
  ingest::Policy policy;
  policy.name = "int8-exact";
  policy.inputs = "int8";
  policy.weights = "int8";
  policy.accumulate = "int32";
  policy.outputs = "int8";
  policy.exact = true;
  return policy;
}

}  // namespace plumbline::schedule
