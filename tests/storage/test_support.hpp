// Functions for the tests of this floor: files with a byte pattern, and the helper programs.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/failures.hpp"
#include "support/helper_process.hpp"
#include "support/process_footprint.hpp"
#include "support/scratch_directory.hpp"

namespace shale::test {

/// Writes a file of `bytes` bytes, in which byte i is `pattern(i)`.
void write_pattern(const std::string& path, std::size_t bytes);
constexpr unsigned char pattern(std::size_t offset) {
  return static_cast<unsigned char>(offset * 131 + (offset >> 12) * 7 + 1);
}
/// All bytes of a file.
std::vector<unsigned char> file_contents(const std::string& path);
std::size_t file_size(const std::string& path);

/// The helper program of these tests, run as a separate process.
class peer : public child_process {
 public:
  explicit peer(const std::vector<std::string>& arguments)
      : child_process(SHALE_STORAGE_PEER, arguments) {}
};

/// Runs the helper until it ends.
int run_peer(const std::vector<std::string>& arguments);

/// Expects that another helper program succeeds. Skips the test if that program reports why it
/// cannot run.
inline void expect_found(const std::string& program, const std::vector<std::string>& arguments) {
  child_process helper(program, arguments);
  const std::string reason = helper.read_line();
  const int status = helper.wait();
  if (status == status_unavailable) GTEST_SKIP() << reason;
  EXPECT_EQ(status, 0);
}

}  // namespace shale::test
