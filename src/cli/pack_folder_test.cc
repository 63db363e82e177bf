#include "cli/pack_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace plumbline::cli {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::string> kOldPack = {
    {"manifest.json", R"({"plumbline": 1, "kind": "manifest", "files": [{"name": "a.json"}, {"name": "sub/b.json"}]})"},
    {"a.json", "old"},
    {"sub/b.json", "old"}};
const std::map<std::string, std::string> kNewPack = {
    {"manifest.json", R"({"plumbline": 1, "kind": "manifest", "files": [{"name": "c.json"}]})"}, {"c.json", "new"}};

class PackFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("pack_folder_" + std::to_string(getpid()) + "_" +
                                         testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(root_);
    out_ = (root_ / "out").string();
  }
  void TearDown() override { fs::remove_all(root_); }

  static void write(const fs::path& path, const std::string& bytes) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << bytes;
  }
  void make(const std::map<std::string, std::string>& files) const {
    auto folder = PackFolder::claim(out_);
    ASSERT_TRUE(folder.ok());
    ASSERT_TRUE(folder->commit(files).ok());
  }
  [[nodiscard]] std::string refusal() const {
    const auto folder = PackFolder::claim(out_);
    return folder.ok() ? "" : folder.errors().front().message;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(root_))
      all.push_back(entry.path().lexically_relative(root_).string());
    std::sort(all.begin(), all.end());
    return all;
  }

  fs::path root_;
  std::string out_;
};

TEST_F(PackFolderTest, an_old_pack_gives_way_to_the_new_one) {
  make(kOldPack);
  write(fs::path(out_) / "timing.json", "ours, though no manifest lists it");
  make(kNewPack);
  EXPECT_EQ(names(), (std::vector<std::string>{"out", "out/c.json", "out/manifest.json"}));
}

TEST_F(PackFolderTest, a_foreign_file_in_an_old_pack_is_named_and_nothing_is_touched) {
  make(kOldPack);
  for (const char* foreign : {"notes.txt", "sub/notes.txt", "mine/notes.txt", ".hidden"}) {
    write(fs::path(out_) / foreign, "mine");
    const auto before = names();
    EXPECT_NE(refusal().find(fs::path(foreign).has_parent_path() && foreign[0] == 'm' ? "'mine'" : foreign),
              std::string::npos)
        << refusal();
    EXPECT_EQ(names(), before);
    fs::remove(fs::path(out_) / foreign);
    fs::remove(fs::path(out_) / "mine");
  }
  EXPECT_EQ(refusal(), "");
}

TEST_F(PackFolderTest, a_file_that_comes_while_the_decision_is_made_stays) {
  make(kOldPack);
  auto folder = PackFolder::claim(out_);
  ASSERT_TRUE(folder.ok());
  write(fs::path(out_) / "notes.txt", "mine");
  const auto committed = folder->commit(kNewPack);
  ASSERT_FALSE(committed.ok());
  EXPECT_NE(committed.errors().front().message.find("notes.txt"), std::string::npos);
  EXPECT_TRUE(fs::exists(fs::path(out_) / "notes.txt"));
  EXPECT_TRUE(fs::exists(fs::path(out_) / "a.json"));
}

TEST_F(PackFolderTest, folders_beside_it_that_are_not_ours_stay) {
  write(root_ / "out.partial" / "mine.txt", "mine");
  EXPECT_NE(refusal().find("out.partial"), std::string::npos);
  fs::rename(root_ / "out.partial", root_ / "out.old");
  make(kOldPack);
  make(kNewPack);
  EXPECT_TRUE(fs::exists(root_ / "out.old" / "mine.txt"));
  EXPECT_FALSE(fs::exists(root_ / "out.old.1"));
}

TEST_F(PackFolderTest, what_an_interrupted_run_left_is_cleared) {
  write(root_ / "out.partial" / ".plumbline-partial", "");
  write(root_ / "out.partial" / "a.json", "half");
  make(kNewPack);
  EXPECT_EQ(names(), (std::vector<std::string>{"out", "out/c.json", "out/manifest.json"}));
}

TEST_F(PackFolderTest, a_folder_without_our_manifest_is_not_ours) {
  write(fs::path(out_) / "manifest.json", R"({"kind": "manifest", "files": []})");
  EXPECT_NE(refusal().find("was not written by plumbline"), std::string::npos);
  write(fs::path(out_) / "manifest.json", R"(a "plumbline" manifest that is no JSON)");
  EXPECT_NE(refusal().find("was not written by plumbline"), std::string::npos);
}

TEST_F(PackFolderTest, a_manifest_that_names_files_elsewhere_removes_none_of_them) {
  write(root_ / "precious.txt", "mine");
  write(fs::path(out_) / "manifest.json",
        R"({"plumbline": 1, "kind": "manifest", "files": [{"name": "../precious.txt"}]})");
  EXPECT_NE(refusal(), "");
  EXPECT_TRUE(fs::exists(root_ / "precious.txt"));
}

TEST_F(PackFolderTest, a_link_to_a_pack_replaces_what_it_points_to) {
  make(kOldPack);
  fs::create_directory_symlink(out_, root_ / "link");
  auto folder = PackFolder::claim((root_ / "link").string());
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(folder->commit(kNewPack).ok());
  EXPECT_TRUE(fs::is_symlink(root_ / "link"));
  EXPECT_TRUE(fs::exists(fs::path(out_) / "c.json"));
}

}  // namespace
}  // namespace plumbline::cli
