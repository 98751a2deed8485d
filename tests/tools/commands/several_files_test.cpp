#include "commands/several_files.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shale/error.hpp"

namespace shale::tools {
namespace {

TEST(SeveralFiles, EndWithTheWorstExitCode) {
  const std::vector<int> from_the_worst{exit_corrupt, exit_found_problem, exit_failed,
                                        exit_usage,   exit_unsupported,   exit_success};
  for (std::size_t i = 0; i < from_the_worst.size(); ++i)
    for (std::size_t j = i; j < from_the_worst.size(); ++j) {
      EXPECT_EQ(worse(from_the_worst[i], from_the_worst[j]), from_the_worst[i]);
      EXPECT_EQ(worse(from_the_worst[j], from_the_worst[i]), from_the_worst[i]);
    }
}

TEST(SeveralFiles, FollowOneThatFails) {
  std::vector<std::string> seen;
  const int code = for_each_file({"a", "b", "c"}, [&](const std::string& file) -> int {
    seen.push_back(file);
    if (file == "a") throw error(errc::unsupported, "a is of a later version");
    return file == "b" ? exit_usage : exit_success;
  });
  EXPECT_EQ(code, static_cast<int>(exit_usage));
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(SeveralFiles, EndWhereTheCommandIsCancelled) {
  std::vector<std::string> seen;
  const auto read = [&](const std::string& file) -> int {
    seen.push_back(file);
    throw error(errc::cancelled, "interrupted");
  };
  EXPECT_THROW(for_each_file({"a", "b"}, read), error);
  EXPECT_EQ(seen, std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace shale::tools
