// Common behaviour of all foreign formats under adverse file systems: paths that are not regular
// files, files that may not be read, files that disappear, and full disks.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include "interop/foreign_formats.hpp"
#include "interop/test_support.hpp"
#include "shale/executor.hpp"
#include "support/full_disk.hpp"
#include "support/ordinary_user.hpp"

namespace shale {
namespace {

using test::code_of;
using test::foreign;
using test::pattern;
using test::scratch_directory;
using test::text_of;

// Two MiB that can hardly be compressed.
tensor large_noise() {
  const tensor made = tensor::empty({1 << 20}, dtype::int16);
  std::mt19937 random(1);
  for (std::int16_t& value : made.elements<std::int16_t>())
    value = static_cast<std::int16_t>(random());
  return made;
}

class ForeignFile : public testing::TestWithParam<foreign> {
 protected:
  // Checks that the message names the file, and returns the code.
  errc code_of_reading(const std::string& path) const {
    const std::string text = text_of([&] { GetParam().read(path); });
    EXPECT_TRUE(text.empty() || text.find(path) != std::string::npos) << text;
    return code_of([&] { GetParam().read(path); });
  }
  errc code_of_writing(const std::string& path, const tensor& values) const {
    const std::string text = text_of([&] { GetParam().write(path, values); });
    EXPECT_TRUE(text.empty() || text.find(path) != std::string::npos) << text;
    return code_of([&] { GetParam().write(path, values); });
  }

  scratch_directory files_;
  std::string path_ = files_ / "a.file";
};

TEST_P(ForeignFile, ThatIsNoRegularFileIsAnError) {
  ASSERT_EQ(::mkfifo((files_ / "pipe").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("loop", (files_ / "loop").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", (files_ / "dangling").c_str()), 0);
  EXPECT_EQ(code_of_reading(files_ / "pipe"), errc::invalid_argument);
  EXPECT_EQ(code_of_reading(files_.path()), errc::invalid_argument);
  EXPECT_EQ(code_of_reading("/dev/null"), errc::invalid_argument);
  EXPECT_EQ(code_of_reading("/dev/zero"), errc::invalid_argument);
  EXPECT_EQ(code_of_reading(files_ / "loop"), errc::io);
  EXPECT_EQ(code_of_reading(files_ / "dangling"), errc::not_found);
  EXPECT_EQ(code_of_reading(files_ / "none"), errc::not_found);
  const tensor values = pattern({3}, dtype::int16, 1);
  EXPECT_EQ(code_of_writing(files_ / "pipe", values), errc::invalid_argument);
  EXPECT_EQ(code_of_writing(files_.path(), values), errc::invalid_argument);
  EXPECT_EQ(code_of_writing(files_ / "none/a", values), errc::not_found);
  EXPECT_EQ(files_.names().size(), 3u);
}

TEST_P(ForeignFile, OfNoBytesHoldsNoArray) {
  test::write_file(path_, "");
  EXPECT_EQ(code_of_reading(path_), GetParam().empty_file);
}

TEST_P(ForeignFile, BehindALinkIsReadLikeAnyOther) {
  const tensor values = pattern({70}, dtype::int16, 1);
  GetParam().write(path_, values);
  ASSERT_EQ(::symlink("a.file", (files_ / "link").c_str()), 0);
  EXPECT_TRUE(equal_bits(GetParam().read(files_ / "link"), values));
}

TEST_P(ForeignFile, ThatMayNotBeReadOrWrittenIsAccessDenied) {
  const tensor values = pattern({70}, dtype::int16, 1);
  GetParam().write(path_, values);
  ASSERT_EQ(::chmod(files_.path().c_str(), 0555), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0), 0);
  const test::ordinary_user rights;
  EXPECT_EQ(code_of_reading(path_), errc::access_denied);
  EXPECT_EQ(code_of_writing(files_ / "b", values), errc::access_denied);
}

TEST_P(ForeignFile, ThatDisappearsKeepsTheElementsThatWereRead) {
  const tensor values = pattern({70}, dtype::int16, 1);
  GetParam().write(path_, values);
  const tensor read = GetParam().read(path_);
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  EXPECT_TRUE(equal_bits(read, values));
  EXPECT_EQ(code_of_reading(path_), errc::not_found);
}

TEST_P(ForeignFile, OnAFullDiskIsAsItWas) {
  const test::small_disk disk;
  if (!disk.is_mounted()) GTEST_SKIP() << "no right to mount a small file system";
  const tensor values = pattern({1000}, dtype::int16, 1);
  const tensor large = large_noise();
  const std::string path = disk.files() / "a.file";
  GetParam().write(path, values);
  EXPECT_EQ(code_of_writing(path, large), errc::out_of_space);
  EXPECT_EQ(code_of_writing(disk.files() / "b.file", large), errc::out_of_space);
  EXPECT_EQ(disk.files().names(), std::vector<std::string>{"a.file"});
  EXPECT_TRUE(equal_bits(GetParam().read(path), values));
  GetParam().write(disk.files() / "b.file", values);  // the reserved space has been given back
}

TEST_P(ForeignFile, WhoseWritingIsCancelledIsAsItWas) {
  if (GetParam().name == "mapped") return;  // here the caller stores the elements itself
  const tensor values = pattern({1000}, dtype::int16, 1);
  GetParam().write(path_, values);
  executor::shared().cancel();
  const errc code = code_of([&] { GetParam().write(path_, large_noise()); });
  const errc strided = code_of([&] { GetParam().write(path_, large_noise().flip()); });
  executor::shared().resume();
  EXPECT_EQ(code, errc::cancelled);
  EXPECT_EQ(strided, errc::cancelled);
  EXPECT_EQ(files_.names(), std::vector<std::string>{"a.file"});
  EXPECT_TRUE(equal_bits(GetParam().read(path_), values));
}

TEST_P(ForeignFile, BeyondTheLimitOnFileSizesIsAsItWas) {
  const tensor values = pattern({1000}, dtype::int16, 1);
  const tensor large = large_noise();
  GetParam().write(path_, values);
  {
    const test::short_files limit(1 << 16);
    EXPECT_EQ(code_of_writing(path_, large), errc::out_of_space);
    EXPECT_EQ(code_of_writing(files_ / "b.file", large), errc::out_of_space);
  }
  EXPECT_EQ(files_.names(), std::vector<std::string>{"a.file"});
  EXPECT_TRUE(equal_bits(GetParam().read(path_), values));
}

INSTANTIATE_TEST_SUITE_P(Formats, ForeignFile, testing::ValuesIn(test::foreign_formats()),
                         [](const auto& made) { return made.param.name; });

TEST(RawFile, CutAnywhereHasFewerElementsOrIsRefused) {
  const scratch_directory files;
  const tensor values = pattern({25}, dtype::int32, 1);
  write_raw(files / "a.raw", values);
  const std::string whole = test::read_file(files / "a.raw");
  for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) {
    test::write_file(files / "b.raw", whole.substr(0, bytes));
    const auto shaped = [&] {
      return read_raw(files / "b.raw", dtype::int32, {.shape = dims{25}});
    };
    EXPECT_EQ(code_of(shaped), bytes < whole.size() ? errc::invalid_argument : errc{}) << bytes;
    const auto open_ended = [&] { return read_raw(files / "b.raw", dtype::int32); };
    if (bytes % 4 == 0)
      EXPECT_TRUE(equal_bits(open_ended(), values.narrow(0, 0, static_cast<index_t>(bytes / 4))));
    else EXPECT_EQ(code_of(open_ended), errc::invalid_argument) << bytes;
  }
}

TEST(NpzArchive, ThatShrinksOrDisappearsAfterItWasOpenedIsAnErrorNotACrash) {
  const scratch_directory files;
  for (const auto compression : {npz_compression::stored, npz_compression::deflate}) {
    const std::vector<std::pair<std::string, tensor>> members{
        {"a", pattern({5000}, dtype::int16, 1)}};
    write_npz(files / "a.npz", members, {.compression = compression});
    const npz_file archive = npz_file::open(files / "a.npz");
    ASSERT_EQ(::truncate((files / "a.npz").c_str(), 300), 0);
    const errc cut =
        code_of([&] { archive.read("a", {.checksum = npz_checksum::always}).clone(); });
    EXPECT_TRUE(cut == errc::io || cut == errc::corrupt) << name(cut);

    write_npz(files / "b.npz", members, {.compression = compression});
    const npz_file removed = npz_file::open(files / "b.npz");
    ASSERT_EQ(::unlink((files / "b.npz").c_str()), 0);
    EXPECT_TRUE(equal_bits(removed.read("a"), members[0].second));
  }
}

}  // namespace
}  // namespace shale
