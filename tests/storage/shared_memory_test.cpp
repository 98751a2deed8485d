// Shared segments of processes that start, end and are killed.
#include "shale/shared_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "shale/mapped_file.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/test_support.hpp"

namespace shale {
namespace {

using test::code_of;
using test::outcome_of;
using test::peer;

class SharedMemory : public testing::Test {
 protected:
  ~SharedMemory() override {
    ::unlink(file().c_str());
    ::unlink(later().c_str());
  }

  std::string file() const { return "/dev/shm/shale." + name; }
  std::string later() const { return file() + ".later"; }  // where a test needs a second segment
  bool named() const { return ::access(file().c_str(), F_OK) == 0; }

  // The entry of list_shared for the name.
  std::vector<shared_segment> listed() const {
    auto all = list_shared(name);
    std::erase_if(all, [&](const auto& segment) { return segment.name != name; });
    return all;
  }

  const std::string name = "test-" + std::to_string(::getpid()) + "." +
                           testing::UnitTest::GetInstance()->current_test_info()->name();
};

// Another program gives a segment a name that `open_shared` and `remove_shared` refuse.
TEST_F(SharedMemory, IsListedOnlyUnderNamesThatSegmentsMayHave) {
  const storage bytes = create_shared(name, 1000);
  const std::string foreign = file() + " copy";
  ASSERT_EQ(::link(file().c_str(), foreign.c_str()), 0);
  const auto all = list_shared(name);
  reclaim_shared(name);
  EXPECT_EQ(::unlink(foreign.c_str()), 0);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all.front().name, name);
}

TEST_F(SharedMemory, IsSeenByAnotherProcess) {
  storage bytes = create_shared(name, 100'000);
  EXPECT_EQ(bytes.size_bytes(), 100'000u);
  EXPECT_EQ(bytes.kind(), storage_kind::shared_memory);
  EXPECT_EQ(std::count(bytes.data(), bytes.data() + 100'000, std::byte{0}), 100'000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64, 0u);
  bytes.data()[99'999] = std::byte{7};
  peer other({"shared-open", name, "write"});
  EXPECT_EQ(other.read_line(), "ready 100000");
  other.write_line("get 99999");
  EXPECT_EQ(other.read_line(), "7");
  other.write_line("put 5 42");
  EXPECT_EQ(other.read_line(), "done");
  EXPECT_EQ(bytes.data()[5], std::byte{42});
  other.write_line("leave");
  EXPECT_EQ(other.wait(), 0);
  EXPECT_TRUE(named());
}

TEST_F(SharedMemory, IsPrivateToItsUserUnlessAskedOtherwise) {
  const storage mine = create_shared(name, 10);
  struct stat about {};
  ASSERT_EQ(::stat(file().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  const mode_t mask = ::umask(077);
  const storage ours = create_shared(name + ".shared", 10, {.mode = 0664});
  ::umask(mask);
  ASSERT_EQ(::stat((file() + ".shared").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0664u);
}

// Removing and reclaiming take a lock that needs read and write access.
TEST_F(SharedMemory, ItsOwnerMustBeAbleToReadAndWrite) {
  for (const unsigned mode : {0u, 0200u, 0400u, 0444u, 0466u, 0577u}) {
    EXPECT_EQ(code_of([&] { create_shared(name, 10, {.mode = mode}); }), errc::invalid_argument)
        << mode;
    EXPECT_FALSE(named());
  }
  for (const unsigned mode : {0600u, 0644u, 0700u})
    EXPECT_EQ(create_shared(name, 10, {.mode = mode}).size_bytes(), 10u) << mode;
}

TEST_F(SharedMemory, NamesAreValidated) {
  for (const std::string bad : {"", "a/b", "../a", "a b", "a\n", "ä"})
    EXPECT_EQ(code_of([&] { create_shared(bad, 1); }), errc::invalid_argument) << bad;
  EXPECT_EQ(code_of([&] { create_shared(std::string(201, 'a'), 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { open_shared("a/b"); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { remove_shared("a/b"); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { open_shared(name); }), errc::not_found);
  EXPECT_FALSE(remove_shared(name));
}

TEST_F(SharedMemory, CreationIsExclusive) {
  const storage first = create_shared(name, 10);
  EXPECT_EQ(code_of([&] { create_shared(name, 10); }), errc::already_exists);
  EXPECT_EQ(open_shared(name).size_bytes(), 10u);
}

TEST_F(SharedMemory, ReadOnlyAndPrivateAttachmentsStoreNothing) {
  storage bytes = create_shared(name, 10);
  const storage reader = open_shared(name, {.access = access::read_only});
  storage own = open_shared(name, {.access = access::copy_on_write});
  EXPECT_FALSE(reader.writable());
  own.data()[0] = std::byte{1};
  EXPECT_EQ(reader.data()[0], std::byte{0});
  bytes.data()[1] = std::byte{2};
  EXPECT_EQ(reader.data()[1], std::byte{2});
}

TEST_F(SharedMemory, OfCreatorGoesWithTheCreatorsLastHandle) {
  storage mine = create_shared(name, 100);
  storage part = mine.slice(10, 10);
  const storage attached = open_shared(name);
  mine = {};
  EXPECT_TRUE(named());
  part.data()[0] = std::byte{5};
  part = {};
  EXPECT_FALSE(named());
  EXPECT_EQ(attached.data()[10], std::byte{5});
  EXPECT_EQ(code_of([&] { open_shared(name); }), errc::not_found);
}

TEST_F(SharedMemory, CountedGoesWithItsLastUser) {
  storage mine = create_shared(name, 100, {.lifetime = shared_lifetime::counted});
  peer other({"shared-open", name, "write"});
  EXPECT_EQ(other.read_line(), "ready 100");
  mine = {};
  EXPECT_TRUE(named());
  mine = open_shared(name);
  other.write_line("leave");
  EXPECT_EQ(other.wait(), 0);
  EXPECT_TRUE(named());
  mine = {};
  EXPECT_FALSE(named());
}

// Also of one that only reads.
TEST_F(SharedMemory, CountedGoesWithItsLastReader) {
  for (const access allowed : {access::read_only, access::copy_on_write}) {
    storage mine = create_shared(name, 100, {.lifetime = shared_lifetime::counted});
    storage reader = open_shared(name, {.access = allowed});
    mine = {};
    EXPECT_TRUE(named());
    reader = {};
    EXPECT_FALSE(named());
  }
}

TEST_F(SharedMemory, IsCreatedUnderAnyUmask) {
  const auto create = [&] {
    const mode_t before = ::umask(0777);
    const storage mine = create_shared(name, 10);
    ::umask(before);
    return mine.size_bytes() == 10;
  };
  if (::geteuid() != 0) {
    EXPECT_TRUE(create());
    return;
  }
  const pid_t child = ::fork();  // root is refused nothing
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    const bool ready = ::setresuid(nobody, nobody, nobody) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0;
    ::_exit(ready && create() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(SharedMemory, ManualStaysUntilItIsRemoved) {
  storage mine = create_shared(name, 100, {.lifetime = shared_lifetime::manual});
  mine.data()[3] = std::byte{9};
  mine = {};
  EXPECT_EQ(reclaim_shared(name), 0u);
  EXPECT_EQ(open_shared(name).data()[3], std::byte{9});
  EXPECT_TRUE(remove_shared(name));
  EXPECT_FALSE(named());
  EXPECT_FALSE(remove_shared(name));
}

// segment.3
TEST_F(SharedMemory, RemovalLeavesAttachedProcessesTheirBytes) {
  storage mine = create_shared(name, 100);
  EXPECT_TRUE(remove_shared(name));
  mine.data()[0] = std::byte{1};
  // The name can be used again, and the old creator must not remove the new segment's name.
  const storage next = create_shared(name, 50);
  mine = {};
  EXPECT_TRUE(named());
  EXPECT_EQ(open_shared(name).size_bytes(), 50u);
}

// segment.2, segment.4
TEST_F(SharedMemory, OfAKilledCreatorIsDeadAndReclaimed) {
  peer creator({"shared-create", name, "5000", "creator"});
  ASSERT_EQ(creator.read_line(), "ready 5000");
  const storage attached = open_shared(name);
  ASSERT_EQ(listed().size(), 1u);
  EXPECT_FALSE(listed()[0].dead);
  EXPECT_TRUE(listed()[0].attached);
  EXPECT_EQ(listed()[0].bytes, 5000u);
  EXPECT_EQ(reclaim_shared(name), 0u);
  creator.kill();
  EXPECT_EQ(creator.wait(), -SIGKILL);
  ASSERT_EQ(listed().size(), 1u);
  EXPECT_TRUE(listed()[0].dead);
  EXPECT_EQ(code_of([&] { open_shared(name); }), errc::not_found);
  EXPECT_FALSE(named());
  EXPECT_EQ(attached.data()[4999], std::byte{0});
}

TEST_F(SharedMemory, NameOfAKilledCreatorIsFreeAgain) {
  peer creator({"shared-create", name, "5000", "creator"});
  ASSERT_EQ(creator.read_line(), "ready 5000");
  EXPECT_EQ(code_of([&] { create_shared(name, 10); }), errc::already_exists);
  creator.kill();
  creator.wait();
  EXPECT_EQ(create_shared(name, 10).size_bytes(), 10u);
}

// segment.2, segment.4
TEST_F(SharedMemory, CountedSurvivesSomeKilledUsersButNotAll) {
  peer first({"shared-create", name, "100", "counted"});
  ASSERT_EQ(first.read_line(), "ready 100");
  auto second = std::make_unique<peer>(std::vector<std::string>{"shared-open", name});
  ASSERT_EQ(second->read_line(), "ready 100");
  first.kill();
  first.wait();
  EXPECT_EQ(reclaim_shared(name), 0u);
  EXPECT_EQ(open_shared(name).size_bytes(), 100u);
  second->kill();
  second->wait();
  ASSERT_EQ(listed().size(), 1u);
  EXPECT_TRUE(listed()[0].dead);
  EXPECT_FALSE(listed()[0].attached);
  EXPECT_EQ(reclaim_shared(name), 1u);
  EXPECT_FALSE(named());
}

// Any user may make a segment without an owner and lock its gate for ever. Its name comes before
// that of the dead segment, and it may be only read.
TEST_F(SharedMemory, IsReclaimedBesideASegmentThatSomebodyKeepsLocked) {
  const auto make_dead = [](const std::string& path) {
    detail::file_descriptor made(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
    const struct {
      char magic[8] = {'S', 'H', 'A', 'L', 'E', 's', 'h', 'm'};
      std::uint32_t version = 1;
      std::uint32_t lifetime = 1;  // counted
    } header;
    EXPECT_EQ(::ftruncate(made.get(), 8192), 0);
    EXPECT_EQ(::pwrite(made.get(), &header, sizeof header, 0), ssize_t{sizeof header});
    return made;
  };
  const auto locked = make_dead(file());
  make_dead(later()).reset();
  struct flock gate {};
  gate.l_type = F_RDLCK;
  gate.l_whence = SEEK_SET;
  gate.l_start = off_t{1} << 62;
  gate.l_len = 1;
  ASSERT_EQ(::fcntl(locked.get(), F_OFD_SETLK, &gate), 0);
  EXPECT_EQ(reclaim_shared(name), 1u);
  EXPECT_TRUE(named());
  EXPECT_NE(::access(later().c_str(), F_OK), 0);
  gate.l_type = F_UNLCK;
  ASSERT_EQ(::fcntl(locked.get(), F_OFD_SETLK, &gate), 0);
  EXPECT_EQ(reclaim_shared(name), 1u);
  EXPECT_FALSE(named());
}

TEST_F(SharedMemory, GrowsInPlaceForAllWhoReservedRoom) {
  storage mine = create_shared(name, 100, {.reserve_bytes = 1 << 20});
  std::byte* const address = mine.data();
  mine.data()[99] = std::byte{3};
  peer other({"shared-open", name, "write"});
  EXPECT_EQ(other.read_line(), "ready 100");
  mine.grow(500'000);
  EXPECT_EQ(mine.data(), address);
  EXPECT_EQ(mine.data()[99], std::byte{3});
  mine.data()[499'999] = std::byte{4};
  other.write_line("grow 500000");
  EXPECT_EQ(other.read_line(), "500000");
  other.write_line("get 499999");
  EXPECT_EQ(other.read_line(), "4");
  other.write_line("grow 600000");
  EXPECT_EQ(other.read_line(), "600000");
  EXPECT_EQ(open_shared(name).size_bytes(), 600'000u);
  EXPECT_EQ(mine.size_bytes(), 500'000u);
}

TEST_F(SharedMemory, FullMemoryIsAnErrorAndLeavesNoName) {
  struct statvfs about {};
  ASSERT_EQ(::statvfs("/dev/shm", &about), 0);
  const std::size_t too_much = about.f_blocks * about.f_frsize + (1 << 20);
  const auto descriptors = test::open_descriptors();
  EXPECT_EQ(code_of([&] { create_shared(name, too_much); }), errc::out_of_space);
  EXPECT_EQ(code_of([&] { create_shared(name, ~std::size_t{0}); }), errc::out_of_space);
  EXPECT_FALSE(named());
  storage mine = create_shared(name, 100, {.reserve_bytes = too_much});
  EXPECT_EQ(code_of([&] { mine.grow(too_much); }), errc::out_of_space);
  mine.grow(5000);
  mine = {};
  // One descriptor stays: that of the guard, made with the first mapping of the process.
  EXPECT_LE(test::open_descriptors(), descriptors + 1);
}

TEST_F(SharedMemory, IsGuardedAgainstAPeerThatTruncates) {
  const storage mine = create_shared(name, 100'000);
  ASSERT_EQ(test::run_peer({"truncate", file(), "5000"}), 0);
  const volatile std::byte* const lost = mine.data() + 90'000;
  EXPECT_EQ(static_cast<std::byte>(*lost), std::byte{0});
  EXPECT_TRUE(mine.failed());
  EXPECT_EQ(code_of([&] { mine.check(); }), errc::io);
}

TEST_F(SharedMemory, RefusesWhatIsNoSegment) {
  const int foreign = ::open(file().c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::ftruncate(foreign, 100'000), 0);
  ::close(foreign);
  EXPECT_EQ(code_of([&] { open_shared(name); }), errc::corrupt);
  EXPECT_EQ(code_of([&] { remove_shared(name); }), errc::corrupt);
  EXPECT_EQ(code_of([&] { create_shared(name, 1); }), errc::already_exists);
  EXPECT_TRUE(listed().empty());
  reclaim_shared(name);
  EXPECT_TRUE(named());
}

TEST_F(SharedMemory, RefusesWhatIsNoFile) {
  const auto expect_refusal = [&] {
    EXPECT_EQ(code_of([&] { open_shared(name); }), errc::corrupt);
    EXPECT_EQ(code_of([&] { remove_shared(name); }), errc::corrupt);
    const auto taken = outcome_of([&] { create_shared(name, 1); });
    EXPECT_EQ(taken.code, errc::already_exists);
    EXPECT_NE(taken.text.find("a file that is no readable segment"), std::string::npos);
    EXPECT_TRUE(listed().empty());
    EXPECT_EQ(reclaim_shared(name), 0u);
    EXPECT_TRUE(named());
  };
  ASSERT_EQ(::mkdir(file().c_str(), 0700), 0);
  expect_refusal();
  ASSERT_EQ(::rmdir(file().c_str()), 0);
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  expect_refusal();
}

TEST_F(SharedMemory, RefusesASegmentCutIntoItsHeader) {
  storage bytes = create_shared(name, 100'000, {.lifetime = shared_lifetime::manual});
  ASSERT_EQ(test::run_peer({"truncate", file(), "100"}), 0);
  EXPECT_EQ(code_of([&] { open_shared(name); }), errc::corrupt);
  EXPECT_TRUE(listed().empty());
  EXPECT_EQ(static_cast<std::byte>(static_cast<volatile std::byte*>(bytes.data())[5]),
            std::byte{0});
  EXPECT_EQ(code_of([&] { bytes.check(); }), errc::io);
}

TEST_F(SharedMemory, FollowsNoSymbolicLink) {
  const storage other = create_shared(name + ".target", 10);
  ASSERT_EQ(::symlink((file() + ".target").c_str(), file().c_str()), 0);
  EXPECT_EQ(code_of([&] { open_shared(name); }), errc::corrupt);
  EXPECT_EQ(code_of([&] { create_shared(name, 10); }), errc::already_exists);
  // It does not follow a link that leads to no file yet either.
  ASSERT_TRUE(remove_shared(name + ".target"));
  EXPECT_EQ(code_of([&] { open_shared(name); }), errc::corrupt);
  EXPECT_EQ(code_of([&] { create_shared(name, 10); }), errc::already_exists);
  EXPECT_NE(::access((file() + ".target").c_str(), F_OK), 0);
}

TEST_F(SharedMemory, HasPermissionsAndNoOtherModeBits) {
  for (const unsigned mode : {0u, 0400u, 0200u, 0066u, 01600u, 04755u, 0100600u, ~0u})
    EXPECT_EQ(code_of([&] { create_shared(name, 10, {.mode = mode}); }), errc::invalid_argument);
  EXPECT_FALSE(named());
  const storage open = create_shared(name, 10, {.mode = 0777});
  EXPECT_TRUE(named());
}

TEST_F(SharedMemory, DeniesOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const storage mine = create_shared(name, 10);
  const storage readable = create_shared(name + ".readable", 10, {.mode = 0644});
  ASSERT_EQ(::seteuid(65534), 0);
  const errc closed = code_of([&] { open_shared(name, {.access = access::read_only}); });
  const errc writing = code_of([&] { open_shared(name + ".readable"); });
  const errc reading =
      code_of([&] { open_shared(name + ".readable", {.access = access::read_only}); });
  const errc removing = code_of([&] { remove_shared(name + ".readable"); });
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(closed, errc::access_denied);
  EXPECT_EQ(writing, errc::access_denied);
  EXPECT_EQ(reading, errc{});
  EXPECT_EQ(removing, errc::access_denied);
}

// Any user may have made a segment of the wanted name first, so that others write into it.
TEST_F(SharedMemory, OfAnotherUserIsTakenOnlyByWhoAsks) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_EQ(::seteuid(65534), 0);
  storage planted = create_shared(name, 10, {.mode = 0666});
  const errc own = code_of([&] { open_shared(name); });
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(own, errc{});
  for (const access how : {access::read_write, access::read_only, access::copy_on_write}) {
    EXPECT_EQ(code_of([&] { open_shared(name, {.access = how}); }), errc::access_denied);
    EXPECT_EQ(open_shared(name, {.access = how, .owner = shared_owner::anyone}).size_bytes(), 10u);
  }
}

TEST_F(SharedMemory, IsNotTakenAwayByAForkedChild) {
  storage mine = create_shared(name, 10);
  const pid_t child = ::fork();
  if (child == 0) {
    mine = {};
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
  }
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(named());
  EXPECT_FALSE(listed().at(0).dead);
}

// No handler of fork has told the child's handles that they are copies.
TEST_F(SharedMemory, IsNotTakenAwayByAChildThatIsMadeWithoutHandlers) {
  for (const auto lifetime : {shared_lifetime::creator, shared_lifetime::counted}) {
    storage mine = create_shared(name, 10, {.lifetime = lifetime});
    const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) {
      mine = {};
      ::_exit(0);
    }
    ASSERT_GT(child, 0);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
    }
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(named());
    ASSERT_EQ(listed().size(), 1u);
    EXPECT_TRUE(listed().at(0).attached);
    EXPECT_FALSE(listed().at(0).dead);
    mine = {};
    EXPECT_FALSE(named());
  }
}

TEST_F(SharedMemory, IsOpenToOthersWhenItsCreatorLeftAndAForkedChildLives) {
  storage mine = create_shared(name, 10, {.lifetime = shared_lifetime::counted});
  peer other({"shared-open", name});
  ASSERT_NE(other.read_line(), "");
  int until[2];
  ASSERT_EQ(::pipe2(until, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(until[1]);
    char byte;
    (void)!::read(until[0], &byte, 1);
    ::_exit(0);
  }
  ::close(until[0]);
  mine = {};
  EXPECT_EQ(code_of([&] { open_shared(name); }), errc{});
  EXPECT_EQ(code_of([&] { EXPECT_TRUE(remove_shared(name)); }), errc{});
  ::close(until[1]);
  ::waitpid(child, nullptr, 0);
}

// segment.4: the child holds copies of the descriptors while it lives.
TEST_F(SharedMemory, CountedGoesWithItsLastUserThoughAForkedChildLives) {
  storage first = create_shared(name, 10, {.lifetime = shared_lifetime::counted});
  int until_end[2];
  ASSERT_EQ(::pipe(until_end), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(until_end[1]);
    char nothing;
    ::_exit(::read(until_end[0], &nothing, 1) == 0 ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  ::close(until_end[0]);
  storage second = open_shared(name);
  first = {};
  EXPECT_TRUE(named());
  second = {};
  EXPECT_FALSE(named());
  EXPECT_EQ(create_shared(name, 10).size_bytes(), 10u);
  ::close(until_end[1]);
  int status = -1;
  while (::waitpid(child, &status, 0) < 0) {
  }
  EXPECT_EQ(status, 0);
}

// segment.1, segment.3: any other error ends a peer with a different status.
TEST_F(SharedMemory, ManyProcessesMayFightForOneName) {
  std::vector<std::unique_ptr<peer>> others;
  for (int i = 0; i < 4; ++i)
    others.push_back(std::make_unique<peer>(std::vector<std::string>{"shared-churn", name, "300"}));
  int created = 0;
  for (auto& other : others) {
    created += std::stoi(other->read_line());
    EXPECT_EQ(other->wait(), 0);
  }
  EXPECT_GT(created, 0);
  EXPECT_FALSE(named());
}

// segment.2, segment.4: processes are killed at any point.
TEST_F(SharedMemory, NothingOutlivesKilledProcessesButWhatIsReclaimed) {
  constexpr int lives = 60;
  std::vector<std::unique_ptr<peer>> others;
  for (int i = 0; i < lives; ++i) {
    others.push_back(
        std::make_unique<peer>(std::vector<std::string>{"shared-life", name, std::to_string(i)}));
    if (others.size() < 4) continue;
    peer& victim = *others[static_cast<std::size_t>(i) % others.size()];
    for (int lines = 1 + i % 7; lines > 0; --lines) ASSERT_EQ(victim.read_line(), "alive");
    victim.kill();
    ASSERT_EQ(victim.wait(), -SIGKILL);
    others.erase(others.begin() + i % static_cast<int>(others.size()));
  }
  for (auto& other : others) {
    ASSERT_EQ(other->read_line(), "alive");
    other->kill();
    ASSERT_EQ(other->wait(), -SIGKILL);
  }
  for (const auto& segment : list_shared(name)) {
    EXPECT_TRUE(segment.dead) << segment.name;
    EXPECT_FALSE(segment.attached) << segment.name;
  }
  reclaim_shared(name);
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    EXPECT_EQ(entry.path().string().find(name), std::string::npos) << entry.path();
}

}  // namespace
}  // namespace shale
