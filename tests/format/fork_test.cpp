// Tests processes that fork while they write: the child holds no lock, and cannot change the
// transaction.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <optional>

#include "format/container/container_file.hpp"
#include "format/os/descriptors_kept_from_children.hpp"
#include "format/os/pins.hpp"
#include "format/small_history.hpp"
#include "shale/error.hpp"
#include "support/scratch_directory.hpp"

namespace shale::format {
namespace {

using test::observe;
using test::plain_state;
using test::storyteller;

constexpr std::chrono::milliseconds at_once{0};

// A child that runs its work and then lives until its pipe is closed. It keeps all inherited
// descriptors.
class living_child {
 public:
  using way_of_forking = pid_t (*)();

  explicit living_child(way_of_forking make = &::fork, const std::function<void()>& work = {}) {
    int until[2], done[2];
    EXPECT_EQ(::pipe2(until, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(done, O_CLOEXEC), 0);
    pid_ = make();
    char byte = 'x';
    if (pid_ == 0) {
      ::syscall(SYS_close, until[1]);
      if (work) work();
      ::syscall(SYS_write, done[1], &byte, 1);
      ::syscall(SYS_read, until[0], &byte, 1);
      ::_exit(0);
    }
    ::close(until[0]);
    ::close(done[1]);
    EXPECT_EQ(::read(done[0], &byte, 1), 1) << "the child's work ended it";
    ::close(done[0]);
    until_ = until[1];
  }

  ~living_child() {
    ::close(until_);
    ::waitpid(pid_, nullptr, 0);
  }

  living_child(const living_child&) = delete;
  living_child& operator=(const living_child&) = delete;

 private:
  pid_t pid_ = -1;
  int until_ = -1;
};

// Forks without running the fork handlers, like vfork and the runtimes of other languages.
pid_t clone_alone() { return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }

// The real file system. It calls a function in each pause of a writer that waits for its turn.
class pausing_files final : public file_system {
 public:
  explicit pausing_files(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}

  os_result open(const std::string& path, open_access access,
                 std::unique_ptr<open_file>& opened) noexcept override {
    return real_.open(path, access, opened);
  }
  os_result open_unshared(const std::string& path,
                          std::unique_ptr<open_file>& opened) noexcept override {
    return real_.open_unshared(path, opened);
  }
  os_result create_unnamed(const std::string& path, unsigned mode,
                           std::unique_ptr<open_file>& created) noexcept override {
    return real_.create_unnamed(path, mode, created);
  }
  os_result link(open_file& file, const std::string& path) noexcept override {
    return real_.link(file, path);
  }
  os_result rename(const std::string& from, const std::string& to) noexcept override {
    return real_.rename(from, to);
  }
  os_result remove(const std::string& path) noexcept override { return real_.remove(path); }
  os_result open_directory_of(const std::string& path,
                              std::unique_ptr<open_directory>& opened) noexcept override {
    return real_.open_directory_of(path, opened);
  }
  os_result identify(const std::string& path, file_identity& identity) noexcept override {
    return real_.identify(path, identity);
  }
  std::chrono::microseconds pause(std::chrono::milliseconds duration) noexcept override {
    meanwhile_();
    return duration;
  }

 private:
  file_system& real_ = posix_files();
  std::function<void()> meanwhile_;
};

class Forks : public testing::Test {
 protected:
  void tell(transaction& change, unsigned seed) {
    storyteller story(change, told);
    if (!told.contains("a")) story.create_chunked("a");
    for (unsigned i = 0; i < 12; ++i) story.chunk("a", i, seed + i);
    story.dense("d", 20'000 + seed, seed);
  }

  void expect_free() {
    const std::uint64_t before = container.latest().generation();
    transaction change =
        container_file::open(posix_files(), path, open_access::write).begin(at_once);
    tell(change, 7);
    EXPECT_EQ(change.commit(), before + 1);
    EXPECT_EQ(observe(container.latest()), told);
    EXPECT_EQ(test::unsound(container.latest()), "");
  }

  test::scratch_directory box;
  const std::string path = box / "forked.shale";
  container_file container = container_file::create(posix_files(), path);
  plain_state told;
};

// child.1
TEST_F(Forks, TheWriterLockGoesWithTheTransactionThoughAChildLives) {
  transaction change = container.begin(at_once);
  const living_child child;
  EXPECT_THROW(container_file::open(posix_files(), path, open_access::write).begin(at_once), error);
  tell(change, 1);
  change.commit();
  expect_free();
}

TEST_F(Forks, TheWriterLockGoesWithAnAbortedTransactionThoughAChildLives) {
  transaction change = container.begin(at_once);
  const living_child child;
  change.abort();
  expect_free();
}

TEST_F(Forks, AChildThatIsMadeWithoutHandlersKeepsNoLockOfATransactionThatEnded) {
  transaction change = container.begin(at_once);
  const living_child child(&clone_alone);
  tell(change, 1);
  change.commit();
  expect_free();
}

// child.1
TEST_F(Forks, TheWriterLockGoesWithAKilledProcessThoughItsChildLives) {
  int ready[2], until[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(until, O_CLOEXEC), 0);
  const pid_t writer = ::fork();
  char byte = 'x';
  if (writer == 0) {
    ::close(until[1]);
    transaction change = container.begin(at_once);
    if (::fork() == 0) {
      ::syscall(SYS_write, ready[1], &byte, 1);
      ::syscall(SYS_read, until[0], &byte, 1);
      ::_exit(0);
    }
    ::pause();
    ::_exit(0);
  }
  ::close(until[0]);
  ::close(ready[1]);
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THROW(container.begin(at_once), error);
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
  expect_free();
  ::close(until[1]);
  EXPECT_EQ(::read(ready[0], &byte, 1), 0) << "the child ends";
  ::close(ready[0]);
}

// child.1
TEST_F(Forks, APlaceInTheQueueGoesWithItsWriterThoughAChildLives) {
  std::optional<transaction> first = container.begin(at_once);
  std::optional<living_child> child;
  pausing_files files([&] {
    if (!child) child.emplace();
  });
  container_file second = container_file::open(files, path, open_access::write);
  EXPECT_THROW(second.begin(std::chrono::milliseconds{1}), error);
  ASSERT_TRUE(child);
  tell(*first, 1);
  first->commit();
  expect_free();
}

TEST_F(Forks, AChildHasNoPartInItsParentsTransaction) {
  std::optional<transaction> change = container.begin(at_once);
  tell(*change, 1);
  plain_state before = told;
  const living_child child(&::fork, [&] {
    const auto refused = [](const auto& call) {
      try {
        call();
      } catch (const error& failed) {
        return failed.code() == errc::invalid_argument;
      }
      return false;
    };
    if (!refused([&] { change->commit(); })) ::_exit(1);
    if (!refused([&] { change->allocate(4096); })) ::_exit(1);
    if (!refused([&] { change->erase("a"); })) ::_exit(1);
    change.reset();  // does not truncate the tail, which belongs to the parent
  });
  ASSERT_EQ(told, before);
  change->commit();
  EXPECT_EQ(observe(container.latest()), told);
  expect_free();
}

TEST_F(Forks, AChildKeepsThePinsOfItsParent) {
  std::optional<generation_view> held = container.latest();
  {
    const living_child child;
    held.reset();
    EXPECT_EQ(container.pinned(), (std::vector<generation_range>{{1, 1}}));
  }
  EXPECT_TRUE(container.pinned().empty());
}

// child.2
TEST_F(Forks, ADescriptorThatAChildMayHaveACopyOfIsOpenedAnew) {
  const std::int64_t before = forks_begun();
  ASSERT_GE(before, 0);
  int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  { const living_child child; }
  EXPECT_FALSE(kept_from_children(descriptor).start(before));
  {
    kept_from_children kept(descriptor);
    EXPECT_TRUE(kept.start(forks_begun()));
    const living_child child(&::fork, [&] {
      if (descriptor != -1) ::_exit(1);
    });
    EXPECT_GE(descriptor, 0);
  }
  const living_child child(&::fork, [&] {
    if (::fcntl(descriptor, F_GETFD) < 0) ::_exit(1);
  });
  ::close(descriptor);
}

// The child has copies of all descriptors, and no handler has told its objects that they are
// copies.
TEST_F(Forks, AChildThatIsMadeWithoutHandlersLeavesATransactionAlone) {
  std::optional<transaction> change = container.begin(at_once);
  tell(*change, 1);
  const pid_t child = clone_alone();
  if (child == 0) {
    change.reset();
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  container_file other = container_file::open(posix_files(), path, open_access::write);
  EXPECT_THROW(other.begin(at_once), error);
  EXPECT_NO_THROW(change->commit());
  EXPECT_EQ(test::observe(container.latest()), told);
  change.reset();
  expect_free();
}

}  // namespace
}  // namespace shale::format
