// Processes that fork while they hold storages: `fork_peer VERB DIRECTORY`.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "shale/mapped_file.hpp"
#include "shale/memory_pool.hpp"
#include "shale/shared_memory.hpp"
#include "storage/peer_support.hpp"
#include "storage/pool/housekeeper.hpp"

namespace {

using namespace shale;
using namespace shale::test;

constexpr std::size_t file_bytes = 64 * page;

std::string filled_file(const std::string& path) {
  storage made = create_file(path, file_bytes, {.exclusive = false, .truncate = true});
  fill(made);
  return path;
}

// AddressSanitizer's allocator has no handlers around fork (before LLVM 17): a child may inherit
// its locks as another thread held them, and wait for ever. Under it, forks and what allocates in
// other threads take turns; faults come at any moment, as everywhere.
std::unique_lock<std::mutex> turn_to_allocate() {
#if defined(__SANITIZE_ADDRESS__)
  static std::mutex turns;
  return std::unique_lock(turns);
#else
  return {};
#endif
}

// A child that runs `body`; it ends with 0 if that throws nothing.
pid_t begin_child(const std::function<void()>& body) {
  auto turn = turn_to_allocate();
  const pid_t child = ::fork();
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

// Two processes take turns.
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
    // A child of the child has copies of its own again.
    require_end(begin_child([&] {
      require_equal(load(own, page), 3, "a byte of the child");
      put(own, page, 4);
    }));
    require_equal(load(own, page), 3, "the child's byte after its child");
    // New storages work, and letting go gives all back.
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
    for (const storage* each : {static_cast<const storage*>(&own), &reading}) {
      require_equal(load(*each, 9 * page), 0, "a lost byte");
      require(each->failed(), "a mark");
      require_failure([&] { each->check(); }, errc::io, place(path, 9 * page), "a check");
    }
    require_equal(load(own, 0), 200, "the child's byte");
    require_equal(load(own, 6 * page), 100, "the parent's byte");
    elsewhere.require_sound();
    require_failure([&] { map_file(path, {.length = 9 * page}); }, errc::invalid_argument, path,
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
    for (storage* each : {&file, &segment}) {
      for (const auto& call :
           {std::function<void()>([&] { each->check(); }),
            std::function<void()>([&] { each->flush(); }),
            std::function<void()>([&] { each->grow(2 * file_bytes); }), std::function<void()>([&] {
              each->populate({0, 1});
            })})
        require(code_of(call) == errc::unsupported, "a child has no share in writable mappings");
    }
    // Opened anew, both can be used.
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

// Frees until the housekeeper, which that wakes, has nothing left to do and sleeps.
void free_and_fall_idle(memory_pool& pool) {
  constexpr std::size_t bytes = std::size_t{1} << 20;
  pool.deallocate(pool.allocate(bytes), bytes);
  pool.trim();
  while (detail::housekeeper_awake) ::usleep(1000);
}

bool other_threads_sleep() {
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    if (each.path().filename() == std::to_string(::gettid())) continue;
    std::string line;
    std::getline(std::ifstream(each.path() / "stat"), line);
    if (line.at(line.rfind(')') + 2) != 'S') return false;
  }
  return true;
}

void idle_in_child(const words&) {
  memory_pool& pool = memory_pool::default_pool();
  free_and_fall_idle(pool);
  while (!other_threads_sleep()) ::usleep(1000);
  require_end(begin_child([&] {
    ::alarm(60);  // a thread that is not there would be waited for without end
    for (int i = 0; i < 3; ++i) free_and_fall_idle(pool);
  }));
}

// Children that begin while other threads map, fault and let go.
void while_faulting(const words& arguments) {
  const std::string calm = filled_file(arguments.at(0) + "/calm");
  const std::string path = filled_file(arguments.at(0) + "/data");
  const storage quiet = map_file(calm);
  std::atomic<bool> stop = false;
  std::atomic<int> faults = 0;
  std::thread other([&] {
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
                   {"idle-in-child", idle_in_child},
                   {"while-faulting", while_faulting}},
                  count, arguments);
}
