// Files that are lost under their mappings: the process lives, the storage is marked, the error
// names the position, and other storages are not affected.
#include "storage/faults/fault_guard.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "shale/mapped_file.hpp"
#include "storage/mapped/mapped_extents.hpp"
#include "storage/test_support.hpp"
#include "support/bounded.hpp"
#include "support/system_page.hpp"

namespace shale {
namespace {

using test::code_of;
using test::pattern;
using test::run_peer;
using test::scratch_directory;
using test::text_of;
using test::write_pattern;

const std::size_t page = test::system_page_bytes();

unsigned char byte_at(const storage& bytes, std::size_t position) {
  return static_cast<unsigned char>(
      *const_cast<const volatile std::byte*>(bytes.data() + position));
}

void put(storage& bytes, std::size_t position, unsigned char value) {
  *const_cast<volatile std::byte*>(bytes.data() + position) = static_cast<std::byte>(value);
}

// Shadow memory of a sanitizer for these stores would be counted too.
__attribute__((no_sanitize("address", "thread"))) void store_in_every_page(std::byte* to,
                                                                           std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += page) static_cast<volatile std::byte*>(to)[i] = {};
}

class FaultGuard : public testing::Test {
 protected:
  const std::size_t size = 64 * page;

  void SetUp() override { write_pattern(path, size); }
  void truncate_by_another_process(std::size_t bytes) {
    ASSERT_EQ(run_peer({"truncate", path, std::to_string(bytes)}), 0);
  }

  scratch_directory directory;
  const std::string path = directory / "data";
};

// storage.3
TEST_F(FaultGuard, LoadsBehindATruncationReadZeros) {
  const storage bytes = map_file(path);
  const storage other = map_file(path, {.bytes = page});
  EXPECT_EQ(byte_at(bytes, size - 1), pattern(size - 1));
  truncate_by_another_process(10 * page + 5);
  EXPECT_FALSE(bytes.failed());
  EXPECT_EQ(byte_at(bytes, 20 * page), 0);
  EXPECT_TRUE(bytes.failed());
  EXPECT_EQ(byte_at(bytes, size - 1), 0);
  EXPECT_EQ(byte_at(bytes, 10 * page), pattern(10 * page));
  EXPECT_EQ(byte_at(bytes, 0), pattern(0));
  // Pages between the new end and the first fault have not been replaced; they fault later.
  EXPECT_EQ(byte_at(bytes, 11 * page), 0);
  const std::string text = text_of([&] { bytes.check(); });
  EXPECT_NE(text.find(path), std::string::npos) << text;
  EXPECT_NE(text.find("byte " + std::to_string(11 * page)), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { bytes.check(); }), errc::io);
  EXPECT_FALSE(other.failed());
  other.check();
}

TEST_F(FaultGuard, CheckSeesATruncationThatNobodyTouched) {
  const storage bytes = map_file(path, {.offset = 100});
  bytes.check();
  truncate_by_another_process(size - 1);
  EXPECT_FALSE(bytes.failed());
  EXPECT_EQ(code_of([&] { bytes.check(); }), errc::io);
  EXPECT_EQ(code_of([&] { bytes.slice(0, 1).check(); }), errc::io);
}

TEST_F(FaultGuard, PopulateReportsATruncationBeforeAnyFault) {
  const storage bytes = map_file(path, {.offset = 3});
  truncate_by_another_process(10 * page);
  bytes.populate({0, 10 * page - 3});
  const std::string text = text_of([&] { bytes.populate({0, bytes.size_bytes()}); });
  EXPECT_NE(text.find("byte " + std::to_string(10 * page)), std::string::npos) << text;
  EXPECT_FALSE(bytes.failed());
}

// storage.3
TEST_F(FaultGuard, StoresBehindATruncationAreSwallowedAndGrowNothing) {
  storage bytes = map_file(path, {.access = access::read_write});
  truncate_by_another_process(10 * page);
  for (std::size_t i = 0; i < size; i += 100) put(bytes, i, 1);
  EXPECT_TRUE(bytes.failed());
  EXPECT_EQ(code_of([&] { bytes.check(); }), errc::io);
  EXPECT_EQ(code_of([&] { bytes.flush(); }), errc::io);
  EXPECT_EQ(test::file_size(path), 10 * page);
  // The mark stays even if the file comes back: half of a result is worse than none.
  truncate_by_another_process(size);
  for (std::size_t i = 0; i < size; i += 100) put(bytes, i, 2);
  const auto file = test::file_contents(path);
  EXPECT_EQ(file[0], 2);
  EXPECT_EQ(std::count(file.begin() + 10 * page, file.end(), 0),
            static_cast<std::ptrdiff_t>(size - 10 * page));
  EXPECT_TRUE(bytes.failed());
}

// guard.3
TEST_F(FaultGuard, SinkMemoryIsBounded) {
  constexpr std::size_t large = std::size_t{1} << 30;
  ASSERT_EQ(::truncate(path.c_str(), large), 0);  // sparse
  storage bytes = map_file(path, {.access = access::read_write});
  truncate_by_another_process(0);
  const auto resident = [] {
    std::size_t pages = 0;
    std::FILE* const about = std::fopen("/proc/self/statm", "r");
    const int fields = std::fscanf(about, "%*u %zu", &pages);
    std::fclose(about);
    return fields == 1 ? pages * page : 0;
  };
  const std::size_t before = resident();
  const std::size_t lines = test::mappings_of("");
  store_in_every_page(bytes.data(), large);
  EXPECT_LT(resident(), before + (40 << 20));
  EXPECT_LT(test::mappings_of(""), lines + 300);
  EXPECT_TRUE(bytes.failed());
}

// guard.3. Each store lies before all that came before it. Patches must not overlap then: one of
// them is taken back at last, and its pages have to fault into a new one.
TEST_F(FaultGuard, PagesLostInFallingOrderStayAccessible) {
  const test::hang_alarm limit;
  constexpr std::size_t large = 4 << 20;
  ASSERT_EQ(::truncate(path.c_str(), large), 0);
  storage bytes = map_file(path, {.access = access::read_write});
  truncate_by_another_process(0);
  for (std::size_t k = 1; k <= large / page; ++k) put(bytes, large - k * page, 1);
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < large; i += page) EXPECT_LE(byte_at(bytes, i), 1);
  EXPECT_TRUE(bytes.failed());
}

TEST_F(FaultGuard, FlushReportsATruncationThatNobodyTouched) {
  storage bytes = map_file(path, {.access = access::read_write});
  put(bytes, size - 1, 1);
  truncate_by_another_process(10 * page);
  EXPECT_EQ(code_of([&] { bytes.flush(); }), errc::io);
  EXPECT_EQ(code_of([&] { bytes.finish_writeback({0, size}); }), errc::io);
}

TEST_F(FaultGuard, GrowthHidesNoTruncation) {
  storage bytes = map_file(path, {.access = access::read_write, .reserve_bytes = 4 * size});
  truncate_by_another_process(10 * page);
  EXPECT_EQ(code_of([&] { bytes.grow(2 * size); }), errc::io);
  EXPECT_EQ(test::file_size(path), 10 * page);
  EXPECT_EQ(bytes.size_bytes(), size);
}

// storage.4
TEST_F(FaultGuard, FailedStoragesAreLetGoInSilence) {
  static_assert(std::is_nothrow_destructible_v<storage>);
  testing::internal::CaptureStderr();
  {
    storage bytes = map_file(path, {.access = access::read_write});
    truncate_by_another_process(page);
    put(bytes, 20 * page, 1);
    EXPECT_EQ(code_of([&] { bytes.flush(); }), errc::io);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(FaultGuard, CopyOnWriteLosesOnlyWhatTheFileLost) {
  storage bytes = map_file(path, {.access = access::copy_on_write});
  put(bytes, 5, 200);
  put(bytes, 20 * page, 201);
  truncate_by_another_process(10 * page);
  EXPECT_EQ(byte_at(bytes, 20 * page), 0);
  EXPECT_EQ(byte_at(bytes, 5), 200);
  put(bytes, 20 * page, 202);
  EXPECT_EQ(byte_at(bytes, 20 * page), 202);
  EXPECT_TRUE(bytes.failed());
}

TEST_F(FaultGuard, ManyThreadsFaultAtOnce) {
  storage reading = map_file(path);
  storage writing = map_file(path, {.access = access::read_write});
  storage healthy = storage::allocate(page);
  truncate_by_another_process(page);
  std::vector<std::thread> threads;
  std::atomic<unsigned> sum = 0;
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 1; i < size / page; ++i) {
        const std::size_t position = (i * (2 * t + 1)) % 63 + 1;
        sum += byte_at(reading, position * page);
        put(writing, position * page + t, 1);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(sum, 0u);
  EXPECT_TRUE(reading.failed());
  EXPECT_TRUE(writing.failed());
  EXPECT_FALSE(healthy.failed());
}

// guard.2, for a race detector: a slot is reused while other threads search the list.
TEST_F(FaultGuard, MappingsComeAndGoWhileOthersFault) {
  std::atomic<bool> stop = false;
  std::thread churn([&] {
    const std::string other = directory / "other";
    write_pattern(other, size);
    while (!stop) {
      const storage bytes = map_file(other);
      ASSERT_EQ(byte_at(bytes, size - 1), pattern(size - 1));
      ASSERT_FALSE(bytes.failed());
    }
  });
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(::truncate(path.c_str(), size), 0);
    storage bytes = map_file(path, {.access = i % 2 == 0 ? access::read_write : access::read_only});
    ASSERT_EQ(::truncate(path.c_str(), 3 * page), 0);
    ASSERT_EQ(byte_at(bytes, static_cast<std::size_t>(4 + i % 60) * page), 0);
    ASSERT_TRUE(bytes.failed());
  }
  stop = true;
  churn.join();
  EXPECT_EQ(detail::guarded_ranges(), 0u);
}

TEST_F(FaultGuard, MarksTheExtentThatWasLost) {
  const int file = ::open(path.c_str(), O_RDONLY);
  const std::vector<detail::file_extent> extents{{40 * page, 4 * page}, {0, 2 * page}};
  const storage bytes = detail::map_extents(file, extents, {.path = path});
  ::close(file);
  truncate_by_another_process(42 * page);
  EXPECT_EQ(byte_at(bytes, 4 * page), pattern(0));
  EXPECT_EQ(byte_at(bytes, 3 * page), 0);
  EXPECT_EQ(byte_at(bytes, 5 * page), pattern(page));
  const std::string text = text_of([&] { bytes.check(); });
  EXPECT_NE(text.find("byte " + std::to_string(43 * page)), std::string::npos) << text;
}

TEST_F(FaultGuard, SystemCallsOnLostBytesFailInsteadOfKilling) {
  const storage bytes = map_file(path);
  truncate_by_another_process(0);
  const int null = ::open((directory / "out").c_str(), O_WRONLY | O_CREAT, 0600);
  EXPECT_EQ(::write(null, bytes.data(), 10), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(code_for_errno(EFAULT), errc::io);
  ::close(null);
}

TEST_F(FaultGuard, WorksInThreadsThatBlockedTheSignalAndLetItThrough) {
  const storage bytes = map_file(path);
  truncate_by_another_process(0);
  std::thread([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    detail::unblock_fault_signal();
    EXPECT_EQ(byte_at(bytes, 5), 0);
  }).join();
  EXPECT_TRUE(bytes.failed());
}

// Loads and stores run over a file that another process truncates, grows and rewrites meanwhile.
// The values of the bytes are not known. But the process must live, a failed storage must be
// marked, and its neighbour must not be.
TEST_F(FaultGuard, SurvivesAProcessThatKeepsChangingTheFile) {
  const std::string calm_path = directory / "calm";
  write_pattern(calm_path, size);
  const storage calm = map_file(calm_path);
  test::peer other({"disturb", path, std::to_string(size / page)});
  ASSERT_EQ(other.read_line(), "disturbing");
  int failures = 0;
  unsigned sum = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto how = round % 3 == 0   ? access::read_only
                     : round % 3 == 1 ? access::read_write
                                      : access::copy_on_write;
    storage bytes;
    try {
      bytes = map_file(path, {.access = how});
      if (round % 5 == 0) bytes.populate({0, bytes.size_bytes()});
    } catch (const error& failure) {
      ASSERT_EQ(failure.code(), errc::io) << failure.what();
      continue;
    }
    for (std::size_t i = 0; i < bytes.size_bytes(); i += 512) {
      sum += byte_at(bytes, i);
      if (how != access::read_only) put(bytes, i, 1);
    }
    if (bytes.failed()) {
      ++failures;
      EXPECT_EQ(code_of([&] { bytes.check(); }), errc::io);
    }
  }
  other.write_line("stop");
  EXPECT_EQ(other.wait(), 0);
  EXPECT_GT(failures, 0) << sum;
  calm.check();
  EXPECT_EQ(byte_at(calm, size - 1), pattern(size - 1));
}

// ---- fork ---------------------------------------------------------------------------------------

// Runs `body` in a forked child; its result is the child's exit status.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_F(FaultGuard, ForkedChildKeepsReadMappingsGuarded) {
  const storage bytes = map_file(path);
  EXPECT_EQ(in_child([&] {
              if (byte_at(bytes, 5) != pattern(5)) return 1;
              if (::truncate(path.c_str(), page) != 0) return 2;
              if (byte_at(bytes, 10 * page) != 0 || !bytes.failed()) return 3;
              return 0;
            }),
            0);
  EXPECT_FALSE(bytes.failed());
  EXPECT_EQ(byte_at(bytes, 10 * page), 0);
  EXPECT_TRUE(bytes.failed());
}

// guard.5; Fork.ChildrenUnmapNothingForeign tests a child in which other memory has taken the gap.
TEST_F(FaultGuard, ForkedChildHasNoWritableMappings) {
  storage bytes = map_file(path, {.access = access::read_write});
  put(bytes, 0, 9);
  EXPECT_EQ(in_child([&] {
              if (!bytes.failed() || byte_at(bytes, 0) != 0) return 3;
              if (code_of([&] { bytes.check(); }) != errc::unsupported) return 1;
              if (code_of([&] { bytes.populate({0, 1}); }) != errc::unsupported) return 2;
              put(bytes, 0, 7);
              bytes = {};
              return 0;
            }),
            0);
  EXPECT_EQ(byte_at(bytes, 0), 9);
  bytes.check();
}

// ---- damaged pages of memory: each in a forked child, which the kernel's signal may end ---------

volatile int reports = 0;  // calls of `note_report`
siginfo_t last_report{};

void note_report(int, siginfo_t* about, void*) {
  reports = reports + 1;
  last_report = *about;
}

// Sends this thread what the kernel sends for a damaged page: BUS_MCEERR_AR to the thread that
// reads it, BUS_MCEERR_AO to a process that maps it and has not read it.
bool report_damaged_page(int si_code, const std::byte* address) {
  siginfo_t about{};
  about.si_signo = SIGBUS;
  about.si_code = si_code;
  about.si_addr = const_cast<std::byte*>(address);
  return ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), SIGBUS, &about) == 0;
}

// guard.4
TEST_F(FaultGuard, LeavesPagesThatNobodyHasReadToTheHost) {
  EXPECT_EQ(in_child([&] {
              struct sigaction host {};
              host.sa_sigaction = note_report;
              host.sa_flags = SA_SIGINFO;
              if (::sigaction(SIGBUS, &host, nullptr) != 0) return 1;
              const storage bytes = map_file(path);
              if (!report_damaged_page(BUS_MCEERR_AO, bytes.data() + 5 * page)) return 2;
              if (reports != 1 || last_report.si_code != BUS_MCEERR_AO) return 3;
              if (last_report.si_addr != bytes.data() + 5 * page) return 4;
              return bytes.failed() || byte_at(bytes, 5 * page) != pattern(5 * page) ? 5 : 0;
            }),
            0);
}

// storage.3
TEST_F(FaultGuard, ReplacesADamagedPageThatIsRead) {
  EXPECT_EQ(in_child([&] {
              const storage bytes = map_file(path);
              if (!report_damaged_page(BUS_MCEERR_AR, bytes.data() + 5 * page)) return 1;
              if (!bytes.failed() || byte_at(bytes, 5 * page) != 0) return 2;
              return byte_at(bytes, 4 * page) == pattern(4 * page) ? 0 : 3;
            }),
            0);
}

// guard.4: no access repeats after the handler, which would end the process.
TEST_F(FaultGuard, EndsTheProcessForAnUnreadPageUnlessTheHostIgnoresIt) {
  const auto with = [&](void (*host)(int)) {
    return in_child([&] {
      ::signal(SIGBUS, host);
      const storage bytes = map_file(path);
      if (!report_damaged_page(BUS_MCEERR_AO, bytes.data() + 5 * page)) return 1;
      return bytes.failed() || byte_at(bytes, 5 * page) != pattern(5 * page) ? 2 : 0;
    });
  };
  EXPECT_EQ(with(SIG_DFL), -SIGBUS);
  EXPECT_EQ(with(SIG_IGN), 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need more calls
// From now on any other system call ends the process.
bool allow_only(const std::vector<long>& calls) {
  std::vector<sock_filter> program{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)}};
  for (const long call : calls) {
    program.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(call)});
    program.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
  }
  program.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS});
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// guard.1: the system calls of the handler; waiting for a lock would be a further one.
TEST_F(FaultGuard, AsksTheKernelForLittle) {
  const int status = in_child([&] {
    auto& reading = *new storage(map_file(path));
    auto& writing = *new storage(map_file(path, {.access = access::read_write}));
    if (::truncate(path.c_str(), page) != 0) return 1;
    if (!allow_only({SYS_mmap, SYS_fstat, SYS_newfstatat, SYS_rt_sigprocmask, SYS_rt_sigreturn,
                     SYS_exit_group}))
      return 2;
    for (std::size_t i = size / page; i-- > 1;) {
      if (byte_at(reading, i * page) != 0) return 3;
      put(writing, i * page, 1);
    }
    return reading.failed() && writing.failed() ? 0 : 4;
  });
  if (status == 2) GTEST_SKIP() << "no filter can be set here";
  EXPECT_EQ(status, 0);
}
#endif

// ---- the host program's own handlers: each in a process of its own ------------------------------

// guard.4
TEST_F(FaultGuard, PassesForeignFaultsToTheHandlerThatWasThereBefore) {
  EXPECT_EQ(run_peer({"fault-before", path}), 0);
}

TEST_F(FaultGuard, IsReachedThroughAHandlerThatWasInstalledAfterAndChains) {
  EXPECT_EQ(run_peer({"fault-after-chaining", path}), 0);
}

TEST_F(FaultGuard, ReturnsToTheFrontWithTheNextMapping) {
  EXPECT_EQ(run_peer({"fault-after-again", path}), 0);
}

// guard.4
TEST_F(FaultGuard, LeavesFatalFaultsFatal) {
  EXPECT_EQ(run_peer({"fault-foreign", path}), -SIGBUS);
  EXPECT_EQ(run_peer({"fault-sent", path}), -SIGBUS);
}

// guard.4
TEST_F(FaultGuard, CallsAHandlerForOneFaultOnce) {
  EXPECT_EQ(run_peer({"fault-once", path}), -SIGBUS);
}

TEST_F(FaultGuard, ReturnsToTheFrontOfAHandlerThatIsInstalledAgainAndAgain) {
  EXPECT_EQ(run_peer({"fault-many-handlers", path}), 0);
}

TEST_F(FaultGuard, SurvivesATooLongListOfMappings) {
  EXPECT_EQ(run_peer({"fault-many-mappings", path}), 0);
}

TEST_F(FaultGuard, SurvivesAHostThatClosedEveryDescriptor) {
  EXPECT_EQ(run_peer({"fault-closed-descriptors", path}), 0);
}

}  // namespace
}  // namespace shale
