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

unsigned permissions_of(const std::string& path) {
  return static_cast<unsigned>(std::filesystem::status(path).permissions());
}

void fill_with_numbers(transaction& change) {
  change.create("a", tensor::of<std::int32_t>({3, 1, 2}));
}

std::string unfinished_in(const std::string& folder) {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".partial") found = entry.path();
  return found;
}

// Whoever opens a file reads on after its permissions are changed.
TEST(ContainerChange, ReplacesAPrivateContainerByOneThatIsPrivateFromTheBeginning) {
  const test::scratch_directory files;
  const std::string path = files / "old.shale";
  container::create(path).close();
  for (const unsigned mode : {0600u, 0640u}) {
    std::filesystem::permissions(path, std::filesystem::perms(mode));
    unsigned meanwhile = 0;
    replace_container(path, [&](transaction& change) {
      meanwhile = permissions_of(unfinished_in(files.path()));
      fill_with_numbers(change);
    });
    EXPECT_EQ(meanwhile, 0600u);
    EXPECT_EQ(permissions_of(path), mode);
  }
}

// A user who may write to the folder, and puts a link in the place of the unfinished container.
struct exchanger {
  std::string folder;
  std::string victim;
  std::uint64_t calls_before = 0;
  bool came = false;
};
exchanger* exchanging = nullptr;

void exchange_files(const char*) {
  if (exchanging->calls_before-- != 0) return;
  test::run_before_calls(nullptr);
  exchanging->came = true;
  const std::string unfinished = unfinished_in(exchanging->folder);
  if (unfinished.empty()) return;
  std::filesystem::rename(unfinished, exchanging->folder + "/taken");
  std::filesystem::create_symlink(exchanging->victim, unfinished);
}

TEST(ContainerChange, GivesOwnerAndPermissionsToNoFileThatTakesItsPlace) {
  const test::scratch_directory files;
  const test::scratch_directory elsewhere;
  const std::string path = files / "old.shale";
  exchanger one{.folder = files.path(), .victim = elsewhere / "victim"};
  exchanging = &one;
  test::write_file(one.victim, "of another owner");
  std::filesystem::permissions(one.victim, std::filesystem::perms(0600));
  for (std::uint64_t call = 0;; ++call) {
    SCOPED_TRACE(call);
    for (const std::string& name : files.names()) std::filesystem::remove(files / name);
    container::create(path).close();
    std::filesystem::permissions(path, std::filesystem::perms(0644));
    one.calls_before = call;
    one.came = false;
    test::run_before_calls(&exchange_files);
    test::outcome_of([&] { replace_container(path, fill_with_numbers); });
    test::run_before_calls(nullptr);
    ASSERT_EQ(permissions_of(one.victim), 0600u);
    ASSERT_EQ(test::read_file(one.victim), "of another owner");
    if (!one.came) break;  // there are no more calls
  }
}

}  // namespace
}  // namespace shale::tools
