// Runs the engine over a file that another process changes at the same time:
//
//   disturbed_file_peer loads  ROUNDS DIRECTORY    folds the file, again and again
//   disturbed_file_peer stores ROUNDS DIRECTORY    writes all of it, again and again
//   disturbed_file_peer disturb DIRECTORY          the other process, started by these
//
// In every round a kernel asks for a disturbance when it reaches a random element, and continues.
// It cannot end before the file has been disturbed. The smallest size of the file during the round
// decides which results are right. Prints how many rounds ended in which way.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "shale/apply.hpp"
#include "shale/mapped_file.hpp"
#include "storage/faults/fault_guard.hpp"
#include "support/child_process.hpp"
#include "support/helper_process.hpp"
#include "support/process_footprint.hpp"

namespace {

using namespace shale;
using namespace shale::test;

constexpr std::size_t page = 4096;
constexpr std::size_t file_bytes = std::size_t{1} << 20;
constexpr index_t elements = file_bytes / sizeof(std::int32_t);

// The values that elements may have.
enum value : std::int32_t { lost = 0, original = 1, rewritten = 3, stored = 5 };

// The memory that the two processes share.
struct conversation {
  std::atomic<std::uint32_t> asked;     // the latest round that asked for a disturbance
  std::atomic<std::uint32_t> answered;  // the latest round that got it
  std::uint64_t bytes_least;            // smallest size of the file during the round
  std::uint64_t bytes_last;             // size of the file after it
};

conversation& shared_conversation(const std::string& directory) {
  const int file =
      ::open((directory + "/conversation").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  require(file >= 0 && ::ftruncate(file, page) == 0, "the processes can talk");
  void* const shared = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  require(shared != MAP_FAILED, "the processes can talk");
  return *static_cast<conversation*>(shared);
}

class open_file {
 public:
  explicit open_file(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    require(descriptor_ >= 0, "the file can be opened");
  }
  ~open_file() { ::close(descriptor_); }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  void resize(std::size_t bytes) {
    require(::ftruncate(descriptor_, static_cast<off_t>(bytes)) == 0, "the file can be resized");
  }
  void write(index_t first, index_t count, std::int32_t what) {
    const std::vector<std::int32_t> all(static_cast<std::size_t>(count), what);
    require(::pwrite(descriptor_, all.data(), all.size() * 4, first * 4) == count * 4,
            "the file can be written");
  }
  std::vector<std::int32_t> read() {
    std::vector<std::int32_t> all(file_bytes / 4);
    const auto count = ::pread(descriptor_, all.data(), file_bytes, 0);
    require(count >= 0, "the file can be read");
    all.resize(static_cast<std::size_t>(count) / 4);
    return all;
  }
  std::size_t size() {
    struct stat about {};
    require(::fstat(descriptor_, &about) == 0, "the file has a size");
    return static_cast<std::size_t>(about.st_size);
  }

 private:
  const int descriptor_;
};

// ---- the other process --------------------------------------------------------------------------

// Waits for a random time that is short compared with a round, while the kernels run.
void pause(std::uint64_t steps) {
  std::atomic<std::uint64_t> step = 0;
  while (step.fetch_add(1, std::memory_order_relaxed) < steps) {
  }
}

void disturb(const words& arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string& directory = arguments.at(0);
  conversation& talk = shared_conversation(directory);
  open_file file(directory + "/data");
  std::printf("ready\n");
  std::fflush(stdout);
  for (std::uint32_t round = 1;; ++round) {
    while (talk.asked.load(std::memory_order_acquire) < round) ::sched_yield();
    std::mt19937 random(round);
    const auto below = [&](std::uint64_t bound) { return random() % bound; };
    std::size_t bytes = file_bytes;
    std::size_t least = bytes;
    const bool shortens = below(4) != 0;
    for (auto actions = 1 + below(4); actions > 0; --actions) {
      pause(below(2) * below(100'000));
      const auto action = below(3);
      if (action == 0 && shortens) {
        bytes = below(file_bytes) / 4 * 4;
        least = std::min(least, bytes);
        file.resize(bytes);
      } else if (action == 1) {
        bytes = file_bytes;
        file.resize(bytes);
      } else if (bytes > 0) {
        const auto first = static_cast<index_t>(below(bytes / 4));
        const auto rest = static_cast<index_t>(bytes / 4) - first;
        file.write(first, 1 + static_cast<index_t>(below(static_cast<std::uint64_t>(rest))),
                   rewritten);
      }
    }
    talk.bytes_least = least;
    talk.bytes_last = bytes;
    talk.answered.store(round, std::memory_order_release);
  }
}

// ---- the engine ---------------------------------------------------------------------------------

// Called for every element of a round. Only every 64th call counts, because counting all would take
// most of the time.
class disturbance {
 public:
  disturbance(conversation& talk, std::uint32_t round) : talk_(talk), round_(round) {
    ask_at_ = std::mt19937(~round)() % (elements / 64);
  }

  void reached(const std::int32_t& element) {
    if (reinterpret_cast<std::uintptr_t>(&element) % (64 * sizeof element) != 0) return;
    const auto at = count_.fetch_add(1, std::memory_order_relaxed);
    if (at == ask_at_) talk_.asked.store(round_, std::memory_order_release);
    if (at + 1 == elements / 64) wait();
  }

  void wait() const {
    while (talk_.answered.load(std::memory_order_acquire) < round_) ::sched_yield();
  }
  bool was_asked_for() const { return talk_.asked.load(std::memory_order_relaxed) == round_; }

 private:
  conversation& talk_;
  const std::uint32_t round_;
  std::uint64_t ask_at_ = 0;
  std::atomic<std::uint64_t> count_ = 0;
};

tensor tensor_over(const storage& bytes) { return tensor(bytes, dtype::int32, layout({elements})); }

// The byte that a message names.
std::uint64_t named_byte(const std::string& text) {
  const auto at = text.find(", byte ");
  require(at != std::string::npos, "the error names a byte; got " + text);
  return std::strtoull(text.c_str() + at + 7, nullptr, 10);
}

class experiment {
 public:
  explicit experiment(const std::string& directory)
      : directory_(directory),
        path_(directory + "/data"),
        talk_(shared_conversation(directory)),
        file_(path_),
        calm_(create_file(directory + "/calm", file_bytes)),
        other_("/proc/self/exe", {"disturb", directory}) {
    for (std::int32_t& each : calm().elements<std::int32_t>()) each = original;
    require(other_.read_line() == "ready", "the other process runs");
  }

  // Runs `kernel(tensor, disturbance)` under disturbances. `judge(threw)` checks its results.
  template <class Kernel, class Judge>
  void run(std::uint32_t rounds, shale::access allowed, Kernel kernel, Judge judge) {
    process_footprint before;
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      file_.resize(file_bytes);
      file_.write(0, elements, original);
      // Operands larger than the budget use another path through the engine.
      const executor::scope within(round % 2 == 0 ? wide_ : narrow_);
      {
        const storage bytes = map_file(path_, {.access = allowed});
        disturbance expected(talk_, round);
        std::string text;
        try {
          kernel(tensor_over(bytes), expected);
        } catch (const error& failure) {
          require(failure.code() == errc::io, failure.what());
          text = failure.what();
        }
        require(expected.was_asked_for(), "the kernel ran");
        expected.wait();
        judge_round(bytes, text);
        judge(!text.empty());
      }
      require_equal(file_.size(), talk_.bytes_last, "the file's size");
      require(!calm_.failed(), "the other storage is sound");
      if (round == 2) before = process_footprint::now();  // both executors have their threads
    }
    const auto after = process_footprint::now();
    // oneTBB starts threads and arenas when it needs them.
    require(rounds < 100 || (before.descriptors == after.descriptors &&
                             before.files == after.files && after.reserved < before.reserved + 50),
            "nothing leaks: " + to_string(before) + ", then " + to_string(after));
    require_equal(detail::guarded_ranges(), 1u, "guarded ranges");
    calm_.check();
    for (const std::int32_t each : calm().elements<const std::int32_t>())
      require_equal(each, original, "another storage's element");
    std::printf("%u %u %u %u\n", threw_, shortened_, untouched_,
                static_cast<unsigned>(narrow_.statistics().windows > 0));
  }

  std::vector<std::int32_t> contents() { return file_.read(); }
  std::uint64_t bytes_least() const { return talk_.bytes_least; }
  tensor calm() const { return tensor_over(calm_); }

 private:
  void judge_round(const storage& bytes, const std::string& text) {
    const bool threw = !text.empty();
    if (threw) ++threw_;
    if (talk_.bytes_least < file_bytes) ++shortened_;
    else ++untouched_;
    if (talk_.bytes_last < file_bytes) require(threw, "a file that stayed short is told");
    if (talk_.bytes_least == file_bytes) require(!threw, "a file that stayed long is not an error");
    if (bytes.failed()) require(threw, "lost bytes are told");
    if (!threw) return;
    require(text.find("file " + path_) != std::string::npos, "the error names the file");
    require(named_byte(text) >= talk_.bytes_least / page * page, "the byte is one that was lost");
  }

  const std::string directory_;
  const std::string path_;
  conversation& talk_;
  open_file file_;
  storage calm_;
  child_process other_;
  executor wide_{{.threads = 2, .memory_bytes = 64 * file_bytes}};
  executor narrow_{{.threads = 2, .memory_bytes = file_bytes / 2}};
  unsigned threw_ = 0;
  unsigned shortened_ = 0;
  unsigned untouched_ = 0;
};

std::uint32_t rounds_of(const words& arguments) {
  return static_cast<std::uint32_t>(std::strtoul(arguments.at(0).c_str(), nullptr, 10));
}

struct sighted {
  index_t all = 0;
  index_t losses = 0;
  index_t strangers = 0;
};

void loads(const words& arguments) {
  experiment in(arguments.at(1));
  sighted seen;
  in.run(
      rounds_of(arguments), shale::access::read_only,
      [&](const tensor& values, disturbance& expected) {
        seen = {};
        seen = reduce(
            values, sighted{},
            [&](sighted& to, const std::int32_t& x) {
              expected.reached(x);
              const std::int32_t now = x;
              ++to.all;
              to.losses += now == lost;
              to.strangers += now != lost && now != original && now != rewritten;
            },
            [](sighted& to, const sighted& more) {
              to.all += more.all;
              to.losses += more.losses;
              to.strangers += more.strangers;
            });
      },
      [&](bool threw) {
        if (threw) return;
        require_equal(seen.all, elements, "elements");
        require_equal(seen.strangers, 0, "elements that nobody wrote");
        if (in.bytes_least() == file_bytes) require_equal(seen.losses, 0, "elements lost");
      });
}

void stores(const words& arguments) {
  experiment in(arguments.at(1));
  std::atomic<index_t> strangers = 0;
  in.run(
      rounds_of(arguments), shale::access::read_write,
      [&](const tensor& values, disturbance& expected) {
        apply(
            [&](std::int32_t& to, std::int32_t calm) {
              expected.reached(to);
              if (calm != original) ++strangers;
              to = stored;
            },
            values, in.calm());
      },
      [&](bool threw) {
        require_equal(strangers.load(), 0, "elements of another storage that changed");
        const auto all = in.contents();
        for (std::size_t i = 0; i < all.size(); ++i) {
          const bool kept = (i + 1) * 4 <= in.bytes_least();
          const bool right = all[i] == stored || all[i] == rewritten ||
                             all[i] == (kept ? (threw ? original : stored) : lost);
          if (!right)
            require(false, "element " + std::to_string(i) + " is " + std::to_string(all[i]));
        }
      });
}

}  // namespace

int main(int count, char** arguments) {
  return run_verb({{"loads", loads}, {"stores", stores}, {"disturb", disturb}}, count, arguments);
}
