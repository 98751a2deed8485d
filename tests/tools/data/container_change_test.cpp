#include "data/container_change.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "shale/tensor.hpp"
#include "support/failing_calls.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale::tools {
namespace {

// Whatever fails, the container is there whole or not at all, and the error speaks of the name that
// the user knows.
TEST(ContainerChange, MakesAWholeContainerOrNoneWhicheverCallFails) {
  const test::scratch_directory files;
  const std::string path = files / "new.shale";
  const tensor values = tensor::of<std::int32_t>({3, 1, 2});
  int failures = 0;
  int failures_once_there = 0;
  for (std::uint64_t at = 0;; ++at) {
    SCOPED_TRACE(at);
    test::fail_calls(test::failing::once, at, EIO);
    const test::outcome went = test::outcome_of([&] {
      change_container(path, [&](transaction& change) {
        change.create("a", {.dtype = dtype::int32, .shape = {3}}).write(values);
      });
    });
    test::stop_failing();
    const std::string failed = test::failed_call();
    failures += went.code.has_value();
    const std::vector<std::string> names = files.names();
    if (went.code) {
      if (failed != "getrandom") {  // this failure concerns no file
        EXPECT_NE(went.text.find(files.path()), std::string::npos) << failed << ": " << went.text;
      }
      EXPECT_EQ(went.text.find("partial"), std::string::npos) << failed << ": " << went.text;
    }
    if (!names.empty() || !went.code) {
      ASSERT_EQ(names, std::vector<std::string>{"new.shale"}) << failed << ": " << went.text;
      const tensor read = container::open(path).latest().at("a").read();
      EXPECT_EQ(read.at({0}).as<int>() * 100 + read.at({1}).as<int>() * 10 + read.at({2}).as<int>(),
                312);
      failures_once_there += went.code.has_value();
    }
    std::filesystem::remove(path);
    if (failed.empty()) break;  // all calls have failed once
  }
  EXPECT_GT(failures, 20);
  EXPECT_GE(failures_once_there, 1) << "the folder was not synced";
}

}  // namespace
}  // namespace shale::tools
