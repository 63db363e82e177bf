#include "execute/numerics/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace plumbline::numerics {
namespace {

std::string file_with(const std::string& header, const std::string& payload, char major = 1) {
  std::string file = "\x93NUMPY";
  file += major;
  file += '\0';
  const int length_bytes = major == 1 ? 2 : 4;
  for (int i = 0; i < length_bytes; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xFFU);
  return file + header + payload;
}

Result<NpyArray> parse(const std::string& file) {
  return parse_npy(std::as_bytes(std::span(file.data(), file.size())));
}

void expect_refused(const std::string& file, const std::string& kind, const std::string& fragment) {
  const auto parsed = parse(file);
  ASSERT_FALSE(parsed.ok()) << fragment;
  EXPECT_EQ(parsed.errors().front().kind, kind);
  EXPECT_NE((parsed.errors().front().message + parsed.errors().front().help).find(fragment), std::string::npos)
      << parsed.errors().front().message;
}

const std::string kGood = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

TEST(Npy, WhatIsWrittenIsReadBack) {
  const std::vector<float> values = {1, -2.5F, 3e-40F, NAN, INFINITY, -0.0F};
  const std::string file = format_npy(make_npy(values, {2, 3}));
  EXPECT_EQ((file.size() - sizeof(float) * values.size()) % 64, 0U);
  const auto parsed = parse(file);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->shape, (std::vector<std::size_t>{2, 3}));
  const NpyFloats floats = to_float32(*parsed);
  EXPECT_EQ(floats.inexact, 0U);
  EXPECT_EQ(std::memcmp(floats.values.data(), values.data(), values.size() * sizeof(float)), 0);
}

TEST(Npy, ReadsEveryVersionAndOneAndNoDimensions) {
  const std::string payload(24, '\0');
  for (const char major : {1, 2, 3}) EXPECT_TRUE(parse(file_with(kGood, payload, major)).ok());
  const auto one = parse(file_with("{'shape': (6,), \"fortran_order\": True, 'descr': '<f4'}", payload));
  ASSERT_TRUE(one.ok()) << "order means nothing in one dimension";
  EXPECT_EQ(one->elements(), 6U);
  const auto scalar = parse(file_with("{'descr': '<f8', 'fortran_order': False, 'shape': ()}", payload.substr(0, 8)));
  ASSERT_TRUE(scalar.ok());
  EXPECT_EQ(scalar->elements(), 1U);
  const auto empty = parse(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 5)}", ""));
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->elements(), 0U);
}

TEST(Npy, ConvertsNumberTypesAndCountsWhatBinary32CannotHold) {
  const auto floats_of = [](const std::string& descr, const std::string& payload, std::size_t count) {
    const auto parsed = parse(file_with(
        "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",)}", payload));
    return to_float32(parsed.value());
  };
  EXPECT_EQ(floats_of("<f2", std::string("\x00\x3C\x00\xC0", 4), 2).values, (std::vector<float>{1, -2}));
  EXPECT_EQ(floats_of("|i1", "\xFF\x02", 2).values, (std::vector<float>{-1, 2}));
  EXPECT_EQ(floats_of("|u1", "\xFF\x02", 2).values, (std::vector<float>{255, 2}));
  EXPECT_EQ(floats_of("<i2", std::string("\x00\x80", 2), 1).values, (std::vector<float>{-32768}));
  const std::int64_t odd = (std::int64_t{1} << 60) + 1;
  EXPECT_EQ(floats_of("<i8", std::string(reinterpret_cast<const char*>(&odd), 8), 1).inexact, 1U);
  const double third[2] = {1.0 / 3, 0.5};
  const NpyFloats halves = floats_of("<f8", std::string(reinterpret_cast<const char*>(third), 16), 2);
  EXPECT_EQ(halves.inexact, 1U);
  EXPECT_EQ(halves.values[1], 0.5F);
}

TEST(Npy, RefusesWhatItDoesNotRead) {
  const std::string payload(24, '\0');
  expect_refused("PK\x03\x04 a zip file", "npy-syntax", "numpy.save");
  expect_refused("", "npy-syntax", "does not begin");
  expect_refused(file_with(kGood, payload, 9), "npy-syntax", "version 9");
  expect_refused(file_with("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}", payload), "npy-syntax",
                 "astype('<f4')");
  expect_refused(file_with("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", payload), "npy-syntax",
                 "ascontiguousarray");
  expect_refused(file_with("{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}", payload), "npy-syntax", "'<c8'");
  expect_refused(file_with("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", payload), "npy-syntax", "'|O'");
  expect_refused(file_with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", payload), "npy-syntax",
                 "structured");
  expect_refused(file_with(kGood, payload.substr(1)), "npy-syntax", "truncated");
  expect_refused(file_with(kGood, payload + "x"), "npy-syntax", "follow");
  expect_refused(file_with("{'descr': '<f4', 'shape': (2, 3)}", payload), "npy-syntax", "lacks");
  expect_refused(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}", payload), "npy-syntax",
                 "not understood");
  expect_refused(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x", payload), "npy-syntax",
                 "not understood");
  expect_refused(file_with("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", payload),
                 "npy-syntax", "not understood");
}

TEST(Npy, LimitsHeadersAndSizes) {
  std::string file = file_with("", "", 2);
  file[8] = file[9] = file[10] = file[11] = '\xFF';
  expect_refused(file, "npy-syntax", "claims 4294967295 bytes");
  expect_refused(file_with(kGood, "").substr(0, 40), "npy-syntax", "inside its header");
  expect_refused(file_with(kGood, "").substr(0, 9), "npy-syntax", "inside its header");
  expect_refused(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", ""),
                 "too-large", "4 GiB");
  expect_refused(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", ""),
                 "npy-syntax", "not understood");
}

TEST(Npy, FilesRoundTripAndMissingOnesAreNamed) {
  const std::string path = (std::filesystem::temp_directory_path() / "plumbline_npy_test.npy").string();
  ASSERT_TRUE(save_npy(path, make_npy(std::vector<float>{1, 2, 3}, {3})).ok());
  const auto loaded = load_npy(path);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(to_float32(*loaded).values, (std::vector<float>{1, 2, 3}));
  std::filesystem::remove(path);
  const auto missing = load_npy(path);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.errors().front().kind, "missing-file");
  const auto unwritable = save_npy("/no such folder/x.npy", make_npy(std::vector<float>{1}, {1}));
  ASSERT_FALSE(unwritable.ok());
  EXPECT_EQ(unwritable.errors().front().kind, "unwritable");
}

}  // namespace
}  // namespace plumbline::numerics
