// The helper process of the storage tests: `storage_peer VERB ARGUMENT…`. It ends with 0 if the
// check of the verb succeeds.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "shale/mapped_file.hpp"
#include "shale/shared_memory.hpp"
#include "support/system_page.hpp"

namespace {

using words = std::vector<std::string>;

const std::size_t page = shale::test::system_page_bytes();

int truncate_file(const words& arguments) {
  return ::truncate(arguments.at(0).c_str(), std::atoll(arguments.at(1).c_str())) == 0 ? 0 : 1;
}

int remove_file(const words& arguments) { return ::unlink(arguments.at(0).c_str()) == 0 ? 0 : 1; }

// Replaces the file of that name by another one with the given number of bytes of value 7.
int replace_file(const words& arguments) {
  const std::string fresh = arguments.at(0) + ".fresh";
  {
    std::ofstream file(fresh, std::ios::binary);
    file << std::string(static_cast<std::size_t>(std::atoll(arguments.at(1).c_str())), '\7');
    if (!file.flush()) return 1;
  }
  return std::rename(fresh.c_str(), arguments.at(0).c_str()) == 0 ? 0 : 2;
}

// Truncates, grows and rewrites the file as fast as possible until it is told to stop.
int disturb(const words& arguments) {
  const int file = ::open(arguments.at(0).c_str(), O_RDWR);
  const auto pages = static_cast<unsigned>(std::atoi(arguments.at(1).c_str()));
  if (::fcntl(0, F_SETFL, O_NONBLOCK) != 0) return 1;
  std::printf("disturbing\n");
  std::fflush(stdout);
  unsigned random = 1;
  for (char word; ::read(0, &word, 1) < 0;) {
    random = random * 1103515245 + 12345;
    const auto offset = static_cast<off_t>(random / 65536 % pages * page + random / 256 % page);
    if (random % 3 == 0) {
      if (::pwrite(file, &random, sizeof random, offset) < 0) return 2;
    } else if (::ftruncate(file, random % 3 == 1 ? offset : static_cast<off_t>(pages * page)) !=
               0) {
      return 3;
    }
  }
  return 0;
}

// ---- faults and handlers ------------------------------------------------------------------------

unsigned char load(const void* address) {
  return *static_cast<const volatile unsigned char*>(address);
}

// A mapped page of an empty file. It is not a storage, so the guard does not know it.
const void* foreign_fault() {
  const int file = ::memfd_create("empty", 0);
  return ::mmap(nullptr, page, PROT_READ, MAP_SHARED, file, 0);
}

// The handlers of the host program count calls and leave the fault as real handlers do.
volatile sig_atomic_t host_calls = 0;
sigjmp_buf host_escape;
struct sigaction before_host {};

void host_escapes(int) {
  host_calls = host_calls + 1;
  siglongjmp(host_escape, 1);
}

void host_chains(int number, siginfo_t* about, void* context) {
  host_calls = host_calls + 1;
  before_host.sa_sigaction(number, about, context);
}

void install(void (*plain)(int), void (*informed)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  if (informed != nullptr) {
    action.sa_sigaction = informed;
    action.sa_flags = SA_SIGINFO;
  } else {
    action.sa_handler = plain;
  }
  sigaction(SIGBUS, &action, &before_host);
}

// Whether a load from `address` ends by the host's jump out of the handler.
bool escapes(const void* address) {
  const auto calls = host_calls;
  if (sigsetjmp(host_escape, 1) == 0) {
    load(address);
    return false;
  }
  return host_calls == calls + 1;
}

// Maps the file and truncates it: every load after the first page faults.
shale::storage mapped_and_cut(const std::string& path) {
  if (::truncate(path.c_str(), 64 * page) != 0) std::abort();
  auto bytes = shale::map_file(path);
  if (::truncate(path.c_str(), page) != 0) std::abort();
  return bytes;
}

bool reads_zero_and_fails(const shale::storage& bytes) {
  return load(bytes.data() + 5 * page) == 0 && bytes.failed();
}

int fault_before(const words& arguments) {
  install(host_escapes, nullptr);
  const auto bytes = mapped_and_cut(arguments.at(0));
  if (!reads_zero_and_fails(bytes) || host_calls != 0) return 1;
  if (!escapes(foreign_fault())) return 2;
  // The signal mask is restored, and both handlers still work.
  const auto more = mapped_and_cut(arguments.at(0));
  if (!reads_zero_and_fails(more) || host_calls != 1) return 3;
  return escapes(foreign_fault()) ? 0 : 4;
}

int fault_after_chaining(const words& arguments) {
  const auto bytes = mapped_and_cut(arguments.at(0));
  install(nullptr, host_chains);
  if (!reads_zero_and_fails(bytes)) return 1;
  return host_calls == 1 ? 0 : 2;
}

int fault_after_again(const words& arguments) {
  const auto first = mapped_and_cut(arguments.at(0));
  install(host_escapes, nullptr);
  if (!escapes(first.data() + 3 * page)) return 1;
  const auto second = mapped_and_cut(arguments.at(0));
  if (!reads_zero_and_fails(second) || !reads_zero_and_fails(first)) return 2;
  if (!escapes(foreign_fault())) return 3;
  // A handler that calls ours, with ours in front of it, must not cause an endless loop.
  install(nullptr, host_chains);
  const auto third = mapped_and_cut(arguments.at(0));
  if (!reads_zero_and_fails(third)) return 4;
  const auto calls = host_calls;
  if (sigsetjmp(host_escape, 1) == 0) {
    load(foreign_fault());
    return 5;
  }
  return host_calls == calls + 2 ? 0 : 6;  // the chaining handler, then the one that jumps out
}

void host_returns(int) {
  if (host_calls > 0) ::_exit(3);  // called again
  host_calls = host_calls + 1;
}

// A handler that is to be called once, and returns, is followed by the default action.
int fault_once(const words& arguments) {
  struct sigaction once {};
  once.sa_handler = host_returns;
  once.sa_flags = SA_RESETHAND;
  ::sigaction(SIGBUS, &once, nullptr);
  const auto bytes = mapped_and_cut(arguments.at(0));
  if (!reads_zero_and_fails(bytes) || host_calls != 0) return 1;
  load(foreign_fault());
  return 2;
}

int fault_many_handlers(const words& arguments) {
  for (int k = 0; k < 20; ++k) {
    install(host_escapes, nullptr);
    const auto bytes = mapped_and_cut(arguments.at(0));
    if (!reads_zero_and_fails(bytes) || host_calls != 0) return 1;
  }
  return escapes(foreign_fault()) ? 0 : 2;
}

// Sanitizers install their own handler; these two tests need a process without one.
int fault_foreign(const words& arguments) {
  ::signal(SIGBUS, SIG_DFL);
  const auto bytes = mapped_and_cut(arguments.at(0));
  if (!reads_zero_and_fails(bytes)) return 1;
  load(foreign_fault());
  return 2;
}

int fault_sent(const words& arguments) {
  ::signal(SIGBUS, SIG_DFL);
  const auto bytes = mapped_and_cut(arguments.at(0));
  if (!reads_zero_and_fails(bytes)) return 1;
  ::raise(SIGBUS);
  return 2;
}

// Uses nearly all mappings that a process may have, so that the guard cannot split one.
int fault_many_mappings(const words& arguments) {
  // A sanitizer may need some mappings for the first signal of a thread.
  if (!reads_zero_and_fails(mapped_and_cut(arguments.at(0)))) return 5;
  auto reading = mapped_and_cut(arguments.at(0));
  if (::truncate(arguments.at(0).c_str(), 64 * page) != 0) return 1;
  auto writing = shale::map_file(arguments.at(0), {.access = shale::access::read_write});
  if (::truncate(arguments.at(0).c_str(), page) != 0) return 2;
  // Neighbours with different protections are not merged.
  for (int i = 0;; ++i)
    if (::mmap(nullptr, page, i % 2 == 0 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
               0) == MAP_FAILED)
      break;
  if (!reads_zero_and_fails(reading)) return 3;
  *reinterpret_cast<volatile unsigned char*>(writing.data() + 7 * page) = 1;
  return writing.failed() ? 0 : 4;
}

int fault_closed_descriptors(const words& arguments) {
  if (::truncate(arguments.at(0).c_str(), 64 * page) != 0) return 1;
  auto bytes = shale::map_file(arguments.at(0), {.access = shale::access::read_write});
  for (int descriptor = 3; descriptor < 100; ++descriptor) ::close(descriptor);
  // The host opens files, which get the numbers of the guard's descriptors.
  const std::string other = arguments.at(0) + ".other";
  for (int i = 0; i < 20; ++i)
    if (::open(other.c_str(), O_RDWR | O_CREAT, 0600) < 0) return 2;
  if (::truncate(other.c_str(), 64 * page) != 0) return 3;
  if (::truncate(arguments.at(0).c_str(), page) != 0) return 4;
  for (std::size_t offset = 0; offset < 64 * page; offset += page)
    *reinterpret_cast<volatile unsigned char*>(bytes.data() + offset) = 1;
  if (!bytes.failed()) return 5;
  const int file = ::open(other.c_str(), O_RDONLY);
  for (unsigned char byte; ::read(file, &byte, 1) == 1;)
    if (byte != 0) return 6;
  return 0;
}

// ---- shared memory ------------------------------------------------------------------------------

// After each line of input it prints what it sees, until it is told to leave.
int converse(shale::storage bytes) {
  std::printf("ready %zu\n", bytes.size_bytes());
  std::fflush(stdout);
  char line[100];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    std::size_t offset = 0;
    unsigned value = 0;
    if (std::sscanf(line, "put %zu %u", &offset, &value) == 2) {
      bytes.data()[offset] = static_cast<std::byte>(value);
      std::printf("done\n");
    } else if (std::sscanf(line, "get %zu", &offset) == 1) {
      std::printf("%u\n", std::to_integer<unsigned>(bytes.data()[offset]));
    } else if (std::sscanf(line, "grow %zu", &offset) == 1) {
      bytes.grow(offset);
      std::printf("%zu\n", bytes.size_bytes());
    } else {
      return 0;
    }
    std::fflush(stdout);
  }
  return 0;
}

int shared_create(const words& arguments) {
  const auto lifetime = arguments.at(2) == "creator"   ? shale::shared_lifetime::creator
                        : arguments.at(2) == "counted" ? shale::shared_lifetime::counted
                                                       : shale::shared_lifetime::manual;
  return converse(shale::create_shared(
      arguments.at(0), static_cast<std::size_t>(std::atoll(arguments.at(1).c_str())),
      {.lifetime = lifetime, .reserve_bytes = 1 << 20}));
}

int shared_open(const words& arguments) {
  const bool writes = arguments.size() > 1 && arguments[1] == "write";
  return converse(shale::open_shared(
      arguments.at(0), {.access = writes ? shale::access::read_write : shale::access::read_only,
                        .reserve_bytes = 1 << 20}));
}

// Creates and releases a segment of one name again and again, as fast as possible.
int shared_churn(const words& arguments) {
  int created = 0;
  for (int i = 0; i < std::atoi(arguments.at(1).c_str()); ++i) {
    try {
      auto mine = shale::create_shared(arguments.at(0), 4096,
                                       {.lifetime = shale::shared_lifetime::counted});
      ++created;
      mine.data()[0] = std::byte{1};
    } catch (const shale::error& failure) {
      if (failure.code() != shale::errc::already_exists) throw;
      try {
        auto theirs = shale::open_shared(arguments.at(0));
        // The segment is complete from the first moment on.
        if (theirs.size_bytes() != 4096) return 1;
        if (!std::all_of(theirs.data() + 2, theirs.data() + 4096,
                         [](std::byte value) { return value == std::byte{0}; }))
          return 2;
        theirs.data()[1] = std::byte{1};
      } catch (const shale::error& second) {
        if (second.code() != shale::errc::not_found) throw;
      }
    }
  }
  std::printf("%d\n", created);
  return 0;
}

// Makes, opens and releases segments with this prefix, printing a line for each, until it is
// killed.
int shared_life(const words& arguments) {
  std::mt19937 random(static_cast<unsigned>(std::atoi(arguments.at(1).c_str())));
  std::vector<shale::storage> held(4);
  for (;;) {
    shale::storage& mine = held[random() % held.size()];
    mine = {};
    const std::string name = arguments.at(0) + "." + std::to_string(random() % 3);
    try {
      if (random() % 2 == 0) {
        mine =
            shale::create_shared(name, 1 + random() % 100'000,
                                 {.lifetime = random() % 2 == 0 ? shale::shared_lifetime::creator
                                                                : shale::shared_lifetime::counted});
        mine.data()[0] = std::byte{1};
      } else {
        mine = shale::open_shared(name);
        mine.data()[0] = std::byte{2};
      }
    } catch (const shale::error& failure) {
      if (failure.code() != shale::errc::already_exists && failure.code() != shale::errc::not_found)
        throw;
    }
    std::printf("alive\n");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const words all(arguments + 1, arguments + count);
  const std::map<std::string, int (*)(const words&)> verbs{
      {"truncate", truncate_file},
      {"remove", remove_file},
      {"replace", replace_file},
      {"disturb", disturb},
      {"fault-before", fault_before},
      {"fault-after-chaining", fault_after_chaining},
      {"fault-after-again", fault_after_again},
      {"fault-foreign", fault_foreign},
      {"fault-sent", fault_sent},
      {"fault-once", fault_once},
      {"fault-many-handlers", fault_many_handlers},
      {"fault-many-mappings", fault_many_mappings},
      {"fault-closed-descriptors", fault_closed_descriptors},
      {"shared-create", shared_create},
      {"shared-open", shared_open},
      {"shared-churn", shared_churn},
      {"shared-life", shared_life},
  };
  try {
    return verbs.at(all.at(0))(words(all.begin() + 1, all.end()));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "storage_peer: %s\n", failure.what());
    return 98;
  }
}
