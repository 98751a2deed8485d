// Runs NumPy on a test's files.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace shale::test {

/// Runs numpy_files.py. If it fails, its output becomes the test's message.
inline void run_numpy(const std::string& arguments) {
  const std::string command =
      "/usr/bin/python3 " SHALE_INTEROP_TESTS "/numpy_files.py " + arguments + " 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe))
    output.append(buffer, got);
  EXPECT_EQ(::pclose(pipe), 0) << command << "\n" << output;
}

}  // namespace shale::test
