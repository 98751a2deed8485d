// Runs functions for foreign files while every allocation fails in turn. They throw out_of_memory
// and nothing else, leave no half-written file, and the same call works afterwards.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shale/error.hpp"
#include "shale/npy.hpp"
#include "shale/npz.hpp"
#include "shale/ops.hpp"
#include "shale/print.hpp"
#include "shale/raw.hpp"
#include "shale/t7.hpp"
#include "shale/unfinished_file.hpp"
#include "support/failing_memory.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::enough_memory;
using test::expect_errors_only;

class FailingFileMemory : public testing::Test {
 protected:
  // After each call, failed or not, only the expected file is there.
  void expect_only(const std::string& name) {
    for (const std::string& found : directory_.names()) EXPECT_EQ(found, name);
  }

  // Syncs are not needed here.
  const test::scratch_directory directory_{"/dev/shm"};
  const std::string path_ = directory_ / "file";
  const tensor values_ = tensor::full({30, 10}, 2, dtype::float32);
  const tensor strided_ = values_.swapaxes(0, 1).narrow(0, 1, 8);
};

TEST_F(FailingFileMemory, PrintingThrowsErrors) {
  expect_errors_only("floats", [&] { to_string(values_); });
  expect_errors_only("integers", [] { to_string(tensor::zeros({2000}, dtype::int8)); });
  expect_errors_only("complex", [] { to_string(tensor::zeros({3}, dtype::complex64)); });
}

TEST_F(FailingFileMemory, NpyFilesThrowErrors) {
  expect_errors_only("write_npy", [&] { write_npy(path_, values_); });
  expect_errors_only("write_npy, strided", [&] { write_npy(path_, strided_); });
  expect_only("file");
  expect_errors_only("inspect_npy", [&] { inspect_npy(path_); });
  expect_errors_only("read_npy", [&] { read_npy(path_); });
  expect_errors_only("format_npy_header", [&] { format_npy_header({.shape = {3, 4}}); });
  const std::string text = test::read_file(path_);
  expect_errors_only("parse_npy_header",
                     [&] { parse_npy_header(std::as_bytes(std::span<const char>(text))); });
  expect_errors_only("npy_writer", [&] {
    npy_writer writer(path_, dtype::float32, {20});
    tensor(writer.elements()).elements<float>()[0] = 1;
    writer.finish();
  });
  expect_only("file");
  EXPECT_EQ(read_npy(path_).size(), 20);
}

TEST_F(FailingFileMemory, NpzArchivesThrowErrors) {
  const std::vector<std::pair<std::string, tensor>> members{{"a", values_}, {"b", strided_}};
  for (const auto compression : {npz_compression::stored, npz_compression::deflate}) {
    expect_errors_only("write_npz",
                       [&] { write_npz(path_, members, {.compression = compression}); });
    expect_errors_only("npz_writer", [&] {
      npz_writer writer(path_, {.compression = compression});
      for (const auto& [name, values] : members) writer.add(name, values);
      writer.finish();
    });
    expect_only("file");
    expect_errors_only("open", [&] { npz_file::open(path_); });
    const npz_file archive = npz_file::open(path_);
    expect_errors_only("contains", [&] { archive.contains("a name that is longer than a word"); });
    expect_errors_only("inspect", [&] { archive.inspect("a"); });
    expect_errors_only("read", [&] {
      const tensor read = archive.read("b");
      const enough_memory now;
      if (!array_equal(read, strided_)) ADD_FAILURE();
    });
  }
}

TEST_F(FailingFileMemory, T7FilesThrowErrors) {
  const std::vector<std::pair<std::string, tensor>> members{{"a", values_}, {"b", strided_}};
  expect_errors_only("write_t7, one tensor", [&] { write_t7(path_, strided_); });
  expect_errors_only("write_t7", [&] { write_t7(path_, members); });
  expect_errors_only("t7_writer", [&] {
    t7_writer writer(path_);
    for (const auto& [name, values] : members) writer.add(name, values);
    writer.finish();
  });
  expect_only("file");
  expect_errors_only("open", [&] { t7_file::open(path_); });
  const t7_file file = t7_file::open(path_);
  expect_errors_only("contains", [&] { file.contains("a name that is longer than a word"); });
  expect_errors_only("root", [&] { file.root(); });
  expect_errors_only("pairs", [&] { file.pairs(file.root()); });
  expect_errors_only("inspect", [&] { file.inspect("a"); });
  expect_errors_only("read", [&] {
    const tensor read = file.read("b");
    const enough_memory now;
    if (!array_equal(read, strided_)) ADD_FAILURE();
  });
  // The elements of an ASCII file are copied.
  test::write_file(path_, "4\n1\n3\nV 1\n18\ntorch.ShortStorage\n3\n1 2 3\n");
  expect_errors_only("open and read text", [&] { t7_file::open(path_).read(""); });
}

TEST_F(FailingFileMemory, RawFilesThrowErrors) {
  expect_errors_only("write_raw", [&] { write_raw(path_, strided_); });
  expect_errors_only("write_raw, swapped",
                     [&] { write_raw(path_, values_, {.byte_order = std::endian::big}); });
  expect_only("file");
  expect_errors_only("read_raw", [&] { read_raw(path_, dtype::float32); });
  expect_errors_only("read_raw, swapped",
                     [&] { read_raw(path_, dtype::float32, {.byte_order = std::endian::big}); });
}

TEST_F(FailingFileMemory, UnfinishedFilesThrowErrors) {
  expect_errors_only("unfinished_file", [&] {
    unfinished_file made(path_, existing_file::replace);
    made.create([&] {
      const enough_memory now;
      test::write_file(made.path(), "text");
    });
    made.publish();
  });
  expect_only("file");
}

}  // namespace
}  // namespace shale
