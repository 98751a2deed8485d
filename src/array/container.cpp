#include "shale/container.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "array/container_state.hpp"
#include "array/verification.hpp"
#include "parallel/executor_state.hpp"
#include "shale/error.hpp"

namespace shale {

namespace {

using arrays::reader_file;

constexpr std::chrono::milliseconds lock_step_max(16);

// Clocks overflow in 292 years.
std::chrono::milliseconds bounded(timeout patience) {
  constexpr std::int64_t years_100_ms = std::int64_t{100} * 365 * 24 * 3600 * 1000;
  return std::chrono::milliseconds(std::clamp<std::int64_t>(patience.ms, 0, years_100_ms));
}

format::file open_file(const std::string& path, format::open_access access) {
  return format::file::open(format::posix_files(), path, access);
}

[[noreturn]] void throw_closed(const std::string& path) {
  throw error(errc::invalid_argument, "the container is closed", {"file " + path});
}

}  // namespace

std::shared_ptr<container::implementation> container::implementation::open(const std::string& path,
                                                                           open_mode mode) {
  auto made = std::make_shared<implementation>();
  made->path = path;
  if (mode == open_mode::write)
    made->writer = std::make_shared<writer_file>(open_file(path, format::open_access::write));
  made->readers = std::make_shared<reader_file>(open_file(path, format::open_access::read));
  // The name may have been given to another container between the two.
  if (made->writer && made->writer->file.id() != made->readers->id())
    throw error(errc::io, "the file was replaced by another container while it was opened",
                {"file " + path, "open it again"});
  made->uuid = to_string(made->readers->id());
  return made;
}

std::shared_ptr<reader_file> container::implementation::reading() const {
  const std::lock_guard lock(mutex);
  if (!readers) throw_closed(path);
  return readers;
}

container::container(std::shared_ptr<implementation> made) noexcept
    : implementation_(std::move(made)) {}

container container::create(const std::string& path) {
  format::file::create(format::posix_files(), path);
  return open(path, open_mode::write);
}

container container::open(const std::string& path, open_mode mode) {
  return container(implementation::open(path, mode));
}

std::optional<container> container::open_if_exists(const std::string& path, open_mode mode) {
  try {
    return open(path, mode);
  } catch (const error& failure) {
    if (failure.code() == errc::not_found) return std::nullopt;
    throw;
  }
}

container container::open_or_create(const std::string& path) {
  // Another process may create or remove the file between two attempts, hardly more than once.
  for (int attempt = 0;; ++attempt) {
    if (auto found = open_if_exists(path, open_mode::write)) return *std::move(found);
    try {
      return create(path);
    } catch (const error& failure) {
      if (failure.code() != errc::already_exists || attempt == 8) throw;
    }
  }
}

const std::string& container::path() const noexcept { return implementation_->path; }

std::string container::uuid() const { return implementation_->uuid; }

snapshot container::latest() const {
  const auto readers = implementation_->reading();
  snapshot made;
  made.implementation_ = std::make_shared<snapshot::implementation>(
      snapshot::implementation{implementation_->path, readers->latest()});
  return made;
}

transaction container::begin(timeout patience) {
  using clock = std::chrono::steady_clock;
  using std::chrono::milliseconds;
  const auto readers = implementation_->reading();
  std::shared_ptr<implementation::writer_file> writer;
  {
    const std::lock_guard lock(implementation_->mutex);
    writer = implementation_->writer;
  }
  if (!writer)
    throw error(errc::access_denied, "the container was opened for reading",
                {"file " + path(), "open it with open_mode::write"});
  const clock::time_point deadline = clock::now() + bounded(patience);
  // In steps, as the format waits for other processes.
  std::unique_lock lock(writer->mutex, std::try_to_lock);
  for (milliseconds step(1); !lock.owns_lock() && !lock.try_lock();) {
    if (clock::now() >= deadline)
      throw error(errc::busy, "another thread is waiting to write", {"file " + path()});
    std::this_thread::sleep_for(step);
    step = std::min(2 * step, lock_step_max);
  }
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - clock::now());
  auto inner = writer->file.begin(std::max(left, milliseconds(0)));
  // The writer lock is held, so the newest generation is the one that is being changed.
  auto state =
      std::make_shared<arrays::transaction_state>(readers, std::move(inner), readers->latest());
  return transaction(std::make_unique<transaction::implementation>(std::move(state)));
}

std::optional<std::uint64_t> container::wait_newer(std::uint64_t seen, timeout patience) const {
  return implementation_->reading()->wait_newer(seen, bounded(patience));
}

verification container::verify(executor* on) const {
  return with_context(
      [&] { return "verify " + path(); },
      [&] { return arrays::verify(implementation_->reading()->latest(), parallel::choose(on)); });
}

void container::close() {
  const std::lock_guard lock(implementation_->mutex);
  implementation_->readers.reset();
  implementation_->writer.reset();
}

}  // namespace shale
