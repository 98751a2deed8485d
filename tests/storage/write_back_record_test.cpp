#include "storage/files/write_back_record.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "storage/files/file_descriptor.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale::detail {
namespace {

class WriteBackRecord : public testing::Test {
 protected:
  file_descriptor open(const std::string& name) const {
    return open_descriptor(directory / name, O_RDWR | O_CREAT, 0600);
  }

  test::scratch_directory directory;
};

TEST_F(WriteBackRecord, SaysWhatWasReported) {
  const auto record = write_back_record::of(open("a").get());
  EXPECT_FALSE(record->failed());
  record->check("a");
  record->report({.error_number = EIO, .offset = 4096, .bytes = 512});
  EXPECT_TRUE(record->failed());
  const test::outcome ended = test::outcome_of([&] { record->check("some/file"); });
  EXPECT_EQ(ended.code, errc::io);
  for (const char* part : {"some/file", "byte 4096", "512 bytes"})
    EXPECT_NE(ended.text.find(part), std::string::npos) << ended.text;
}

TEST_F(WriteBackRecord, KeepsTheFirstReport) {
  const auto record = write_back_record::of(open("a").get());
  record->report({.error_number = ENOSPC});
  record->report({.error_number = EIO, .offset = 4096, .bytes = 512});
  EXPECT_EQ(test::code_of([&] { record->check("a"); }), errc::out_of_space);
}

// record.1: a report reaches other descriptions of the file, but not other files.
TEST_F(WriteBackRecord, IsTheFilesAndNotTheDescriptions) {
  const auto one = write_back_record::of(open("a").get());
  const auto same = write_back_record::of(open("a").get());
  const auto other = write_back_record::of(open("b").get());
  const auto nameless = write_back_record::of(-1);
  one->report({.error_number = EIO});
  EXPECT_TRUE(same->failed());
  EXPECT_FALSE(other->failed());
  EXPECT_FALSE(nameless->failed());
  nameless->report({.error_number = EIO});
  EXPECT_TRUE(nameless->failed());
  EXPECT_FALSE(other->failed());
}

// record.2
TEST_F(WriteBackRecord, BeginsSoundWheneverTheFileIsOpenedAnew) {
  const auto failed = write_back_record::of(open("a").get());
  failed->report({.error_number = EIO});
  const auto later = write_back_record::of(open("a").get());
  EXPECT_FALSE(later->failed());
  EXPECT_TRUE(failed->failed());
}

TEST_F(WriteBackRecord, MayBeMadeReportedAndLetGoByManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const auto record = write_back_record::of(open("a").get());
        record->report({.error_number = EIO});
        EXPECT_TRUE(record->failed());
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(write_back_record::of(open("a").get())->failed());
}

}  // namespace
}  // namespace shale::detail
