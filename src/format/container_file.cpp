#include "format/container_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "format/bytes.hpp"
#include "format/container_state.hpp"
#include "format/file_io.hpp"
#include "format/header.hpp"
#include "shale/error.hpp"

namespace shale::format {
namespace {

// How often a reader starts over because a writer was faster, before it takes the file for broken.
// Each round needs a whole commit in between.
constexpr int reader_rounds_max = 1000;

// Between attempts to take a lock that is held.
constexpr patience lock_step_max{16};

// Between looks at the superblocks while waiting for a commit: waking is only a hint (a writer may
// die between making a generation durable and waking).
constexpr patience look_interval{200};

[[noreturn]] void throw_no_superblock(const std::string& path) {
  throw error(
      errc::corrupt, "no superblock is valid",
      {"file " + path,
       fmt::format("looked at bytes {} and {}", superblock_offsets[0], superblock_offsets[1]),
       "both are written again by every commit: the file was damaged, or is no container"});
}

// A reader may meet a superblock half-written: a slot that is not valid is read again before that
// is believed.
slots read_settled_slots(open_file& file, const uuid& id, const std::string& path) {
  slots both = read_slots(file, id, path);
  for (int round = 0; !newest_slot(both) && round < reader_rounds_max; ++round) {
    const slots again = read_slots(file, id, path);
    const bool same = again[0].sector == both[0].sector && again[1].sector == both[1].sector;
    both = again;
    if (same) break;
  }
  if (!newest_slot(both)) throw_no_superblock(path);
  return both;
}

}  // namespace

struct file::state {
  state(file_system& on, std::string name, open_access how)
      : files(on), path(std::move(name)), access(how) {}

  std::shared_ptr<container_handle> current() const {
    const std::lock_guard lock(mutex);
    return handle;
  }

  std::shared_ptr<container_handle> follow_name();
  transaction_base take_writer_lock(patience wait);
  std::optional<generation_view> try_latest();

  file_system& files;
  std::string path;
  open_access access;
  uuid id;
  std::shared_ptr<std::atomic<bool>> poisoned = std::make_shared<std::atomic<bool>>(false);

  mutable std::mutex mutex;  // of `handle`: wait_newer runs beside the other calls
  std::shared_ptr<container_handle> handle;

  // Views of this object that may still be alive: each pinned generation has one description.
  std::vector<std::weak_ptr<const generation_view::state>> views;
};

// The handle of the file that the name leads to now: another one once a compacted file has taken
// the name.
std::shared_ptr<container_handle> file::state::follow_name() {
  auto have = current();
  if (have && identity_of(files, path) == have->identity) return have;
  auto opened = open_handle(files, path, access);
  if (have && opened->id != have->id)
    throw error(
        errc::io, "another container has taken the name",
        {"file " + path, "opened as " + to_string(have->id) + ", now " + to_string(opened->id),
         "open it anew"});
  const auto second = open_existing(files, path, open_access::read);
  probe_locks(*opened->data, *second, path);
  id = opened->id;
  const std::lock_guard lock(mutex);
  handle = opened;
  return opened;
}

// One round of a reader (commit.7); nothing: a writer was faster.
std::optional<generation_view> file::state::try_latest() {
  const auto in = follow_name();
  const slots both = read_settled_slots(*in->data, id, path);
  const std::uint32_t which = *newest_slot(both);
  const superblock& newest = *both[which].fields;
  require_supported(newest, open_access::read, path);

  std::erase_if(views, [](const auto& view) { return view.expired(); });
  for (const auto& each : views)
    if (const auto view = each.lock(); view && view->handle == in && view->fields == newest)
      return generation_view(view);
  if (newest.generation >= generations_end)
    throw error(errc::corrupt, "a superblock is not possible",
                {"file " + path, fmt::format("generation {}", newest.generation)});

  // The pin's own description must be of the file that was read.
  auto description = open_existing(files, path, open_access::read);
  if (identity_of(*description, path) != in->identity) return std::nullopt;
  std::unique_ptr<pin> hold;
  try {
    hold = std::make_unique<pin>(std::move(description), newest.generation, path);
  } catch (const error& failed) {
    if (failed.os_errno() != EAGAIN) throw;
    files.pause(patience{1});  // a writer is giving back the file's tail
    return std::nullopt;
  }
  if (identity_of(files, path) != in->identity) return std::nullopt;
  if (!unchanged(*in->data, which, both[which], path)) return std::nullopt;
  const auto made = std::make_shared<const generation_view::state>(in, std::move(hold), newest);
  views.push_back(made);
  return generation_view(made);
}

// commit.1: the lock, on a description of its own, and the handle of the same file. A writer
// that has to wait holds the queue byte meanwhile, and nobody goes past it: without that, a process
// that begins again as soon as it has committed would starve all others.
transaction_base file::state::take_writer_lock(patience wait) {
  const auto try_exclusive = [&](open_file& description, std::uint64_t byte) {
    const os_result result =
        uninterrupted([&] { return description.try_lock(byte, lock_mode::exclusive); });
    if (result < 0 && result != -EAGAIN) throw failure("take the writer lock", result, path);
    return result >= 0;
  };
  patience waited{0};
  patience step{1};
  for (;;) {
    auto lock = open_unshared(files, path);
    std::unique_ptr<open_file> in_queue;
    for (;;) {
      lock_range ignored;
      const bool first =
          in_queue != nullptr || uninterrupted([&] {
                                   return lock->find_lock({queue_lock, queue_lock}, ignored);
                                 }) == 0;
      if (first && try_exclusive(*lock, writer_lock)) break;
      if (in_queue == nullptr) {
        auto description = open_unshared(files, path);
        if (try_exclusive(*description, queue_lock)) in_queue = std::move(description);
      }
      if (waited >= wait)
        throw error(errc::busy, "another transaction is being made",
                    {"file " + path, fmt::format("waited {} ms for it to end", waited.count())});
      step = std::min({step, wait - waited, lock_step_max});
      files.pause(step);
      waited += step;
      if (in_queue == nullptr) step *= 2;  // the next in turn looks often
    }
    transaction_base base;
    base.handle = follow_name();
    base.lock = std::move(lock);
    if (identity_of(*base.lock, path) == base.handle->identity) return base;
    // The name was given to another file since the lock's was opened.
  }
}

file::file(std::unique_ptr<state> made) noexcept : state_(std::move(made)) {}
file::file(file&&) noexcept = default;
file& file::operator=(file&&) noexcept = default;
file::~file() = default;

const std::string& file::path() const noexcept { return state_->path; }
const uuid& file::id() const noexcept { return state_->id; }
open_access file::access() const noexcept { return state_->access; }
bool file::poisoned() const noexcept { return state_->poisoned->load(); }

file file::create(file_system& files, const std::string& path, const create_options& options) {
  return with_context("create container", [&] {
    file_identity taken;
    if (uninterrupted([&] { return files.identify(path, taken); }) >= 0)
      throw error(errc::already_exists, "a file of that name exists", {"file " + path});

    auto handle = std::make_shared<container_handle>();
    handle->path = path;
    handle->id = options.id ? *options.id : uuid::random();
    os_result result =
        uninterrupted([&] { return files.create_unnamed(path, options.mode, handle->data); });
    if (result < 0) throw failure("cannot create file", result, path);
    write_all(*handle->data, 0, encode_header({handle->id}), path);
    // Everything between the header and the first extent is zeros until it is written.
    allocate_space(*handle->data, 0, first_extent_offset, path);

    transaction_base base;
    base.handle = handle;
    base.newest.end_of_file = first_extent_offset;
    base.poisoned = std::make_shared<std::atomic<bool>>(false);
    transaction::state first(std::move(base));
    first.commit({});

    result = uninterrupted([&] { return files.link(*handle->data, path); });
    if (result < 0) throw failure("give the container its name", result, path);
    result = files.sync_directory_of(path);  // not repeated either: see sync_data
    if (result < 0) {
      files.remove(path);  // whole or not at all
      throw failure("make the container's name durable", result, path);
    }
    return open(files, path, open_access::write);
  });
}

file file::open(file_system& files, const std::string& path, open_access access) {
  return with_context("open container", [&] {
    file opened(std::make_unique<state>(files, path, access));
    const generation_view newest = opened.latest();
    require_supported(newest.state_->fields, access, path);
    return opened;
  });
}

generation_view file::latest() {
  for (int round = 0; round < reader_rounds_max; ++round)
    if (auto view = state_->try_latest()) return *view;
  throw error(errc::io, "the newest generation could not be pinned",
              {"file " + state_->path,
               fmt::format("in {} attempts a writer was faster each time", reader_rounds_max)});
}

transaction file::begin(patience wait) {
  state& self = *state_;
  return with_context("begin transaction", [&] {
    if (self.access != open_access::write)
      throw error(errc::access_denied, "the container was opened for reading",
                  {"file " + self.path});
    if (self.poisoned->load())
      throw error(errc::io, "an earlier sync of this container failed",
                  {"file " + self.path,
                   "what it should have made durable may be lost: open the container anew"});
    transaction_base base = self.take_writer_lock(wait);
    base.poisoned = self.poisoned;
    open_file& data = *base.handle->data;
    base.both = read_slots(data, self.id, self.path);
    const auto which = newest_slot(base.both);
    if (!which) throw_no_superblock(self.path);
    base.newest = *base.both[*which].fields;
    require_supported(base.newest, open_access::write, self.path);
    require_no_pin_above(base.newest.generation, scan_pins(*base.lock, self.path), self.path);
    page_reader(base.handle, base.newest.end_of_file).load_root(base.newest);
    try {
      rewrite_in_place(data, base.both, self.path);
    } catch (...) {
      self.poisoned->store(true);  // commit.6
      throw;
    }
    base.metadata_bytes = 2 * superblock_bytes;
    base.pins = scan_pins(*base.lock, self.path);
    require_no_pin_above(base.newest.generation, base.pins, self.path);
    return transaction(std::make_unique<transaction::state>(std::move(base)));
  });
}

std::optional<std::uint64_t> file::wait_newer(std::uint64_t seen, patience wait) const {
  const state& self = *state_;
  auto in = self.current();
  const auto deadline = std::chrono::steady_clock::now() + wait;
  for (;;) {
    // The word before the superblocks: a commit in between changes it, and waiting ends at once.
    std::byte word[4];
    read_exact(*in->data, live_page_offset, word, self.path);
    const slots both = read_settled_slots(*in->data, self.id, self.path);
    const std::uint64_t newest = both[*newest_slot(both)].fields->generation;
    if (newest > seen) return newest;
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return std::nullopt;
    const auto left = std::chrono::ceil<patience>(deadline - now);
    in->data->wait_word(live_page_offset, load<std::uint32_t>(word), std::min(left, look_interval));
    if (identity_of(self.files, self.path) != in->identity)
      in = open_handle(self.files, self.path, open_access::read);
  }
}

std::vector<generation_range> file::pinned() const {
  // A description of its own, which pins nothing and so sees everybody's pins.
  const auto in = state_->current();
  return scan_pins(*in->data, state_->path);
}

}  // namespace shale::format
