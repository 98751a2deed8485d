// Support for tests whose oracle is a Python program: a scratch directory for its input, and a
// function that runs it. If the program fails, even because NumPy is missing, the test fails with
// its whole output.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

namespace shale::test {

/// A fixture with a directory that exists as long as the test.
class PythonTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "shale_python_XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string file(const std::string& name) const { return directory_ + "/" + name; }

  /// Runs `script` (a path) on the directory; its exit status must be 0.
  void expect_success(const std::string& script) const {
    // The distribution's interpreter, which has the distribution's NumPy.
    const std::string command = "/usr/bin/python3 '" + script + "' '" + directory_ + "' 2>&1";
    FILE* const pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string output;
    std::array<char, 4096> part;
    while (const std::size_t got = fread(part.data(), 1, part.size(), pipe))
      output.append(part.data(), got);
    EXPECT_EQ(pclose(pipe), 0) << output;
  }

 private:
  std::string directory_;
};

}  // namespace shale::test
