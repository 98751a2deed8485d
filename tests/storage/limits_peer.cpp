// Storages in a process that has reached a limit: `limits_peer VERB DIRECTORY`. Every call either
// works or reports what is missing, and leaves nothing behind.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "shale/mapped_file.hpp"
#include "shale/shared_memory.hpp"
#include "storage/peer_support.hpp"

namespace {

using namespace shale;
using namespace shale::test;

constexpr std::size_t mib = std::size_t{1} << 20;

// Sets a limit of this process while this object lives.
class limited {
 public:
  limited(int resource, std::size_t value) : which_(resource) {
    ::getrlimit(static_cast<__rlimit_resource_t>(which_), &before_);
    rlimit now = before_;
    now.rlim_cur = value;
    require(::setrlimit(static_cast<__rlimit_resource_t>(which_), &now) == 0, "a limit can be set");
  }
  ~limited() { ::setrlimit(static_cast<__rlimit_resource_t>(which_), &before_); }
  limited(const limited&) = delete;
  limited& operator=(const limited&) = delete;

 private:
  const int which_;
  rlimit before_{};
};

// Names of files and segments to make and to open, and one storage of each kind that is in use all
// the time.
struct workplace {
  explicit workplace(const std::string& folder)
      : directory(folder),
        elsewhere(directory + "/elsewhere"),
        kept(create_file(path, mib, {.existing = existing_file::keep, .reserve_bytes = 64 * mib})),
        segment(create_shared(name, mib, {.reserve_bytes = 64 * mib})) {
    fill(kept);
    fill(segment);
  }

  void require_nothing_new() const {
    require(!exists(fresh), "no new file is left");
    require_equal(list_shared(name).size(), 1u, "segments");
    for (const auto& file : {std::string("data"), std::string("elsewhere")})
      require(exists(directory + "/" + file), file + " is there");
    require_equal(size_of(path), kept.size_bytes(), "the file's size");
    require_equal(filled_bytes(kept.slice(0, mib)), mib, "bytes of the file");
    require_equal(filled_bytes(segment.slice(0, mib)), mib, "bytes of the segment");
    kept.check();
    segment.check();
    elsewhere.require_sound();
  }

  const std::string directory;
  const std::string path = directory + "/data";
  const std::string fresh = directory + "/fresh";
  const std::string name = "limits-" + std::to_string(::getpid());
  const bystander elsewhere;
  storage kept;
  storage segment;
};

// ---- address space ------------------------------------------------------------------------------

void address_space(const words& arguments) {
  workplace in(arguments.at(0));
  require_no_leak([&] {
    {
      const limited limit(RLIMIT_AS, address_space_bytes() + 64 * mib);
      const std::size_t much = 512 * mib;
      require_failure([&] { map_file(in.path, {.reserve_bytes = much}); }, errc::out_of_memory,
                      in.path, "a large reservation");
      require_failure([&] { create_file(in.fresh, 1, {.reserve_bytes = much}); },
                      errc::out_of_memory, in.fresh, "creation with a large reservation");
      require_failure(
          [&] {
            create_file(in.path, 1, {.existing = existing_file::replace, .reserve_bytes = much});
          },
          errc::out_of_memory, in.path, "replacement with a large reservation");
      require_failure([&] { create_shared(in.name + ".new", 1, {.reserve_bytes = much}); },
                      errc::out_of_memory, in.name + ".new", "a segment with a large reservation");
      require_failure([&] { open_shared(in.name, {.reserve_bytes = much}); }, errc::out_of_memory,
                      in.name, "attaching with a large reservation");
      require(code_of([&] { storage::allocate(much); }) == errc::out_of_memory, "memory is short");
      in.require_nothing_new();
      // A storage that has reserved its addresses needs no more.
      in.kept.grow(in.kept.size_bytes() + mib);
      require_equal(size_of(in.path), in.kept.size_bytes(), "the file's size after growth");
    }
    require_equal(filled_bytes(map_file(in.path, {.bytes = mib, .reserve_bytes = 512 * mib})), mib,
                  "bytes without the limit");
  });
  in.require_nothing_new();
}

// ---- mappings -----------------------------------------------------------------------------------

// Uses up all mappings of this process, and gives back a few at a time.
class mapping_hoard {
 public:
  mapping_hoard() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    throw unavailable("a sanitizer ends the process that has no mappings left for it");
#endif
    std::size_t limit = 0;
    std::ifstream("/proc/sys/vm/max_map_count") >> limit;
    if (limit == 0 || limit > 1'000'000) throw unavailable("no limit of mappings to reach");
    bytes_ = 2 * (limit + 2) * page;
    void* const found =
        ::mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) throw unavailable("no address space");
    first_ = static_cast<std::byte*>(found);
    // Neighbours with different protections are not merged into one mapping.
    while (::mprotect(first_ + 2 * taken_ * page, page, PROT_READ) == 0) ++taken_;
    require(errno == ENOMEM, "the limit is reached");
  }
  ~mapping_hoard() { ::munmap(first_, bytes_); }
  mapping_hoard(const mapping_hoard&) = delete;
  mapping_hoard& operator=(const mapping_hoard&) = delete;

  // Gives two mappings back.
  void give() {
    --taken_;
    require(::mprotect(first_ + 2 * taken_ * page, page, PROT_NONE) == 0, "mappings can be given");
  }

 private:
  std::byte* first_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t taken_ = 0;
};

// Whether the call works; a failure must be due to the limit of mappings.
bool works(const std::function<void()>& call, const std::string& path,
           const std::string& operation) {
  const std::string text = text_of(call);
  if (text.empty()) return true;
  require(text.find("[out_of_memory]") != std::string::npos &&
              text.find(path) != std::string::npos &&
              text.find("vm.max_map_count") != std::string::npos,
          operation + " says what is missing; got " + text);
  return false;
}

void mappings(const words& arguments) {
  workplace in(arguments.at(0));
  require_no_leak([&] {
    storage growing = map_file(in.path, {.bytes = page, .reserve_bytes = 2 * mib});
    mapping_hoard hoard;
    std::size_t working = 0;
    std::size_t failing = 0;
    for (int left = 0; left < 20; left += 2) {
      const auto held = open_descriptors();
      const auto guarded = detail::guarded_ranges();
      for (const bool so : {
               works([&] { map_file(in.path); }, in.path, "mapping"),
               works([&] { map_file(in.path, {.offset = page, .access = access::copy_on_write}); },
                     in.path, "a private mapping"),
               works([&] { map_file(in.path, {.bytes = 3 * page, .reserve_bytes = 2 * mib}); },
                     in.path, "mapping with a reservation"),
               works(
                   [&] {
                     create_file(in.fresh, mib, {.reserve_bytes = 2 * mib});
                     ::unlink(in.fresh.c_str());
                   },
                   in.fresh, "creation"),
               works([&] { create_shared(in.name + ".new", mib); }, in.name + ".new", "a segment"),
               works([&] { open_shared(in.name); }, in.name, "attaching"),
           })
        ++(so ? working : failing);
      require_equal(detail::guarded_ranges(), guarded, "guarded ranges");
      require_equal(open_descriptors(), held, "descriptors");
      in.require_nothing_new();
      hoard.give();
    }
    require(working > 0 && failing > 0, "the limit was met");
    growing.grow(mib);
    require_equal(filled_bytes(growing), mib, "bytes after growth");
  });
  in.require_nothing_new();
}

// ---- descriptors --------------------------------------------------------------------------------

// Whether the call works; a failure must be due to the limit of descriptors.
bool works_with_descriptors(const std::function<void()>& call) {
  const std::string text = text_of(call);
  if (text.empty()) return true;
  require(text.find("Too many open files") != std::string::npos,
          "it says what is missing; got " + text);
  return false;
}

void descriptors(const words& arguments) {
  workplace in(arguments.at(0));
  const int open_file = ::open(in.path.c_str(), O_RDONLY | O_CLOEXEC);
  require_no_leak([&] {
    const int next = ::dup(open_file);
    ::close(next);
    std::size_t working = 0;
    std::size_t failing = 0;
    for (std::size_t left = 0; left < 6; ++left) {
      const auto held = open_descriptors();
      {
        const limited limit(RLIMIT_NOFILE, static_cast<std::size_t>(next) + left);
        for (const bool so : {
                 works_with_descriptors([&] { map_file(in.path); }),
                 works_with_descriptors([&] { map_file(open_file); }),
                 works_with_descriptors([&] {
                   create_file(in.fresh, mib);
                   ::unlink(in.fresh.c_str());
                 }),
                 works_with_descriptors([&] { create_shared(in.name + ".new", mib); }),
                 works_with_descriptors([&] { open_shared(in.name); }),
                 works_with_descriptors(
                     [&] { require_equal(list_shared(in.name).size(), 1u, "segments"); }),
                 works_with_descriptors(
                     [&] { require_equal(reclaim_shared(in.name), 0u, "dead segments"); }),
             })
          ++(so ? working : failing);
      }
      require_equal(open_descriptors(), held, "descriptors");
      in.require_nothing_new();
    }
    require(working > 0 && failing > 0, "the limit was met");
  });
  ::close(open_file);
}

}  // namespace

int main(int count, char** arguments) {
  return run_verb(
      {{"address-space", address_space}, {"mappings", mappings}, {"descriptors", descriptors}},
      count, arguments);
}
