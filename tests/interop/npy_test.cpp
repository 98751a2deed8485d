#include "shale/npy.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "interop/test_support.hpp"
#include "shale/executor.hpp"
#include "shale/unfinished_file.hpp"
#include "support/bounded.hpp"
#include "support/lease_holder.hpp"

namespace shale {
namespace {

using test::code_of;
using test::pattern;
using test::scratch_directory;

TEST(Npy, IsMappedNotCopied) {
  const scratch_directory files;
  const tensor values = pattern({300, 5}, dtype::float32, 1);
  write_npy(files / "a.npy", values);
  const tensor read = read_npy(files / "a.npy");
  EXPECT_EQ(read.storage().kind(), storage_kind::file);
  EXPECT_FALSE(read.writable());
  EXPECT_EQ(read.storage().file_offset(), inspect_npy(files / "a.npy").data_offset);
  EXPECT_TRUE(equal_bits(read, values));
}

TEST(NpyLeased, IsReadWhenTheLeaseIsGivenBack) {
  const test::hang_alarm limit;
  const scratch_directory files;
  write_npy(files / "a.npy", tensor::zeros({4}, dtype::int32));
  const test::lease_holder other(files / "a.npy");
  if (!other.holds()) GTEST_SKIP() << "this file system grants no leases";
  EXPECT_EQ(read_npy(files / "a.npy").shape(), dims{4});
}

TEST(Npy, CopyOnWriteLeavesTheFileAlone) {
  const scratch_directory files;
  const tensor values = pattern({100}, dtype::int64, 2);
  write_npy(files / "a.npy", values);
  tensor read = read_npy(files / "a.npy", {.access = access::copy_on_write});
  read.set({7}, 42);
  EXPECT_EQ(read.at({7}), scalar(42));
  EXPECT_TRUE(equal_bits(read_npy(files / "a.npy"), values));
}

TEST(Npy, ReadWriteStoresReachTheFile) {
  const scratch_directory files;
  write_npy(files / "a.npy", pattern({100}, dtype::int64, 2));
  {
    tensor read = read_npy(files / "a.npy", {.access = access::read_write});
    read.set({7}, 42);
    read.storage().flush();
  }
  EXPECT_EQ(read_npy(files / "a.npy").at({7}), scalar(42));
}

TEST(Npy, ThatMustBeCopiedCannotBeWrittenInPlace) {
  const scratch_directory files;
  const npy_header header{.dtype = dtype::int16, .byte_order = std::endian::big, .shape = {2}};
  test::write_file(files / "big.npy", format_npy_header(header) + std::string("\1\2\3\4", 4));
  EXPECT_EQ(code_of([&] { read_npy(files / "big.npy", {.access = access::read_write}); }),
            errc::unsupported);
  const tensor read = read_npy(files / "big.npy");
  EXPECT_EQ(read.at({0}), scalar(0x0102));
  EXPECT_EQ(read.at({1}), scalar(0x0304));
  EXPECT_FALSE(read.writable());
}

TEST(Npy, AtAnOddOffsetIsCopied) {
  const scratch_directory files;
  const tensor values = pattern({3, 4}, dtype::float64, 3);
  write_npy(files / "a.npy", values);
  test::write_file(files / "b.bin", "xyz" + test::read_file(files / "a.npy"));
  const tensor read = read_npy(files / "b.bin", {.offset = 3});
  EXPECT_EQ(read.storage().kind(), storage_kind::heap);
  EXPECT_TRUE(equal_bits(read, values));
  EXPECT_EQ(inspect_npy(files / "b.bin", 3).shape, (dims{3, 4}));
}

TEST(Npy, WithOtherBoolsThanZeroAndOneIsCorrupt) {
  const scratch_directory files;
  const npy_header header{.dtype = dtype::boolean, .shape = {9'000'000}};
  std::string bytes = format_npy_header(header) + std::string(9'000'000, '\1');
  test::write_file(files / "good.npy", bytes);
  EXPECT_EQ(read_npy(files / "good.npy").at({-1}), scalar(true));
  bytes[bytes.size() - 2] = '\2';
  test::write_file(files / "bad.npy", bytes);
  try {
    read_npy(files / "bad.npy");
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::corrupt);
    EXPECT_NE(std::string(failure.what()).find("position 8999998"), std::string::npos)
        << failure.what();
  }
}

// The engine takes any byte but 0 for true, so such a tensor is valid; the file must be, too.
TEST(Npy, BoolsAreWrittenAsZeroAndOne) {
  const scratch_directory files;
  const tensor odd = tensor::of<std::uint8_t>({0, 2, 1, 255, 0, 128}).view_as(dtype::boolean);
  const tensor want = tensor::of<bool>({false, true, true, true, false, true});
  write_npy(files / "dense.npy", odd);
  EXPECT_TRUE(equal_bits(read_npy(files / "dense.npy"), want));
  write_npy(files / "strided.npy", odd.flip());
  EXPECT_TRUE(equal_bits(read_npy(files / "strided.npy"), want.flip()));
  EXPECT_TRUE(equal_bits(odd.view_as(dtype::uint8),
                         tensor::of<std::uint8_t>({0, 2, 1, 255, 0, 128})));  // not changed
}

TEST(Npy, TruncatedAndExtendedFilesAreCorrupt) {
  const scratch_directory files;
  for (const auto& [shape, type] :
       {std::pair(dims{2, 3}, dtype::int16), {dims{}, dtype::float64}, {dims{0}, dtype::float32}}) {
    write_npy(files / "a.npy", pattern(shape, type, 4));
    const std::string whole = test::read_file(files / "a.npy");
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      test::write_file(files / "b.npy", whole.substr(0, bytes));
      EXPECT_EQ(code_of([&] { read_npy(files / "b.npy"); }), errc::corrupt) << bytes;
    }
    test::write_file(files / "b.npy", whole + "x");
    EXPECT_EQ(code_of([&] { read_npy(files / "b.npy"); }), errc::corrupt);
    EXPECT_EQ(read_npy(files / "b.npy", {.trailing = trailing_bytes::ignore}).shape(), shape);
  }
}

TEST(Npy, SurvivesAnyFlippedBit) {
  const scratch_directory files;
  const tensor values = pattern({2, 3}, dtype::int16, 5);
  write_npy(files / "a.npy", values);
  const std::string whole = test::read_file(files / "a.npy");
  const std::size_t header_bytes = whole.size() - values.size_bytes();
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    test::write_file(files / "b.npy", changed);
    try {
      const tensor read = read_npy(files / "b.npy");
      // If it can still be read, the result has as many bytes as before, and they are those of the
      // file.
      EXPECT_EQ(read.size_bytes(), values.size_bytes()) << bit;
      if (inspect_npy(files / "b.npy").byte_order == std::endian::little) {
        EXPECT_EQ(test::row_major_bytes(read.is_contiguous() ? read : read.swapaxes(0, 1)),
                  changed.substr(header_bytes))
            << bit;
      }
    } catch (const error& failure) {
      EXPECT_TRUE(failure.code() == errc::corrupt || failure.code() == errc::unsupported)
          << failure.what();
    }
  }
}

TEST(Npy, OfAbsentOrIrregularFilesSaysSo) {
  const scratch_directory files;
  EXPECT_EQ(code_of([&] { read_npy(files / "none.npy"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { read_npy(files.path()); }), errc::invalid_argument);
  ASSERT_EQ(::mkfifo((files / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { read_npy(files / "pipe"); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { write_npy(files / "pipe", tensor()); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { write_npy(files / "no/such.npy", tensor()); }), errc::not_found);
  write_npy(files / "a.npy", tensor());
  EXPECT_EQ(code_of([&] { read_npy(files / "a.npy", {.offset = 1000}); }), errc::invalid_argument);
}

TEST(Npy, IsReplacedOnlyWhenWholeAndOnlyIfAllowed) {
  const scratch_directory files;
  const std::string path = files / "a.npy";
  const tensor before = pattern({10}, dtype::int32, 1);
  const tensor after = pattern({20}, dtype::int32, 2);
  write_npy(path, before);
  const tensor mapped = read_npy(path);
  EXPECT_EQ(code_of([&] { write_npy(path, after, {.existing = existing_file::refuse}); }),
            errc::already_exists);
  EXPECT_TRUE(equal_bits(read_npy(path), before));
  // A dtype without a NumPy code is refused before the file is touched.
  EXPECT_EQ(code_of([&] { write_npy(path, pattern({3}, dtype::bfloat16, 1)); }), errc::unsupported);
  write_npy(path, after);
  EXPECT_TRUE(equal_bits(read_npy(path), after));
  EXPECT_TRUE(equal_bits(mapped, before));  // the replaced file exists as long as its mapping
  EXPECT_EQ(files.names().size(), 1u);
}

TEST(Npy, MayBeWrittenOverItsOwnSource) {
  const scratch_directory files;
  const tensor values = pattern({200, 30}, dtype::float32, 1);
  write_npy(files / "a.npy", values);
  write_npy(files / "a.npy", read_npy(files / "a.npy").flip());
  EXPECT_TRUE(equal_bits(read_npy(files / "a.npy"), values.flip()));
}

TEST(Npy, KeepsPermissionsAndSymbolicLinks) {
  const scratch_directory files;
  write_npy(files / "a.npy", pattern({1}, dtype::int8, 1));
  ASSERT_EQ(::chmod((files / "a.npy").c_str(), 0640), 0);
  std::filesystem::create_symlink("a.npy", files / "link.npy");
  write_npy(files / "link.npy", pattern({2}, dtype::int8, 1));
  EXPECT_TRUE(std::filesystem::is_symlink(files / "link.npy"));
  EXPECT_EQ(read_npy(files / "a.npy").shape(), (dims{2}));
  struct stat status {};
  ASSERT_EQ(::stat((files / "a.npy").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

// A limit of file sizes simulates a full disk.
TEST(Npy, LeavesNothingBehindWhenTheFileCannotBeWritten) {
  const scratch_directory files;
  write_npy(files / "a.npy", pattern({10}, dtype::int8, 1));
  const std::string before = test::read_file(files / "a.npy");
  const tensor large = pattern({1 << 20}, dtype::float64, 2);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small{1 << 16, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const errc code = code_of([&] { write_npy(files / "a.npy", large); });
  const errc strided = code_of([&] { write_npy(files / "b.npy", large.sliced(0, {.step = 2})); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(code, errc::out_of_space);
  EXPECT_EQ(strided, errc::out_of_space);
  EXPECT_EQ(test::read_file(files / "a.npy"), before);
  EXPECT_EQ(files.names(), std::vector<std::string>{"a.npy"});
}

TEST(NpyWriter, HandsOutTheFileItself) {
  const scratch_directory files;
  const std::string path = files / "a.npy";
  for (const dims& shape : {dims{300, 7}, dims{}, dims{0, 4}}) {
    const tensor values = pattern(shape, dtype::float32, 6);
    {
      npy_writer writer(path, dtype::float32, shape);
      tensor elements = writer.elements();
      EXPECT_EQ(elements.shape(), shape);
      EXPECT_TRUE(elements.is_contiguous());
      for (const char byte : test::row_major_bytes(elements)) EXPECT_EQ(byte, 0);
      if (values.size() > 0) {
        EXPECT_EQ(elements.storage().kind(), storage_kind::file);
        std::memcpy(elements.data(), values.data(), values.size_bytes());
      }
      writer.finish();
      EXPECT_EQ(code_of([&] { writer.finish(); }), errc::invalid_argument);
    }
    EXPECT_TRUE(equal_bits(read_npy(path), values));
    write_npy(files / "b.npy", values);
    EXPECT_EQ(test::read_file(path), test::read_file(files / "b.npy"));
  }
}

TEST(NpyWriter, ThatWasMovedFromIsRefused) {
  const scratch_directory directory;
  npy_writer first(directory / "x.npy", dtype::float32, {3});
  npy_writer second = std::move(first);
  EXPECT_EQ(code_of([&] { first.finish(); }), errc::invalid_argument);
  EXPECT_EQ(first.elements().size(), 0);
  tensor elements = second.elements();
  elements.set({1}, 5);
  second.finish();
  EXPECT_EQ(code_of([&] { second.finish(); }), errc::invalid_argument);
  EXPECT_EQ(read_npy(directory / "x.npy").at({1}), scalar(5));
}

TEST(NpyWriter, WithoutFinishLeavesNothing) {
  const scratch_directory files;
  {
    npy_writer writer(files / "a.npy", dtype::int32, {100});
    npy_writer moved = std::move(writer);
    EXPECT_EQ(files.names().size(), 1u);
    EXPECT_FALSE(std::filesystem::exists(files / "a.npy"));
  }
  EXPECT_TRUE(files.names().empty());
  npy_writer finished(files / "a.npy", dtype::int32, {100});
  finished.finish();
  EXPECT_EQ(code_of([&] {
              npy_writer(files / "a.npy", dtype::int32, {1}, {.existing = existing_file::refuse});
            }),
            errc::already_exists);
  EXPECT_EQ(code_of([&] { npy_writer(files / "b.npy", dtype::bfloat16, {1}); }), errc::unsupported);
  EXPECT_EQ(code_of([&] {
              npy_writer(files / "b.npy", dtype::int64, {index_t{1} << 60, 2});
            }),
            errc::invalid_argument);
  EXPECT_EQ(files.names(), std::vector<std::string>{"a.npy"});
}

// The process ends as after a second Ctrl-C: no destructors run.
TEST(NpyWriter, IsRemovedBeforeASuddenEnd) {
  GTEST_FLAG_SET(death_test_style, "fast");
  const scratch_directory files;
  const auto make_and_end = [&] {
    const npy_writer writer(files / "a.npy", dtype::int32, {100});
    npy_writer finished(files / "b.npy", dtype::int32, {100});
    finished.finish();
    exit_without_unfinished_files(files.names().size() == 2 ? 7 : 8);
  };
  EXPECT_EXIT(make_and_end(), testing::ExitedWithCode(7), "");
  EXPECT_EQ(files.names(), std::vector<std::string>{"b.npy"});
}

TEST(NpyWriter, SaysThatItsFileWasRemoved) {
  const scratch_directory files;
  npy_writer writer(files / "a.npy", dtype::int32, {100});
  for (const std::string& name : files.names()) std::filesystem::remove(files / name);
  EXPECT_EQ(code_of([&] { writer.finish(); }), errc::not_found);
  EXPECT_TRUE(files.names().empty());
}

// Files that are made while others are being removed must not stay.
TEST(NpyWriter, MakesNoFileWhileTheProcessEndsSuddenly) {
  const scratch_directory files;
  for (int round = 0; round < 30; ++round) {
    const auto write_until_the_end = [&] {
      std::vector<std::jthread> writers;
      std::atomic<int> written = 0;
      for (int k = 0; k < 4; ++k)
        writers.emplace_back([&, k] {
          for (;; ++written) npy_writer(files / (std::to_string(k) + ".npy"), dtype::int32, {2});
        });
      while (written < 20) std::this_thread::yield();
      exit_without_unfinished_files(7);
    };
    EXPECT_EXIT(write_until_the_end(), testing::ExitedWithCode(7), "");
    ASSERT_EQ(files.names(), std::vector<std::string>());
  }
}

TEST(NpyWriter, RefusesATargetThatAppearedMeanwhile) {
  const scratch_directory files;
  npy_writer writer(files / "a.npy", dtype::int32, {100}, {.existing = existing_file::refuse});
  test::write_file(files / "a.npy", "somebody else's");
  EXPECT_EQ(code_of([&] { writer.finish(); }), errc::already_exists);
  EXPECT_EQ(test::read_file(files / "a.npy"), "somebody else's");
}

}  // namespace
}  // namespace shale
