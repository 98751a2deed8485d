// Files that killed writers left: doctor knows them by their names and removes only those that no
// process can be writing.
#include "doctor/facts/leftovers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <iterator>

#include "shale/mapped_file.hpp"
#include "shale/npy.hpp"
#include "shale/unfinished_file.hpp"
#include "support/ordinary_user.hpp"
#include "support/scratch_directory.hpp"

namespace shale::tools {
namespace {

TEST(LeftoverName, IsOneOfThoseThatWritersUse) {
  struct row {
    const char* file;
    std::string target;
    bool is_container;
    bool is_ours;
  };
  const std::string cut = "." + std::string(100, 'l') + ".0123456789abcdef.partial";
  for (const row& entry : {
           row{".dem.npy.0123456789abcdef.partial", "dem.npy", false, true},
           row{".dem.bin.0123456789012345.partial", "dem.bin", false, true},
           row{".dem.png.0123456789abcdef.partial", "dem.png", false, true},
           row{".dem.shale.0123456789abcdef.partial", "dem.shale", false, true},
           row{".movie.0123456789abcdef.partial", "movie", false, false},
           row{".dem.npy.old.0123456789abcdef.partial", "dem.npy.old", false, false},
           row{cut.c_str(), std::string(100, 'l'), false, true},
           row{"survey.shale.0123456789abcdef.tmp", "survey.shale", true, true},
       }) {
    const auto found = parse_leftover(entry.file);
    ASSERT_TRUE(found) << entry.file;
    EXPECT_EQ(found->target, entry.target);
    EXPECT_EQ(found->is_container, entry.is_container) << entry.file;
    EXPECT_EQ(found->is_ours, entry.is_ours) << entry.file;
  }
  for (const char* file : {"",
                           ".",
                           "..",
                           "dem.raw",
                           "report.new-2024-11",
                           "dem.npy.new-123-0",
                           ".movie.2024.partial",
                           ".dem.npy.4711.partial",
                           ".partial",
                           ".0123456789abcdef.partial",
                           "..0123456789abcdef.partial",
                           ".x.partial",
                           ".x.7b.partial",
                           "x.0123456789abcdef.partial",
                           ".x.0123456789abcdef0.partial",
                           ".x.0123456789abcdef.partial.bak",
                           ".tmp",
                           "x.tmp",
                           "x.7.tmp",
                           "x.0123456789ABCDEF.tmp",
                           "x.0123456789abcde.tmp",
                           ".0123456789abcdef.tmp"})
    EXPECT_FALSE(parse_leftover(file)) << file;
}

class Leftovers : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text = "half of it") {
    std::ofstream(directory / name) << text;
    return directory / name;
  }
  std::string of_a_killed_writer() { return put(".x.npy.00000000deadbeef.partial"); }

  leftover only() {
    const std::vector<leftover> found = find_leftovers(directory.path());
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? leftover() : found.front();
  }

  test::scratch_directory directory;
};

TEST_F(Leftovers, OfKilledWritersAreAbandonedAndRemoved) {
  const std::string path = of_a_killed_writer();
  put("x.npy");
  const leftover found = only();
  EXPECT_EQ(found.state, leftover_state::abandoned) << found.why;
  EXPECT_EQ(found.path, path);
  EXPECT_GT(found.bytes, 0u);
  ASSERT_EQ(remove_leftovers({found}).size(), 1u);
  EXPECT_EQ(directory.names(), std::vector<std::string>{"x.npy"});
}

// Names of dates, versions and parts, as users give them.
TEST_F(Leftovers, AreNotFilesThatOnlyResembleThem) {
  for (const char* const name : {"report.new-2024-11", ".movie.2024.partial", "x.npy.new-1-0"})
    put(name);
  EXPECT_TRUE(find_leftovers(directory.path()).empty());
}

TEST_F(Leftovers, ThatAnotherProgramMayHaveMadeStayUnlessTheTargetIsNamed) {
  const std::string path = put(".movie.0123456789abcdef.partial");
  EXPECT_EQ(only().state, leftover_state::unclear);
  EXPECT_TRUE(remove_leftovers(find_leftovers(directory.path())).empty());
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
  EXPECT_EQ(remove_leftovers(find_leftovers(directory.path(), "movie")).size(), 1u);
  EXPECT_TRUE(directory.names().empty());
}

TEST_F(Leftovers, ThatAnyProcessHasOpenAreLeftAlone) {
  for (const int how : {O_RDONLY, O_RDWR}) {
    const std::string path = of_a_killed_writer();
    const leftover before = only();
    const int held = ::open(path.c_str(), how);
    ASSERT_GE(held, 0);
    EXPECT_EQ(only().state, leftover_state::written);
    EXPECT_TRUE(remove_leftovers({before}).empty());  // it examines the file again
    EXPECT_EQ(::access(path.c_str(), F_OK), 0);
    ::close(held);
    EXPECT_EQ(remove_leftovers({before}).size(), 1u);
  }
}

TEST_F(Leftovers, ThatAreMappedAreLeftAlone) {
  const std::string path = of_a_killed_writer();
  const storage mapped = map_file(path, {.access = access::read_write});
  if (mapped.kind() != storage_kind::file) return;  // the file has been read and closed
  EXPECT_EQ(only().state, leftover_state::written);
}

TEST_F(Leftovers, OfOtherProgramsAreNotOurs) {
  put("x.0123456789abcdef.tmp", "{\"json\": true}");
  put("y.0123456789abcdef.tmp", "");
  ASSERT_EQ(::symlink("/etc/passwd", (directory / ".z.npy.0123456789abcdef.partial").c_str()), 0);
  ASSERT_EQ(::mkdir((directory / ".d.npy.0123456789abcdef.partial").c_str(), 0700), 0);
  ASSERT_EQ(::mkfifo((directory / ".p.npy.0123456789abcdef.partial").c_str(), 0600), 0);
  EXPECT_TRUE(find_leftovers(directory.path()).empty());
  put("c.0123456789abcdef.tmp", "\x89SHALE\r\n and more");
  EXPECT_EQ(only().name.target, "c");
}

TEST_F(Leftovers, CanBeThoseOfOneTarget) {
  const std::string longest(240, 'l');
  put(".a.0123456789abcdef.partial");
  put(".ab.0123456789abcdef.partial");
  put(".ab.fedcba9876543210.partial");
  put(fmt::format(".{}.0123456789abcdef.partial", longest.substr(0, 100)));
  EXPECT_EQ(find_leftovers(directory.path()).size(), 4u);
  EXPECT_EQ(find_leftovers(directory.path(), "a").size(), 1u);
  EXPECT_EQ(find_leftovers(directory.path(), "ab").size(), 2u);
  EXPECT_EQ(find_leftovers(directory.path(), "abc").size(), 0u);
  EXPECT_EQ(find_leftovers(directory.path(), longest).size(), 1u);
}

TEST_F(Leftovers, OfOthersAreLeftToThem) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ::chmod(directory.path().c_str(), 0777);
  const std::string path = of_a_killed_writer();
  ::chmod(path.c_str(), 0644);
  const test::ordinary_user nobody;
  EXPECT_EQ(only().state, leftover_state::unclear);
  ::chmod(path.c_str(), 0);
  EXPECT_EQ(only().state, leftover_state::unclear);
  EXPECT_TRUE(remove_leftovers(find_leftovers(directory.path())).empty());
}

// doctor recognises the files that writers of the library leave when they are killed.
class LeftoversOfKilled : public Leftovers {
 protected:
  // Ends a child process inside `write`, which does not return in the child.
  template <class Write>
  leftover after_killing(Write write) {
    const pid_t child = ::fork();
    if (child == 0) {
      write();
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    return only();
  }
};

TEST_F(LeftoversOfKilled, NpyWritersAreFound) {
  const leftover found = after_killing([&] {
    npy_writer writer(directory / "x.npy", dtype::float32, {100'000});
    ::kill(::getpid(), SIGKILL);
  });
  EXPECT_EQ(found.name.target, "x.npy");
  EXPECT_EQ(found.state, leftover_state::abandoned) << found.why;
}

TEST_F(LeftoversOfKilled, TargetsOfTheCommandAreFound) {
  const leftover found = after_killing([&] {
    const unfinished_file target(directory / "x.png", existing_file::refuse);
    std::ofstream(target.path()) << "half of it";
    ::kill(::getpid(), SIGKILL);
  });
  EXPECT_EQ(found.name.target, "x.png");
  EXPECT_EQ(found.state, leftover_state::abandoned) << found.why;
}

// From now on, to rename a file ends the process.
bool die_at_renaming() {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
#ifdef SYS_rename
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rename, 1, 0),
#else
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 1, 0),
#endif
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(LeftoversOfKilled, FilesThatReplaceOthersAreFound) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr int forbidden = 77;
    if (!die_at_renaming()) ::_exit(forbidden);
    create_file(directory / "x.raw", 4096, {.existing = existing_file::replace});
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    GTEST_SKIP() << "seccomp filters are forbidden here";
  ASSERT_TRUE(WIFSIGNALED(status));
  const leftover found = only();
  EXPECT_EQ(found.name.target, "x.raw");
  EXPECT_EQ(found.state, leftover_state::abandoned) << found.why;
}

}  // namespace
}  // namespace shale::tools
