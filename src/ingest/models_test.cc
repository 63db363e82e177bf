// Real models: published parameter counts and closed forms are the oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/random.h"
#include "ingest/graph_counts.h"
#include "ingest/graph_testing.h"
#include "ingest/graph_text.h"

namespace plumbline::ingest {
namespace {

std::string data_folder() {
  const char* set = std::getenv("PLUMBLINE_DATA");
  return set != nullptr ? set : std::string(PLUMBLINE_SOURCE_DIR) + "/../shared/data";
}

struct Published {
  const char* file;
  std::int64_t parameters;
  std::int64_t macs;
  Shape output;
};

class PublishedModels : public testing::TestWithParam<Published> {};

TEST_P(PublishedModels, ParametersAndMultiplyAccumulatesAreThoseInTheLiterature) {
  const std::string path = data_folder() + "/models/" + GetParam().file;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const auto graph = read_onnx(GetParam().file, file_bytes(path));
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  const auto shaped = infer_shapes(*graph, {{"unk__6", 1}, {"batch", 1}, {"length", 100}});
  ASSERT_TRUE(shaped.ok()) << render(shaped.errors());
  EXPECT_EQ(parameter_elements(*shaped), GetParam().parameters);
  EXPECT_EQ(multiply_accumulates(*shaped), GetParam().macs);
  EXPECT_EQ(shaped->shape(graph->outputs[0]), GetParam().output);
  EXPECT_EQ(graph->has_weights, std::string(GetParam().file).find("light_") == std::string::npos);
  for (const auto& shape : shaped->shapes) EXPECT_TRUE(shape.has_value());
}

// Parameters: AlexNet 60,965,224 and GoogLeNet 6,998,552 (the Caffe model zoo's weights), SqueezeNet 1.1 1,235,496,
// VGG-19 143,667,240 and ResNet-50 25,557,032 (torchvision model tables), the last here with the 2·26,560 running means
// and variances of its 53 batch normalisations. MACs: VGG-19 19.63 G, ResNet-50 4.09 G, SqueezeNet 1.1 0.35 G
// (torchvision tables). Every number of the light models is also what libonnx 1.12 finds by its own shape inference.
INSTANTIATE_TEST_SUITE_P(
    All, PublishedModels,
    testing::Values(Published{"onnx_topology/light_bvlc_alexnet.onnx", 60965224, 654560384, {1, 1000}},
                    Published{"onnx_topology/light_inception_v1.onnx", 6998552, 1431556352, {1, 1000}},
                    Published{"onnx_topology/light_resnet50.onnx", 25557032 + 2 * 26560, 4089184256, {1, 1000}},
                    Published{"onnx_topology/light_squeezenet.onnx", 1235496, 349151936, {1, 1000, 1, 1}},
                    Published{"onnx_topology/light_vgg19.onnx", 143667240, 19632062464, {1, 1000}},
                    Published{"onnx_topology/light_zfnet512.onnx", 87250536, 1481727008, {1, 1000}},
                    // 8·25 + 8 + 16·8·25 + 16 + 256·10 + 10 parameters; 28²·25·8 + 14²·200·16 + 2,560 MACs
                    Published{"onnx/mnist-opset8.onnx", 5994, 786560, {1, 10}},
                    // 100·32 + 32 + 32 + 1 parameters
                    Published{"onnx/keras-mlp-example.onnx", 3265, 3232, {1, 1}},
                    Published{"onnx/byte-sb-bidi-lstm.onnx", 339202, 25600, {1, 100, 2}}),
    [](const auto& test) {
      std::string name = std::filesystem::path(test.param.file).stem().string();
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(SuperResolution, ItsImageCodecsAreNamedAsWhatIsNotModelled) {
  const std::string path = data_folder() + "/models/onnx/superres-opset18.onnx";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const auto graph = read_onnx("superres.onnx", file_bytes(path));
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(
      render(graph.errors()),
      "superres.onnx: error: operator 'DecodeImage' of domain 'com.microsoft.extensions' (node 'pre_process_0') is "
      "not modelled [unknown-operator]\n"
      "superres.onnx: error: operator 'EncodeImage' of domain 'com.microsoft.extensions' (node 'post_process_52') is "
      "not modelled [unknown-operator]\n");
}

// catalog/models/encoder-tiny.onnx: tools/export_transformer.py.
constexpr std::int64_t kLayers = 2, kHidden = 128, kFfn = 512, kVocabulary = 1000, kPositions = 512;

wire::Model encoder() {
  wire::Model model;
  EXPECT_TRUE(
      model.ParseFromString(file_bytes(std::string(PLUMBLINE_SOURCE_DIR) + "/catalog/models/encoder-tiny.onnx")));
  return model;
}

// Four projections, scores and context, two layers of the feed-forward part; the pooler sees the first token alone.
std::int64_t encoder_macs(std::int64_t batch, std::int64_t sequence) {
  const std::int64_t layer =
      4 * sequence * kHidden * kHidden + 2 * sequence * sequence * kHidden + 2 * sequence * kHidden * kFfn;
  return batch * (kLayers * layer + kHidden * kHidden);
}

void expect_encoder(const wire::Model& model, const std::string& batch, const std::string& sequence) {
  const auto graph = read_onnx("encoder.onnx", model.SerializeAsString());
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  EXPECT_FALSE(graph->has_weights);
  for (const auto& [b, s] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {1, 16}, {3, 77}, {16, 128}, {64, 512}}) {
    const auto shaped = infer_shapes(*graph, {{batch, b}, {sequence, s}});
    ASSERT_TRUE(shaped.ok()) << render(shaped.errors());
    EXPECT_EQ(multiply_accumulates(*shaped), encoder_macs(b, s)) << b << " " << s;
    EXPECT_EQ(shaped->shape(graph->outputs[0]), (Shape{b, kHidden}));
    const std::int64_t norms = (1 + 2 * kLayers) * 2 * kHidden;
    const std::int64_t layer = 4 * (kHidden * kHidden + kHidden) + 2 * kHidden * kFfn + kFfn + kHidden;
    EXPECT_EQ(parameter_elements(*shaped),
              (kVocabulary + kPositions) * kHidden + norms + kLayers * layer + kHidden * kHidden + kHidden);
    for (const auto& shape : shaped->shapes) EXPECT_TRUE(shape.has_value());
  }
}

TEST(EncoderExport, MultiplyAccumulatesAreTheClosedForm) { expect_encoder(encoder(), "batch", "sequence"); }

TEST(EncoderExport, NeitherNodeOrderNorNamesNorSymbolsMatter) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    RandomStream random(7, "permute", round);
    wire::Model model = encoder();
    auto* nodes = model.mutable_graph()->mutable_node();
    for (int i = nodes->size() - 1; i > 0; --i) {
      nodes->SwapElements(i, static_cast<int>(random.next_below(static_cast<std::uint64_t>(i) + 1)));
    }
    const std::string tag = std::to_string(round);
    const auto renamed = [&](const std::string& name) {
      return name.empty() ? name : name.substr(name.size() / 2) + tag + name;
    };
    for (auto& node : *nodes) {
      node.set_name(renamed(node.name()));
      for (auto& name : *node.mutable_input()) name = renamed(name);
      for (auto& name : *node.mutable_output()) name = renamed(name);
    }
    for (auto& tensor : *model.mutable_graph()->mutable_initializer()) tensor.set_name(renamed(tensor.name()));
    for (auto& value : *model.mutable_graph()->mutable_output()) value.set_name(renamed(value.name()));
    auto* input = model.mutable_graph()->mutable_input(0);
    input->set_name(renamed(input->name()));
    auto* shape = input->mutable_type()->mutable_tensor_type()->mutable_shape();
    shape->mutable_dim(0)->set_dim_param("n" + tag);
    shape->mutable_dim(1)->set_dim_param("m" + tag);
    expect_encoder(model, "n" + tag, "m" + tag);
  }
}

TEST(EncoderExport, ConstantsAndInitializersReadAlike) {
  // Every initializer moved into a Constant node, as Paddle exports keep their weights.
  wire::Model model = encoder();
  auto* graph = model.mutable_graph();
  for (const auto& tensor : graph->initializer()) {
    auto* node = graph->add_node();
    node->set_op_type("Constant");
    node->add_output(tensor.name());
    auto* value = node->add_attribute();
    value->set_name("value");
    value->set_type(4);
    *value->mutable_t() = tensor;
  }
  graph->clear_initializer();
  expect_encoder(model, "batch", "sequence");
}

}  // namespace
}  // namespace plumbline::ingest
