// Tests the loops around calls that the system interrupts, and the codes of failed calls.
#include "format/os/file_io.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "shale/error.hpp"
#include "support/bounded.hpp"
#include "support/failures.hpp"
#include "support/recording_file_system.hpp"

namespace shale::format {
namespace {

using test::code_of;

// Every transfer fails. Unless the test says otherwise, it is interrupted: some file systems make
// no progress under the signals of a timer.
class failing_file final : public open_file {
 public:
  os_result pread(bytes_span, std::uint64_t) noexcept override { return fail(); }
  os_result pwrite(bytes_view, std::uint64_t) noexcept override { return fail(); }
  os_result allocate(std::uint64_t, std::uint64_t) noexcept override { return 0; }
  os_result punch(std::uint64_t, std::uint64_t) noexcept override { return 0; }
  os_result sync_data() noexcept override { return 0; }
  os_result truncate(std::uint64_t) noexcept override { return 0; }
  os_result size() noexcept override { return 0; }
  os_result identify(file_identity&) noexcept override { return 0; }
  os_result try_lock(std::uint64_t, lock_mode) noexcept override { return 0; }
  os_result find_lock(lock_range, found_lock&) noexcept override { return 0; }
  void wait_word(std::uint64_t, std::uint32_t, std::chrono::milliseconds) noexcept override {}
  void wake_word(std::uint64_t) noexcept override {}

  int error_number = EINTR;
  int failures = 0;

 private:
  os_result fail() noexcept {
    ++failures;
    return -error_number;
  }
};

TEST(FileCalls, EndIfTheyAreInterruptedEachTime) {
  const test::hang_alarm limit;
  failing_file file;
  std::array<std::byte, 8> bytes{};
  EXPECT_EQ(code_of([&] { read_exact(file, 0, bytes, "file"); }), errc::io);
  EXPECT_GT(std::exchange(file.failures, 0), 100);
  EXPECT_EQ(code_of([&] { write_all(file, 0, bytes, "file"); }), errc::io);
  EXPECT_GT(file.failures, 100);
}

// A disk that becomes read-only has failed, and one that was read-only before denies access.
TEST(FileCalls, TellAReadOnlyDiskThatFailedFromOneThatDeniesAccess) {
  failing_file file;
  file.error_number = EROFS;
  const std::array<std::byte, 8> bytes{};
  EXPECT_EQ(code_of([&] { write_all(file, 0, bytes, "file"); }), errc::io);
  test::recording_file_system files;
  std::unique_ptr<open_file> made;
  ASSERT_EQ(files.create_unnamed("/box/a", 0600, made), 0);
  ASSERT_EQ(files.link(*made, "/box/a"), 0);
  const bound_path place(files, "/box/a");
  files.fail_call(files.calls(), test::fault::error, EROFS);
  EXPECT_EQ(code_of([&] { open_existing(place, open_access::write); }), errc::access_denied);
}

}  // namespace
}  // namespace shale::format
