// Tests the loops around calls that the system interrupts.
#include "format/os/file_io.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "shale/error.hpp"
#include "support/bounded.hpp"
#include "support/failures.hpp"

namespace shale::format {
namespace {

using test::code_of;

// Every transfer is interrupted: some file systems make no progress under the signals of a timer.
class interrupted_file final : public open_file {
 public:
  os_result pread(bytes_span, std::uint64_t) noexcept override { return interrupt(); }
  os_result pwrite(bytes_view, std::uint64_t) noexcept override { return interrupt(); }
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

  int interruptions = 0;

 private:
  os_result interrupt() noexcept {
    ++interruptions;
    return -EINTR;
  }
};

TEST(FileCalls, EndIfTheyAreInterruptedEachTime) {
  const test::hang_alarm limit;
  interrupted_file file;
  std::array<std::byte, 8> bytes{};
  EXPECT_EQ(code_of([&] { read_exact(file, 0, bytes, "file"); }), errc::io);
  EXPECT_GT(std::exchange(file.interruptions, 0), 100);
  EXPECT_EQ(code_of([&] { write_all(file, 0, bytes, "file"); }), errc::io);
  EXPECT_GT(file.interruptions, 100);
}

}  // namespace
}  // namespace shale::format
