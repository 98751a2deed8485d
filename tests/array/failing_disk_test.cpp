// Tests containers on failing devices: a file system that fails on command, and a limit of file
// sizes.
#include <signal.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "array/test_support.hpp"
#include "shale/functions.hpp"
#include "support/helper_process.hpp"

namespace shale {
namespace {

#if defined(SHALE_FAULTY_FILE_SYSTEM)

class FailingDisk : public testing::Test {
 protected:
  void expect_so(const std::string& verb) {
    test::child_process helper(SHALE_FAILING_DISK_PEER,
                               {verb, SHALE_FAULTY_FILE_SYSTEM, directory.path()});
    const std::string reason = helper.read_line();
    const int status = helper.wait();
    if (status == test::status_unavailable) GTEST_SKIP() << reason;
    EXPECT_EQ(status, 0);
  }

  test::scratch_directory directory;
};

TEST_F(FailingDisk, FailedReadsAreErrorsThatNameFileAndByte) { expect_so("reads"); }

TEST_F(FailingDisk, FailedCommitsLeaveTheOldGenerationOrTheNewOne) { expect_so("writes"); }

#endif

TEST(FileSizeLimit, IsAnErrorOfTheTransactionAndNoSignal) {
  const test::scratch_directory directory;
  const std::string path = directory / "file.shale";
  container file = container::create(path);
  {
    transaction change = file.begin();
    change.create("kept", {.dtype = dtype::float32, .shape = {1000}}).write(expr(7.0));
    change.commit();
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit{1 << 20, before.rlim_max};
  for (const auto kind : {array_kind::dense, array_kind::chunked}) {
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    const std::string text = test::text_of([&] {
      transaction change = file.begin();
      change
          .create("large",
                  {.dtype = dtype::float32,
                   .shape = {1 << 20},
                   .kind = kind,
                   .codec = kind == array_kind::dense ? codec_spec{}
                                                      : codec_spec{.compression = std::nullopt}})
          .write(test::seeded({1 << 20}, 5));
      change.commit();
    });
    ::setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_NE(text.find("[out_of_space]"), std::string::npos) << text;
    EXPECT_NE(text.find(path), std::string::npos) << text;
  }
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
  EXPECT_EQ(file.latest().names(), std::vector<std::string>{"kept"});
  EXPECT_EQ(test::findings_of(file), "");
}

}  // namespace
}  // namespace shale
