// Processes that fork while they hold storages: `fork_peer VERB DIRECTORY`.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "shale/mapped_file.hpp"
#include "shale/memory_pool.hpp"
#include "shale/shared_memory.hpp"
#include "storage/peer_support.hpp"
#include "storage/pool/pools/housekeeper.hpp"
#include "support/allocation_turns.hpp"

namespace {

using namespace shale;
using namespace shale::test;

const std::size_t file_bytes = 64 * page;

std::string filled_file(const std::string& path) {
  storage made = create_file(path, file_bytes, {.existing = existing_file::replace});
  fill(made);
  return path;
}

// Forks without running the handlers of fork, like vfork and the runtimes of other languages.
pid_t clone_alone() { return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }

// Forks a child that runs `body`; it ends with 0 if `body` throws nothing.
pid_t begin_child(const std::function<void()>& body, pid_t (*make)() = &::fork) {
  auto turn = turn_to_allocate();
  const pid_t child = make();
  turn = {};
  if (child != 0) return child;
  try {
    body();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "fork_peer, in the child: %s\n", failure.what());
    ::_exit(1);
  }
  ::_exit(0);
}

void require_end(pid_t child) {
  int status = 0;
  require(child > 0 && ::waitpid(child, &status, 0) == child, "the child ends");
  require_equal(status, 0, "the child's status");
}

// Lets two processes take turns.
class turns {
 public:
  turns() { require(::pipe(to_parent_) == 0 && ::pipe(to_child_) == 0, "there are pipes"); }
  void child_done() { signal(to_parent_[1]), wait(to_child_[0]); }
  void wait_for_child() { wait(to_parent_[0]); }
  void let_child_go() { signal(to_child_[1]); }

 private:
  static void signal(int pipe) { require(::write(pipe, "", 1) == 1, "a turn can be given"); }
  static void wait(int pipe) {
    char turn;
    require(::read(pipe, &turn, 1) == 1, "a turn is given");
  }
  int to_parent_[2];
  int to_child_[2];
};

void private_copies(const words& arguments) {
  const std::string path = filled_file(arguments.at(0) + "/data");
  storage own = map_file(path, {.access = access::copy_on_write});
  const storage reading = map_file(path);
  put(own, 0, 1);
  turns turn;
  const pid_t child = begin_child([&] {
    const auto held = process_footprint::now();
    require_equal(load(own, 0), 1, "a byte from before the fork");
    put(own, 0, 2);
    put(own, page, 3);
    turn.child_done();
    require_equal(load(own, 2 * page), value_at(2 * page), "a byte that the parent changed");
    require_equal(load(own, 0), 2, "the child's byte");
    require_equal(filled_bytes(reading), file_bytes, "the file's bytes");
    own.check();
    // A child of the child has its own copies again.
    require_end(begin_child([&] {
      require_equal(load(own, page), 3, "a byte of the child");
      put(own, page, 4);
    }));
    require_equal(load(own, page), 3, "the child's byte after its child");
    // New storages work, and destroying them gives everything back.
    { const storage more = map_file(path, {.access = access::read_write}); }
    require(process_footprint::now() == held, "nothing leaks in the child");
    own = {};
  });
  turn.wait_for_child();
  require_equal(load(own, 0), 1, "the parent's byte");
  require_equal(load(own, page), value_at(page), "a byte that the child changed");
  put(own, 2 * page, 9);
  turn.let_child_go();
  require_end(child);
  require_equal(load(own, 2 * page), 9, "the parent's byte");
  require_equal(filled_bytes(reading), file_bytes, "the file's bytes");
  own.check();
}

void fault_in_child(const words& arguments) {
  const bystander elsewhere(arguments.at(0) + "/elsewhere");
  const std::string path = filled_file(arguments.at(0) + "/data");
  storage own = map_file(path, {.access = access::copy_on_write});
  const storage reading = map_file(path);
  put(own, 6 * page, 100);
  require_end(begin_child([&] {
    put(own, 0, 200);
    require(::truncate(path.c_str(), 8 * page) == 0, "the file can be truncated");
    for (const storage* bytes : {static_cast<const storage*>(&own), &reading}) {
      require_equal(load(*bytes, 9 * page), 0, "a lost byte");
      require(bytes->failed(), "a mark");
      require_failure([&] { bytes->check(); }, errc::io, place(path, 9 * page), "a check");
    }
    require_equal(load(own, 0), 200, "the child's byte");
    require_equal(load(own, 6 * page), 100, "the parent's byte");
    elsewhere.require_sound();
    require_failure([&] { map_file(path, {.bytes = 9 * page}); }, errc::invalid_argument, path,
                    "mapping more than is left");
    require_equal(load(map_file(path), 5), value_at(5), "a byte of a new storage");
  }));
  require(!own.failed() && !reading.failed(), "the parent has no mark");
  require_equal(load(own, 0), value_at(0), "a byte that the child changed");
  require_equal(load(own, 6 * page), 100, "the parent's byte");
  require_equal(load(own, 9 * page), 0, "a lost byte");
  require(own.failed() && !reading.failed(), "only what was touched is marked");
  elsewhere.require_sound();
}

void shared_stores(const words& arguments) {
  const std::string path = filled_file(arguments.at(0) + "/data");
  const std::string name = "fork-" + std::to_string(::getpid());
  storage file = map_file(path, {.access = access::read_write, .reserve_bytes = 2 * file_bytes});
  storage segment = create_shared(name, page, {.reserve_bytes = 2 * file_bytes});
  put(segment, 0, 7);
  require_end(begin_child([&] {
    for (storage* bytes : {&file, &segment}) {
      for (const auto& call :
           {std::function<void()>([&] { bytes->check(); }),
            std::function<void()>([&] { bytes->flush(); }),
            std::function<void()>([&] { bytes->grow(2 * file_bytes); }), std::function<void()>([&] {
              bytes->populate({0, 1});
            })})
        require(code_of(call) == errc::unsupported, "a child has no share in writable mappings");
    }
    // After opening the files anew, both can be used.
    storage again = open_shared(name);
    put(again, 1, 8);
    put(segment = map_file(path, {.access = access::read_write}), 0, 9);
    file = {};
  }));
  require_equal(load(segment, 1), 8, "a byte that the child stored through a storage of its own");
  require_equal(load(file, 0), 9, "a byte that the child stored through a storage of its own");
  put(file, 1, 10);
  file.flush();
  require_equal(load(map_file(path), 1), 10, "the parent's byte");
  require_equal(list_shared(name).size(), 1u, "segments");
  segment = {};
  require_equal(list_shared(name).size(), 0u, "segments");
}

bool is_mapped(const std::byte* address) {
  unsigned char in_memory = 0;
  return ::mincore(const_cast<std::byte*>(address), page, &in_memory) == 0;
}

void require_lost(storage& from_parent, const std::string& path) {
  require(from_parent.failed(), "a mark");
  for (const std::size_t offset : {std::size_t{0}, 5 * page, from_parent.size_bytes() - 1}) {
    require_equal(load(from_parent, offset), 0, "a byte of the parent's");
    if (from_parent.writable()) put(from_parent, offset, 200);
  }
  require_failure([&] { from_parent.check(); }, errc::unsupported, "file " + path, "a check");
}

void touched_in_child(const words& arguments) {
  const std::string path = filled_file(arguments.at(0) + "/data");
  const std::string cut = filled_file(arguments.at(0) + "/cut");
  storage sound = map_file(path, {.access = access::read_write, .reserve_bytes = 2 * file_bytes});
  storage grown =
      create_file(arguments.at(0) + "/grown", 6 * page, {.reserve_bytes = 2 * file_bytes});
  grown.grow(file_bytes);
  // Before the fork, the tail of one storage was lost and replaced.
  storage failed = map_file(cut, {.access = access::read_write});
  require(::truncate(cut.c_str(), 9 * page) == 0, "the file can be truncated");
  put(failed, 20 * page, 1);
  require(failed.failed() && load(failed, 5) == value_at(5), "the tail alone is lost");

  require_end(begin_child([&] {
    // In a child of the child they throw too.
    require_end(begin_child([&] { require_lost(sound, path); }));
    const auto held = process_footprint::now();
    require_lost(sound, path);
    require_lost(grown, arguments.at(0) + "/grown");
    require_lost(failed, cut);
    require_end(begin_child([&] {
      require(sound.failed() && grown.failed() && failed.failed(), "marks");
      put(sound, file_bytes - 1, 3);
      require_failure([&] { failed.check(); }, errc::unsupported, "file " + cut, "a check");
    }));
    require_equal(load(sound, file_bytes - 1), 200, "a byte that the child's child changed");
    std::vector<const std::byte*> addresses;
    for (storage* bytes : {&sound, &grown, &failed}) {
      for (std::size_t offset : {std::size_t{0}, 5 * page, bytes->size_bytes() - page})
        addresses.push_back(bytes->data() + offset);
      *bytes = {};
    }
    for (const std::byte* address : addresses)
      require(!is_mapped(address), "nothing is left mapped");
    require(process_footprint::now().descriptors < held.descriptors, "nor open");
  }));
  require_equal(filled_bytes(sound), file_bytes, "bytes of the parent's");
  require(!sound.failed() && !grown.failed(), "the parent has no mark");
  require_equal(load(map_file(cut), 5), value_at(5), "a byte of the file");
}

// Simulates another library that maps memory in the child before Shale's handlers of fork run: they
// run in the order in which they were installed, and Shale installs its own at program start.
constinit std::byte* wanted_in_child = nullptr;
void take_the_gap() {
  if (wanted_in_child == nullptr) return;
  void* const got = ::mmap(wanted_in_child, file_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != wanted_in_child) ::_exit(3);
  std::memset(got, 1, file_bytes);
}

constinit int not_installed = -1;
[[gnu::constructor(101)]] void install_before_shale() {
  not_installed = ::pthread_atfork(nullptr, nullptr, take_the_gap);
}

void foreign_in_child(const words& arguments) {
  require_equal(not_installed, 0, "the error of installing a handler of fork");
  storage bytes = map_file(filled_file(arguments.at(0) + "/data"), {.access = access::read_write});
  wanted_in_child = bytes.data();
  require_end(begin_child([&] {
    require(bytes.failed(), "a mark");
    require(code_of([&] { bytes.check(); }) == errc::unsupported, "a check in the child throws");
    require(code_of([&] { bytes.populate({0, 1}); }) == errc::unsupported, "so does populating");
    bytes.evict({0, file_bytes});
    bytes.prefetch({0, file_bytes});
    bytes.advise(access_pattern::random, {0, file_bytes});
    bytes = {};
    for (std::size_t offset = 0; offset < file_bytes; offset += page)
      require(wanted_in_child[offset] == std::byte{1},
              "what another library mapped stays as it was");
  }));
  require_equal(filled_bytes(bytes), file_bytes, "bytes of the parent's");
  bytes.check();
}

// The child that no handler prepared maps memory of its own where its parent has a mapping.
void foreign_without_handlers(const words& arguments) {
  storage bytes = map_file(filled_file(arguments.at(0) + "/data"), {.access = access::read_write});
  std::byte* const gap = bytes.data();
  require_end(begin_child(
      [&] {
        void* const got = ::mmap(gap, file_bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        require(got == gap, "the mapping is not inherited");
        std::memset(got, 1, file_bytes);
        require(code_of([&] { bytes.check(); }) == errc::unsupported, "a check throws");
        bytes = {};
        for (std::size_t offset = 0; offset < file_bytes; offset += page)
          require(gap[offset] == std::byte{1}, "the child's own memory stays as it was");
      },
      &clone_alone));
  require_equal(filled_bytes(bytes), file_bytes, "bytes of the parent's");
  bytes.check();
}

// Frees a block, which wakes the housekeeper, and waits until it has nothing left to do and sleeps.
void free_and_fall_idle(memory_pool& pool) {
  constexpr std::size_t bytes = std::size_t{1} << 20;
  pool.deallocate(pool.allocate(bytes), bytes);
  pool.trim();
  while (detail::housekeeper_awake) ::usleep(1000);
}

bool other_threads_sleep() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    if (entry.path().filename() == std::to_string(::gettid())) continue;
    std::string line;
    std::getline(std::ifstream(entry.path() / "stat"), line);
    if (line.at(line.rfind(')') + 2) != 'S') return false;
  }
  return true;
}

void idle_in_child(const words&) {
  memory_pool& pool = memory_pool::default_pool();
  free_and_fall_idle(pool);
  while (!other_threads_sleep()) ::usleep(1000);
  require_end(begin_child([&] {
    ::alarm(60);  // waiting for a thread that does not exist would never end
    for (int i = 0; i < 3; ++i) free_and_fall_idle(pool);
  }));
}

// Forks children while other threads map, fault and unmap.
void while_faulting(const words& arguments) {
  const std::string calm = filled_file(arguments.at(0) + "/calm");
  const std::string path = filled_file(arguments.at(0) + "/data");
  const storage quiet = map_file(calm);
  std::atomic<bool> stop = false;
  std::atomic<int> faults = 0;
  std::jthread other = running_thread([&] {
    while (!stop) {
      if (::truncate(path.c_str(), file_bytes) != 0) continue;
      auto turn = turn_to_allocate();
      storage reading = map_file(path);
      storage writing = map_file(path, {.access = access::read_write});
      turn = {};
      if (::truncate(path.c_str(), page) == 0) {
        load(reading, 5 * page);
        put(writing, 7 * page, 1);
        if (reading.failed() && writing.failed()) ++faults;
      }
      turn = turn_to_allocate();
      reading = writing = {};
    }
  });
  const std::string lost = arguments.at(0) + "/lost";
  for (int i = 0; i < 100; ++i) {
    filled_file(lost);
    const storage bytes = map_file(lost);
    require_end(begin_child([&] {
      require(::truncate(lost.c_str(), page) == 0, "the file can be truncated");
      require_equal(load(bytes, 3 * page), 0, "a lost byte");
      require(bytes.failed(), "a mark");
      require_equal(load(quiet, 5), value_at(5), "another storage's byte");
      require_equal(load(map_file(calm), 5), value_at(5), "a new storage's byte");
    }));
    require(!bytes.failed(), "the parent has no mark");
  }
  while (faults == 0) ::usleep(100);
  stop = true;
  other.join();
  quiet.check();
}

}  // namespace

int main(int count, char** arguments) {
  return run_verb({{"private-copies", private_copies},
                   {"fault-in-child", fault_in_child},
                   {"shared-stores", shared_stores},
                   {"touched-in-child", touched_in_child},
                   {"foreign-in-child", foreign_in_child},
                   {"foreign-without-handlers", foreign_without_handlers},
                   {"idle-in-child", idle_in_child},
                   {"while-faulting", while_faulting}},
                  count, arguments);
}
