#include "schedule/certify.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/random.h"
#include "ingest/topology.h"
#include "lower/sample_graphs.h"
#include "schedule/sample_machines.h"
#include "schedule/search_memo.h"

namespace plumbline::schedule {
namespace {

class Folder {
 public:
  Folder() {
    static int serial = 0;
    path_ = testing::TempDir() + "mappings-" + std::to_string(::getpid()) + "-" + std::to_string(serial++);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    if (!std::filesystem::exists(path_)) return names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().string());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string path_;
};

std::string whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(MappingCache, RemembersAcrossObjects) {
  const Folder folder;
  const std::string value("two\nlines\0and a zero", 20);
  MappingCache(folder.path()).store("a key", value);
  MappingCache later(folder.path());
  EXPECT_EQ(later.find("a key"), value);
  EXPECT_EQ(later.find("another key"), std::nullopt);
  EXPECT_EQ(later.hits(), 1);
  EXPECT_EQ(later.misses(), 1);
}

TEST(MappingCache, AnEntryOfAnotherKeyUnderThisNameIsNoAnswer) {
  const Folder folder;
  MappingCache(folder.path()).store("key", "value");
  ASSERT_EQ(folder.files().size(), 1U);
  const std::string path = folder.files()[0];
  std::string text = whole(path);
  text.replace(text.find("key"), 3, "kez");
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  EXPECT_EQ(MappingCache(folder.path()).find("key"), std::nullopt);
}

TEST(MappingCache, DamagedAndTruncatedEntriesAreNoAnswers) {
  const Folder folder;
  MappingCache(folder.path()).store("key", "value");
  const std::string path = folder.files()[0];
  const std::string text = whole(path);
  for (std::size_t length = 0; length < text.size(); ++length) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text.substr(0, length);
    EXPECT_EQ(MappingCache(folder.path()).find("key"), std::nullopt) << length;
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    EXPECT_EQ(MappingCache(folder.path()).find("key"), std::nullopt) << at;
  }
}

TEST(MappingCache, ManyWritersLeaveWholeEntriesAndNothingElse) {
  const Folder folder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      MappingCache cache(folder.path());
      for (int i = 0; i < 50; ++i) {
        const std::string key = "key " + std::to_string(i % 5);
        const auto known = cache.find(key);
        if (known) {
          EXPECT_EQ(*known, "value of " + key);
        }
        cache.store(key, "value of " + key);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(folder.files().size(), 5U);
  for (const auto& path : folder.files()) EXPECT_TRUE(path.ends_with(".mapping")) << path;
}

TEST(MappingCache, AFolderThatCannotBeWrittenIsOnlyForgetful) {
  MappingCache cache("/proc/no/such/folder");
  cache.store("key", "value");
  EXPECT_EQ(cache.find("key"), "value");
}

TEST(CombineFronts, TheProductIsTheLeastOfAllCombinations) {
  for (std::uint64_t round = 0; round < 300; ++round) {
    RandomStream random(11, "fronts", round);
    std::vector<KernelFront> kernels(1 + random.next_below(4));
    for (KernelFront& kernel : kernels) {
      kernel.repeats = 1 + static_cast<std::int64_t>(random.next_below(5));
      kernel.points.resize(1 + random.next_below(4));
      kernel.energy_floor = kernel.cycles_floor = kernel.product_floor = 1e18;
      for (FrontPoint& p : kernel.points) {
        p.energy = 1 + static_cast<double>(random.next_below(50));
        p.cycles = 1 + static_cast<double>(random.next_below(50));
        kernel.energy_floor = std::min(kernel.energy_floor, p.energy);
        kernel.cycles_floor = std::min(kernel.cycles_floor, p.cycles);
        kernel.product_floor = std::min(kernel.product_floor, p.energy * p.cycles);
      }
    }
    double least = 1e300;
    std::vector<std::size_t> at(kernels.size(), 0);
    for (bool more = true; more;) {
      double energy = 0;
      double cycles = 0;
      for (std::size_t k = 0; k < kernels.size(); ++k) {
        energy += static_cast<double>(kernels[k].repeats) * kernels[k].points[at[k]].energy;
        cycles += static_cast<double>(kernels[k].repeats) * kernels[k].points[at[k]].cycles;
      }
      least = std::min(least, energy * cycles);
      more = false;
      for (std::size_t k = 0; k < kernels.size() && !more; ++k) {
        more = ++at[k] < kernels[k].points.size();
        if (!more) at[k] = 0;
      }
    }
    const FrontChoice choice = combine_fronts(kernels, {Objective::energy_delay});
    EXPECT_DOUBLE_EQ(choice.best, least) << round;
    EXPECT_LE(choice.lower_bound, least * (1 + 1e-12)) << round;
  }
}

TEST(CombineFronts, KernelsWithoutATradeCloseTheBound) {
  std::vector<KernelFront> kernels(2);
  kernels[0] = {3, {{2, 5, 0}}, 2, 5, 10, 0};
  kernels[1] = {1, {{7, 4, 0}}, 7, 4, 28, 0};
  const FrontChoice choice = combine_fronts(kernels, {Objective::energy_delay});
  EXPECT_EQ(choice.best, 13.0 * 19.0);
  EXPECT_EQ(choice.lower_bound, choice.best);
}

TEST(CombineFronts, LaterObjectivesDecideAmongEqualPoints) {
  std::vector<KernelFront> kernels(1);
  kernels[0].points = {{5, 4, 0}, {3, 4, 0}, {2, 6, 0}};
  EXPECT_EQ(combine_fronts(kernels, {Objective::latency}).chosen[0], 0U);
  EXPECT_EQ(combine_fronts(kernels, {Objective::latency, Objective::energy}).chosen[0], 1U);
}

struct Made {
  lower::KernelGraph graph;
  Schedule schedule;
};

Made scheduled(const std::string& machine, const std::string& search, const std::string& objective,
               MappingCache* cache = nullptr, std::vector<ingest::ConstraintRow> rows = {}) {
  const ingest::Accelerator accelerator = catalog_accelerator(machine);
  ingest::CompileOptions options = sample_options();
  options.search = search;
  options.objective = objective;
  options.dataflow = "auto";
  options.constraints = std::move(rows);
  lower::EncoderShape shape;
  shape.layers = 1;
  auto shaped = ingest::infer_shapes(lower::sample_encoder(shape), {{"batch", 1}, {"sequence", 128}});
  EXPECT_TRUE(shaped.ok());
  auto graph = lower::lower(*shaped, options, int8_policy(), accelerator);
  EXPECT_TRUE(graph.ok());
  auto made = schedule(*graph, accelerator, options, sample_dataflows(), cache);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : render(made.errors()));
  return {std::move(*graph), std::move(*made)};
}

TEST(Certified, IsNeverWorseThanTheSimpleTilingAndNeverBelowItsBound) {
  for (const char* machine : {"ws-128", "flex-128"}) {
    for (const char* objective : {"edp", "energy", "latency", "off_array_weight_bytes"}) {
      const Made simple = scheduled(machine, "simple", objective);
      const Made certified = scheduled(machine, "certified", objective);
      EXPECT_FALSE(simple.schedule.proof.has_value());
      ASSERT_TRUE(certified.schedule.proof.has_value());
      EXPECT_LE(certified.schedule.proof->lower_bound, certified.schedule.proof->best);
      for (std::size_t k = 0; k < simple.graph.kernels.size(); ++k) {
        if (simple.graph.kernels[k].kind != lower::KernelKind::matrix) continue;
        const KernelSchedule& made = certified.schedule.kernels[k];
        ASSERT_TRUE(made.proof.has_value());
        if (std::string(objective) != "off_array_weight_bytes" || simple.graph.kernels[k].weight_operand() == 0) {
          EXPECT_GT(made.proof->lower_bound, 0) << machine << objective << simple.graph.kernels[k].name;
        }
        EXPECT_LE(made.proof->lower_bound, made.proof->best);
        EXPECT_LE(objective_of(made.price, objective), objective_of(simple.schedule.kernels[k].price, objective));
      }
    }
  }
}

TEST(Certified, EncodersCloseTheirBoundOnEveryArray) {
  EXPECT_LE(scheduled("flex-128", "certified", "edp").schedule.proof->gap, 1e-4);
  const Made made = scheduled("ws-128", "certified", "edp");
  EXPECT_LE(made.schedule.proof->gap, 1e-9);
  EXPECT_EQ(made.schedule.proof->scope, "network");
  EXPECT_GT(made.schedule.proof->evaluated, 0);
}

TEST(Certified, NoFloorIsAboveAMappingOfAnyShapeWithPrimesAmongThem) {
  const ingest::CompileOptions options = [] {
    ingest::CompileOptions made = sample_options();
    made.search = "certified";
    made.dataflow = "auto";
    return made;
  }();
  double widest = 0;
  for (std::uint64_t round = 0; round < 36; ++round) {
    RandomStream random(17, "shapes", round);
    const auto upto = [&](std::uint64_t n) { return 1 + static_cast<std::int64_t>(random.next_below(n)); };
    lower::EncoderShape shape;
    shape.layers = 1;
    shape.heads = upto(4);
    shape.hidden = shape.heads * upto(100);
    shape.ffn = upto(700);
    shape.vocabulary = 100;
    auto shaped = ingest::infer_shapes(lower::sample_encoder(shape), {{"batch", upto(3)}, {"sequence", upto(300)}});
    ASSERT_TRUE(shaped.ok());
    ingest::Accelerator accelerator = catalog_accelerator(round % 2 == 0 ? "flex-128" : "ws-128");
    if (round % 3 == 2) {
      const auto topology = [&] {
        return ingest::topology_names()[random.next_below(ingest::topology_names().size())];
      };
      ingest::ArrayNetworks networks = *catalog_accelerator("ws-256-mesh").array().networks;
      networks.shared = random.next_below(2) == 0;
      networks.weights.topology = topology();
      networks.inputs.topology = networks.shared ? networks.weights.topology : topology();
      networks.outputs.topology = networks.shared ? networks.weights.topology : topology();
      if (networks.shared) networks.weights.link = networks.inputs.link = networks.outputs.link;
      accelerator.levels.back().networks = networks;
    }
    auto graph = lower::lower(*shaped, options, int8_policy(), accelerator);
    ASSERT_TRUE(graph.ok());
    // A floor above a mapping that was found fails a check inside.
    auto made = schedule(*graph, accelerator, options, sample_dataflows(), nullptr);
    ASSERT_TRUE(made.ok()) << render(made.errors());
    EXPECT_GE(made->proof->gap, 0);
    widest = std::max(widest, made->proof->gap);
  }
  EXPECT_GT(widest, 0) << "the shapes are too easy to test the floors";
}

TEST(Certified, ASecondRunAsksTheFolderAloneAndSchedulesTheSame) {
  const Folder folder;
  MappingCache first(folder.path());
  const Made cold = scheduled("flex-128", "certified", "edp", &first);
  EXPECT_GT(first.misses(), 0);
  MappingCache second(folder.path());
  const Made warm = scheduled("flex-128", "certified", "edp", &second);
  EXPECT_EQ(second.misses(), 0);
  ASSERT_EQ(cold.schedule.kernels.size(), warm.schedule.kernels.size());
  for (std::size_t k = 0; k < cold.schedule.kernels.size(); ++k) {
    EXPECT_EQ(cold.schedule.kernels[k].mapping, warm.schedule.kernels[k].mapping);
    EXPECT_EQ(cold.schedule.kernels[k].text, warm.schedule.kernels[k].text);
    if (!cold.schedule.kernels[k].proof) continue;
    EXPECT_EQ(cold.schedule.kernels[k].proof->best, warm.schedule.kernels[k].proof->best);
    EXPECT_EQ(cold.schedule.kernels[k].proof->lower_bound, warm.schedule.kernels[k].proof->lower_bound);
  }
}

TEST(Certified, AnswersThatDoNotCountToWhatTheyClaimAreSearchedAgain) {
  const lower::Einsum einsum = lower::gemm_einsum(64, 32, 16);
  Hierarchy hierarchy;
  hierarchy.levels = {{"far", 1, 1, {}, 64.0, 64.0, true, false}, {"near", 16, 4, 8, {}, {}, false, true}};
  hierarchy.mac_units = 16;
  hierarchy.mac_mesh_x = 4;
  const EnergyRates rates{{10, 1}, {10, 1}, 0.5};
  SearchOptions options;
  options.must_keep = {0, 1};
  options.must_bypass = {0, 6};
  MappingCache cache;
  const auto truth = search_once(einsum, hierarchy, rates, options, cache);
  ASSERT_TRUE(truth.ok()) << render(truth.errors());
  MappingCache lying;
  const std::string key = search_key(einsum, hierarchy, rates, options);
  std::string answer = *cache.find(key);
  answer.replace(4, answer.find(' ', 4) - 4, "0x1p+3");  // a best of 8
  lying.store(key, answer);
  const auto again = search_once(einsum, hierarchy, rates, options, lying);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->certificate.best, truth->certificate.best);
  lying.store(key, "yes nonsense");
  EXPECT_EQ(search_once(einsum, hierarchy, rates, options, lying)->mapping, truth->mapping);
}

TEST(Certified, OrdersOfTheUserAreSearchedWithProof) {
  ingest::ConstraintRow row;
  row.level = "sram";
  row.order = {"K", "N"};
  row.text = "{level: sram, order: [K, N]}";
  const Made made = scheduled("ws-128", "certified", "energy", nullptr, {row});
  bool bound = false;
  for (std::size_t k = 0; k < made.graph.kernels.size(); ++k) {
    const lower::Kernel& kernel = made.graph.kernels[k];
    if (kernel.kind != lower::KernelKind::matrix) continue;
    int seen = -1;  // K outside of N at the named level
    for (const Loop& loop : made.schedule.kernels[k].mapping.levels[1].loops) {
      if (loop.kind != LoopKind::temporal) continue;
      const std::string& dim = kernel.einsum.dim_names[static_cast<std::size_t>(loop.dim)];
      if (dim == "N") seen = 1;
      if (dim == "K") {
        EXPECT_NE(seen, 1) << kernel.name << ": " << made.schedule.kernels[k].text;
      }
      bound = bound || (dim == "N" && loop.bound > 1);
    }
    EXPECT_GT(made.schedule.kernels[k].proof->evaluated, 0) << kernel.name;
    EXPECT_LE(made.schedule.kernels[k].proof->gap, 0.05) << kernel.name;
  }
  EXPECT_TRUE(bound) << "no kernel loops over N there";
}

TEST(Certified, RowsOfTheUserBindTheSearch) {
  ingest::ConstraintRow row;
  row.level = "accumulator";
  row.dim = "M";
  row.factor_max = 32;
  row.text = "{level: accumulator, dim: M}";
  const Made made = scheduled("ws-128", "certified", "edp", nullptr, {row});
  for (std::size_t k = 0; k < made.graph.kernels.size(); ++k) {
    const lower::Kernel& kernel = made.graph.kernels[k];
    if (kernel.kind != lower::KernelKind::matrix) continue;
    for (const Loop& loop : made.schedule.kernels[k].mapping.levels[2].loops) {
      if (loop.kind != LoopKind::temporal || loop.dim != kernel.einsum.dim("M")) continue;
      EXPECT_LE(loop.bound, 32);
    }
  }
}

}  // namespace
}  // namespace plumbline::schedule
