#include "shale/container.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "array/elements/verification.hpp"
#include "array/handles/container_implementation.hpp"
#include "array/specification/level_records.hpp"
#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "core/held.hpp"
#include "format/container/space_use.hpp"
#include "format/transaction/writer_lock_wait.hpp"
#include "parallel/executor/executor_state.hpp"
#include "shale/error.hpp"

namespace shale {

namespace {

using arrays::reader_file;

constexpr int opening_rounds_max = 100;

// Limits a time-out to 100 years: the clock's numbers overflow after 292 years.
std::chrono::milliseconds bounded(timeout limit) {
  constexpr std::int64_t years_100_ms = std::int64_t{100} * 365 * 24 * 3600 * 1000;
  return std::chrono::milliseconds(std::clamp<std::int64_t>(limit.ms, 0, years_100_ms));
}

void require_mode(open_mode mode) {
  detail::require_enumerator(mode, open_mode::salvage, "open_mode");
}

bool for_writing(open_mode mode) noexcept {
  return mode == open_mode::write || mode == open_mode::write_exclusively;
}

bool sole_host(open_mode mode) noexcept { return mode == open_mode::write_exclusively; }

format::bound_path bind(const char* doing, const std::string& path) {
  return detail::reporting(doing, [&] { return format::bound_path(format::posix_files(), path); });
}

[[noreturn]] void throw_closed(const std::string& path) {
  throw error(errc::invalid_argument, "the container is closed", {"file " + path});
}

}  // namespace

// Opens the file object for readers and, if the container is for writing, the one for the writer.
// Both use the same `place`, because the working directory may change between the two calls.
std::shared_ptr<container::implementation> container::implementation::open(
    const format::bound_path& place, open_mode mode) {
  auto made = std::make_shared<implementation>();
  made->path = place.shown();
  for (int round = 0;; ++round) {
    if (for_writing(mode))
      made->writer = std::make_shared<writer_file>(format::container_file::open(
          place, format::open_access::write, {.sole_host = sole_host(mode)}));
    made->readers = std::make_shared<reader_file>(format::container_file::open(
        place, format::open_access::read, {.salvage = mode == open_mode::salvage}));
    made->uuid = to_string(made->readers->id());
    // Another container may have taken the name between the two calls.
    if (!made->writer || made->writer->file.id() == made->readers->id()) return made;
    if (round == opening_rounds_max) throw format::name_changes_too_often(made->path);
  }
}

std::shared_ptr<reader_file> container::implementation::reading() const {
  const std::lock_guard lock(mutex);
  if (!readers) throw_closed(path);
  return readers;
}

namespace {

using steady = std::chrono::steady_clock;

// Calls `try_it` until it returns true. The pauses between the calls grow, as in the format floor
// when it waits for other processes. The first pauses are shorter, because a thread that commits
// without waiting ends soon. Returns false if the deadline has passed.
template <class Try>
bool retry_until(steady::time_point deadline, Try&& try_it) {
  std::chrono::microseconds step(50);
  while (!try_it()) {
    if (steady::now() >= deadline) return false;
    std::this_thread::sleep_for(step);
    step = std::min<std::chrono::microseconds>(2 * step, format::lock_step_max);
  }
  return true;
}

}  // namespace

// Begins on the newest generation of the file that has the name.
std::shared_ptr<arrays::shared_transaction> container::implementation::begin_anew(
    writer_file& to, const std::shared_ptr<arrays::commit_pipeline>& pipeline,
    steady::time_point deadline) const {
  using std::chrono::milliseconds;
  const auto reader = reading();
  for (int round = 0;; ++round) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady::now());
    auto inner = to.file.begin(std::max(left, milliseconds(0)));
    try {
      auto base = inner.pin_base();
      return std::make_shared<arrays::shared_transaction>(reader, pipeline, std::move(inner),
                                                          std::move(base));
    } catch (const error&) {
      // Another copy of the container may have taken the name since the writer lock was taken.
      if (!inner.active() || inner.has_its_name() || round == opening_rounds_max) throw;
    }
  }
}

std::shared_ptr<arrays::shared_transaction> container::implementation::begin(
    std::chrono::milliseconds timeout) {
  const auto reader = reading();
  std::shared_ptr<writer_file> to;
  std::shared_ptr<arrays::commit_pipeline> pipeline;
  {
    const std::lock_guard lock(mutex);
    to = writer;
    if (to && !to->pipeline->is_of_this_process())
      to->pipeline = arrays::commit_pipeline::of_child(*to->pipeline);
    if (to) pipeline = to->pipeline;
  }
  if (!to)
    throw error(errc::access_denied, "the container was opened for reading",
                {"file " + path, "open it with open_mode::write"});
  const steady::time_point deadline = steady::now() + timeout;
  const auto busy = [&](const char* reason) {
    return error(errc::busy, reason,
                 {"file " + path, fmt::format("waited {} ms for it", timeout.count())});
  };
  std::unique_lock lock(to->turn, std::defer_lock);
  if (!retry_until(deadline, [&] { return lock.try_lock(); }))
    throw busy("another thread of this process begins a transaction");
  arrays::commit_pipeline::permission permission;
  if (!retry_until(deadline, [&] { return (permission = pipeline->reserve()).granted; }))
    throw busy("another transaction of this process holds the file");
  try {
    if (permission.on_written == nullptr) return begin_anew(*to, pipeline, deadline);
    auto inner = format::begin_on_written(permission.on_written);
    auto base = inner.pin_base();
    return std::make_shared<arrays::shared_transaction>(reader, pipeline, std::move(inner),
                                                        std::move(base));
  } catch (...) {
    pipeline->ended();
    throw;
  }
}

container::container(std::shared_ptr<implementation> made) noexcept
    : implementation_(std::move(made)) {}

container container::create(const std::string& path, open_mode mode, unsigned permissions) {
  require_mode(mode);
  const auto place = bind("create container", path);
  return detail::allocating([&] {
    if (!for_writing(mode))
      throw error(errc::invalid_argument, "a container is not created for reading",
                  {"file " + path});
    constexpr unsigned owner_bits = 0600;
    if ((permissions & ~0777u) != 0 || (permissions & owner_bits) != owner_bits)
      throw error(
          errc::invalid_argument, "not the permissions of a container",
          {"file " + path, fmt::format("got {:04o}, wanted 0600 to 0777, with 0600", permissions)});
    std::shared_ptr<implementation> opened;
    format::container_file::create(place, {.mode = permissions, .sole_host = sole_host(mode)},
                                   [&] { opened = implementation::open(place, mode); });
    return container(std::move(opened));
  });
}

container container::open(const std::string& path, open_mode mode) {
  require_mode(mode);
  const auto place = bind("open container", path);
  return detail::allocating([&] { return container(implementation::open(place, mode)); });
}

std::optional<container> container::open_if_exists(const std::string& path, open_mode mode) {
  try {
    return open(path, mode);
  } catch (const error& failure) {
    if (failure.code() == errc::not_found) return std::nullopt;
    throw;
  }
}

container container::open_or_create(const std::string& path, open_mode mode) {
  // Another process may create or remove the file between the two calls. It hardly happens twice.
  for (int attempt = 0;; ++attempt) {
    if (auto found = open_if_exists(path, mode)) return *std::move(found);
    try {
      return create(path, mode);
    } catch (const error& failure) {
      if (failure.code() != errc::already_exists || attempt == 8) throw;
    }
  }
}

container::implementation& container::state() const {
  return detail::held(implementation_, "container");
}

const std::string& container::path() const { return state().path; }

std::string container::uuid() const {
  const auto& self = state();
  return detail::allocating([&] { return self.uuid; });
}

snapshot container::latest() const {
  const auto& self = state();
  return detail::allocating([&] {
    const auto readers = self.reading();
    snapshot made;
    made.implementation_ = std::make_shared<snapshot::implementation>(
        snapshot::implementation{self.path, readers->latest(), readers->tile_owner()});
    return made;
  });
}

transaction container::begin(timeout limit) {
  auto& self = state();
  return detail::allocating([&] {
    return transaction(std::make_unique<transaction::implementation>(self.begin(bounded(limit))));
  });
}

std::optional<std::uint64_t> container::wait_newer(std::uint64_t seen, timeout limit) const {
  const auto& self = state();
  return detail::allocating([&] { return self.reading()->wait_newer(seen, bounded(limit)); });
}

verification container::verify() const {
  const auto& self = state();
  const auto doing = [&] { return "verify " + self.path; };
  return detail::reporting(doing, [&] {
    verification found = arrays::verify(self.reading()->latest(), executor::current());
    for (unchecked_array& array : found.unchecked) array.problem.add_context(doing());
    return found;
  });
}

space_report container::space() const {
  const auto& self = state();
  const auto doing = [&] { return "measure " + self.path; };
  return detail::reporting(doing, [&] {
    const auto readers = self.reading();
    const auto view = readers->latest();
    space_report report = format::space_use(view, readers->pinned());
    std::erase_if(report.arrays,
                  [&](const array_space& array) { return arrays::holds_level(view, array.name); });
    for (array_space& array : report.arrays)
      if (array.problem) array.problem->add_context(doing());
    return report;
  });
}

void container::close() {
  if (!implementation_) return;
  const std::lock_guard lock(implementation_->mutex);
  implementation_->readers.reset();
  implementation_->writer.reset();
}

}  // namespace shale
