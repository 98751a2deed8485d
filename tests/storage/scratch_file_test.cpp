#include "storage/mapped/scratch_file.hpp"

#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "support/failures.hpp"
#include "support/full_disk.hpp"
#include "support/scratch_directory.hpp"
#include "support/temporary_folder.hpp"

namespace shale {
namespace {

using detail::scratch_file;
using test::code_of;
using test::temporary_folder;

std::vector<std::byte> some_bytes(std::size_t count, int first) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(static_cast<std::size_t>(first) + i * 7);
  return bytes;
}

TEST(ScratchFile, GivesBackWhatWasWritten) {
  const test::scratch_directory folder;
  scratch_file file(1000, folder.path());
  const auto first = some_bytes(10000, 1), second = some_bytes(5000, 2);
  file.write(first, 0);
  file.write(second, 8000);
  std::vector<std::byte> got(13000);
  file.read(got, 0);
  EXPECT_EQ(std::memcmp(got.data(), first.data(), 8000), 0);
  EXPECT_EQ(std::memcmp(got.data() + 8000, second.data(), 5000), 0);
  file.check();
}

// scratch.1
TEST(ScratchFile, HasNoName) {
  const test::scratch_directory folder;
  scratch_file file(1000, folder.path());
  file.write(some_bytes(100, 0), 0);
  EXPECT_EQ(folder.names(), std::vector<std::string>{});
  const storage mapped = file.map(100);
  EXPECT_EQ(folder.names(), std::vector<std::string>{});
}

TEST(ScratchFile, IsMappedBeyondItsOwnLife) {
  const test::scratch_directory folder;
  const auto bytes = some_bytes(9000, 3);
  storage mapped;
  {
    scratch_file file(1000, folder.path());
    file.write(bytes, 0);
    mapped = file.map(9000);
  }
  ASSERT_EQ(mapped.size_bytes(), 9000u);
  EXPECT_TRUE(mapped.writable());
  EXPECT_EQ(std::memcmp(mapped.data(), bytes.data(), 9000), 0);
  mapped.data()[8999] = std::byte{1};
  mapped.flush();
  mapped.check();
}

TEST(ScratchFile, LiesWhereTheVariableSays) {
  const test::scratch_directory folder;
  {
    const temporary_folder elsewhere(folder.path().c_str());
    EXPECT_EQ(detail::scratch_folder(), folder.path());
  }
  for (const char* const nothing : {static_cast<const char*>(nullptr), ""}) {
    const temporary_folder nowhere(nothing);
    EXPECT_EQ(detail::scratch_folder(), "/var/tmp");
  }
}

TEST(ScratchFile, NeedsAFolder) {
  const test::scratch_directory folder;
  EXPECT_EQ(code_of([&] { scratch_file file(0, folder / "missing"); }), errc::not_found);
  EXPECT_NE(test::text_of([&] { scratch_file file(0, folder / "missing"); }).find("TMPDIR"),
            std::string::npos);
  test::write_file(folder / "file", "no folder");
  EXPECT_EQ(code_of([&] { scratch_file file(0, folder / "file"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { scratch_file file(0, std::string("a\0b", 3)); }), errc::invalid_argument);
}

TEST(ScratchFile, ThatDoesNotFitIsAnError) {
  const test::scratch_directory folder;
  scratch_file file(1000, folder.path());
  const test::short_files little(4096);
  EXPECT_EQ(code_of([&] { file.write(some_bytes(8192, 0), 0); }), errc::out_of_space);
}

// Sorting would fill the device before it failed.
TEST(ScratchFile, ThatSurelyDoesNotFitIsNotBegun) {
  const test::scratch_directory folder;
  struct statvfs disk {};
  ASSERT_EQ(::statvfs(folder.path().c_str(), &disk), 0);
  if (disk.f_blocks == 0) GTEST_SKIP() << "nobody counts the blocks of " << folder.path();
  const auto most = std::uint64_t{1} << 62;
  EXPECT_EQ(code_of([&] { scratch_file file(most, folder.path()); }), errc::out_of_space);
}

TEST(ScratchFile, EndsWithWhatWasWritten) {
  const test::scratch_directory folder;
  scratch_file file(1000, folder.path());
  file.write(some_bytes(10, 0), 0);
  std::vector<std::byte> more(11);
  EXPECT_EQ(code_of([&] { file.read(more, 0); }), errc::io);
}

}  // namespace
}  // namespace shale
