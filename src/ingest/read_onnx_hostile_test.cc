// Whatever the bytes, the reader and shape inference end in a value or a diagnostic. A failed internal check throws and
// fails these tests; a hang runs into the test's time limit. Run under the asan preset they also watch the memory.
#include <gtest/gtest.h>

#include <limits>

#include "core/random.h"
#include "ingest/graph_testing.h"

namespace plumbline::ingest {
namespace {

std::string encoder() { return file_bytes(std::string(PLUMBLINE_SOURCE_DIR) + "/catalog/models/encoder-tiny.onnx"); }

// One of each way shapes depend on values, small enough to be cut and mangled at every byte.
std::string small_model() {
  OnnxBuilder model;
  model.input("x", {-1, 4, 6, 6})
      .weight("w", {2, 4, 3, 3})
      .integers("s", {0})
      .integers("e", {2})
      .integers("t", {-1, 6})
      .output("y");
  auto& conv = model.node("Conv", {"x", "w"}, {"c"});
  set_integers(conv, "strides", {2, 1});
  set_integers(conv, "pads", {1, 1, 1, 1});
  model.node("Shape", {"c"}, {"d"});
  model.node("Slice", {"d", "s", "e"}, {"f"});
  model.node("ReduceProd", {"f"}, {"g"});
  set_integer(model.node("Concat", {"g", "t"}, {"h"}), "axis", 0);
  model.node("Reshape", {"c", "h"}, {"r"});
  set_integers(model.node("Transpose", {"r"}, {"u"}), "perm", {1, 0, 2});
  set_integer(model.node("Split", {"u"}, {"v", "q"}), "axis", 2);
  model.node("Add", {"v", "q"}, {"y"});
  return model.bytes();
}

enum class End { value, diagnostic };

End digest(const std::string& bytes) {
  const auto graph = read_onnx("hostile.onnx", bytes);
  if (!graph.ok()) {
    EXPECT_FALSE(render(graph.errors()).empty());
    return End::diagnostic;
  }
  const auto shaped = infer_shapes(*graph, {{"a", 3}, {"batch", 2}, {"sequence", 9}});
  if (!shaped.ok()) return End::diagnostic;
  for (const TensorId id : graph->outputs) EXPECT_TRUE(shaped->shapes[id.at()].has_value());
  return End::value;
}

TEST(HostileOnnx, TheUntouchedModelsAreRead) {
  EXPECT_EQ(digest(small_model()), End::value);
  EXPECT_EQ(digest(encoder()), End::value);
}

TEST(HostileOnnx, TruncatedAnywhereIsADiagnostic) {
  const std::string bytes = small_model();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    // The builder writes the operator set last; before its end the model cannot be complete.
    EXPECT_EQ(digest(bytes.substr(0, length)), End::diagnostic) << length;
  }
  const std::string large = encoder();
  for (std::size_t length = 0; length < large.size(); length += 61) digest(large.substr(0, length));
}

TEST(HostileOnnx, EverySingleByteReplacedEndsWell) {
  const std::string bytes = small_model();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int value : {0x00, 0x01, 0x7F, 0x80, 0xFF}) {
      std::string mangled = bytes;
      mangled[at] = static_cast<char>(value);
      digest(mangled);
    }
  }
}

TEST(HostileOnnx, RandomFlipsEndWell) {
  const std::string small = small_model();
  const std::string large = encoder();
  int values = 0;
  for (int i = 0; i < 6000; ++i) {
    RandomStream random(20250, "flips", static_cast<std::uint64_t>(i));
    std::string bytes = i % 4 == 0 ? large : small;
    const std::uint64_t flips = 1 + random.next_below(4);
    for (std::uint64_t k = 0; k < flips; ++k) {
      const std::uint64_t at = random.next_below(bytes.size());
      bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1U << random.next_below(8)));
    }
    values += digest(bytes) == End::value ? 1 : 0;
  }
  EXPECT_GT(values, 100) << "the flips should also reach shape inference";
}

TEST(HostileOnnx, RandomBytesAreDiagnostics) {
  for (int i = 0; i < 2000; ++i) {
    RandomStream random(20251, "bytes", static_cast<std::uint64_t>(i));
    std::string bytes(random.next_below(400), '\0');
    for (auto& c : bytes) c = static_cast<char>(random.next_below(256));
    EXPECT_EQ(digest(bytes), End::diagnostic);
  }
}

// Attributes and constants with extreme numbers: nothing overflows or is allocated by them.
TEST(HostileOnnx, ExtremeNumbersEndWell) {
  const std::int64_t extremes[] = {std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max(),
                                   -1,
                                   0,
                                   1LL << 40U,
                                   (1LL << 31U) + 1};
  wire::Model model;
  ASSERT_TRUE(model.ParseFromString(small_model()));
  for (const std::int64_t value : extremes) {
    for (int n = 0; n < model.graph().node_size(); ++n) {
      for (int a = 0; a < model.graph().node(n).attribute_size(); ++a) {
        wire::Model changed = model;
        auto* attribute = changed.mutable_graph()->mutable_node(n)->mutable_attribute(a);
        attribute->set_i(value);
        digest(changed.SerializeAsString());
        for (int k = 0; k < attribute->ints_size(); ++k) {
          attribute->set_ints(k, value);
          digest(changed.SerializeAsString());
        }
      }
    }
    for (int t = 0; t < model.graph().initializer_size(); ++t) {
      wire::Model changed = model;
      auto* tensor = changed.mutable_graph()->mutable_initializer(t);
      for (int k = 0; k < tensor->int64_data_size(); ++k) {
        tensor->set_int64_data(k, value);
        digest(changed.SerializeAsString());
      }
      tensor->set_dims(0, value);
      digest(changed.SerializeAsString());
    }
  }
}

}  // namespace
}  // namespace plumbline::ingest
