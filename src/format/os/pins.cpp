#include "format/os/pins.hpp"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "format/os/file_io.hpp"

namespace shale::format {

// ---- taking and letting go --------------------------------------------------------------------

// One open file description, with the pins of this process that it holds.
struct pin::description {
  std::unique_ptr<open_file> file;            // null once no pin is left
  std::map<std::uint64_t, std::size_t> held;  // generation -> pins
  std::size_t stale_locks = 0;                // locked generations whose last pin is gone
  bool has_stale_base = false;                // one of them was pinned as an unpublished base
  pid_t process = ::getpid();
};

pin::~pin() {
  if (in_) set_->release(*this);
}

// Returns a fresh description while more are allowed, or else the one with the fewest generations.
// Returns null if the name leads to another file.
std::shared_ptr<pin::description> pin_set::description_for(const bound_path& place,
                                                           const file_identity& file) {
  // Descriptions that a forked child inherits belong to its parent, and so would locks added to
  // them.
  std::erase_if(descriptions_, [](const auto& known) {
    const auto description = known.lock();
    return !description || description->file == nullptr || description->process != ::getpid();
  });
  if (descriptions_.size() < descriptions_max) {
    std::unique_ptr<open_file> opened;
    const os_result result =
        uninterrupted([&] { return place.files().open(place.name(), open_access::read, opened); });
    if (result >= 0) {
      if (identity_of(*opened, place.shown()) != file) return nullptr;
      auto fresh = std::make_shared<pin::description>();
      fresh->file = std::move(opened);
      descriptions_.push_back(fresh);
      return fresh;
    }
    const bool none_left = result == -EMFILE || result == -ENFILE;
    if (!none_left || descriptions_.empty())
      throw opening_failure("cannot open file", result, place.shown());
  }
  std::shared_ptr<pin::description> best;
  for (const auto& known : descriptions_)
    if (auto description = known.lock();
        description && (!best || description->held.size() < best->held.size()))
      best = std::move(description);
  return best;
}

std::unique_ptr<pin> pin_set::take(const bound_path& place, const file_identity& file,
                                   std::uint64_t generation, pin_target target) {
  std::unique_ptr<pin> made(new pin(shared_from_this(), generation, target));
  const std::lock_guard lock(mutex_);
  const auto in = description_for(place, file);
  if (!in) return nullptr;
  ++in->held[generation];
  const os_result result =
      uninterrupted([&] { return in->file->try_lock(pin_locks + generation, lock_mode::shared); });
  if (result >= 0) {
    made->in_ = in;
    return made;
  }
  if (--in->held[generation] == 0) in->held.erase(generation);
  // Containers lock these bytes only shared, so an exclusive lock belongs to another program.
  const lock_range byte{pin_locks + generation, pin_locks + generation};
  found_lock found;
  const bool known = result == -EAGAIN &&
                     uninterrupted([&] { return in->file->find_lock(byte, found); }) > 0 &&
                     found.mode == lock_mode::exclusive;
  const auto file_of_description = in->held.empty() ? std::move(in->file) : nullptr;
  if (known)
    throw foreign_lock(file_of_description ? *file_of_description : *in->file, found,
                       place.shown());
  if (result == -EAGAIN) return nullptr;  // the other lock was released in between
  throw failure("cannot pin a generation", result, place.shown());
}

// pins.1 and pins.3: the locks that are still held move to a fresh description, and the old one is
// closed.
void pin_set::release(const pin& gone) noexcept {
  pin::description& opened = *gone.in_;
  // A forked child only closes its copy, together with its last inherited pin. It must not lock the
  // mutex, because another thread of its parent may have held it at the fork.
  if (opened.process != ::getpid()) return;
  const std::lock_guard lock(mutex_);
  const auto found = opened.held.find(gone.generation_);
  if (--found->second > 0) return;
  opened.held.erase(found);
  ++opened.stale_locks;
  if (gone.target_ == pin_target::unpublished_base) opened.has_stale_base = true;
  if (opened.held.empty()) return opened.file.reset();
  if (!opened.has_stale_base && opened.stale_locks * exact_up_to < opened.held.size()) return;
  std::unique_ptr<open_file> fresh;
  if (uninterrupted([&] { return opened.file->open_again(fresh); }) < 0)
    return;  // the next release tries again
  for (const auto& [held_generation, pins] : opened.held) {
    const std::uint64_t byte = pin_locks + held_generation;
    if (uninterrupted([&] { return fresh->try_lock(byte, lock_mode::shared); }) < 0) return;
  }
  opened.file = std::move(fresh);
  opened.stale_locks = 0;
  opened.has_stale_base = false;
}

// ---- scanning ---------------------------------------------------------------------------------

pin_scan scan_pins(open_file& asking, const std::string& path) {
  pin_scan seen;
  std::vector<lock_range> unknown{{pin_locks, row_locks - 1}};
  while (!unknown.empty()) {
    const lock_range within = unknown.back();
    unknown.pop_back();
    found_lock found;
    const os_result result = uninterrupted([&] { return asking.find_lock(within, found); });
    if (result < 0) throw failure("cannot look for the locks of readers", result, path);
    if (result == 0) continue;
    const lock_range here{std::max(found.range.first, within.first),
                          std::min(found.range.last, within.last)};
    if (is_pin(found)) seen.pins.push_back({here.first - pin_locks, here.last - pin_locks});
    else seen.foreign = found;
    if (here.first > within.first) unknown.push_back({within.first, here.first - 1});
    if (here.last < within.last) unknown.push_back({here.last + 1, within.last});
  }
  std::sort(seen.pins.begin(), seen.pins.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return seen;
}

}  // namespace shale::format
