#include "format/container/container_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "format/bytes/byte_order.hpp"
#include "format/generations/generation_state.hpp"
#include "format/generations/replaced_file.hpp"
#include "format/generations/shared_file.hpp"
#include "format/generations/superblock_slots.hpp"
#include "format/os/file_io.hpp"
#include "format/os/locks.hpp"
#include "format/pages/header.hpp"
#include "format/transaction/writer.hpp"
#include "shale/error.hpp"
#include "storage/files/awaited_file.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::format {
namespace {

// Longest time between two reads of the superblocks while waiting for a commit. The wake-up alone
// is not enough, because a writer may be killed after it has made a generation durable and before
// it wakes anybody.
constexpr std::chrono::milliseconds look_interval{200};

// On a network file system, hosts may not see the pins and locks of other hosts.
void require_local(const open_file& file, const std::string& path) {
  if (!file.is_remote()) return;
  throw error(errc::unsupported,
              "a container on a network file system cannot be shared for writing",
              {"file " + path,
               "locks may not reach other hosts: open it as exclusive if no other host has it "
               "open, or keep it on a local file system"});
}

// commit.6. Throws io if a sync of the file has failed since it was opened.
void require_no_failed_sync(const shared_file& file) {
  if (!file.write_back || !file.write_back->failed()) return;
  throw error(errc::io, "an earlier sync or write of this container failed",
              {"file " + file.path,
               "bytes that it should have made durable may be lost: open the container anew"});
}

// Removes the name of a container that was just made. If the name leads to another file by now, or
// somebody has committed to the container, it stays as it is.
// This opens no descriptor, because `create` may have failed for lack of descriptors.
void take_name_back(const shared_file& made) noexcept {
  try {
    if (made.data->try_lock(writer_lock, lock_mode::exclusive) < 0) return;
    const slots both = read_slots(*made.data, made.id, made.path);
    const auto newest = newest_slot(both);
    if (!newest || both[*newest].fields->generation != 1) return;
    if (identity_of(made.place) != made.identity) return;
    made.place.files().remove(made.place.name());
  } catch (...) {
    // The owner of the file is unknown, so it stays.
  }
}

}  // namespace

struct container_file::state {
  state(bound_path bound, open_access requested, const open_options& options)
      : place(std::move(bound)),
        path(place.shown()),
        access(requested),
        sole_host(options.sole_host),
        policy(options.salvage ? lost_commits::accept : lost_commits::refuse) {}

  std::shared_ptr<shared_file> current() const {
    const std::lock_guard lock(mutex);
    return known;
  }

  std::shared_ptr<shared_file> follow_name();
  std::shared_ptr<writer> take_writer_lock(std::chrono::milliseconds timeout);
  std::optional<generation_view> try_latest();

  const bound_path place;
  const std::string& path;  // for messages
  const open_access access;
  const bool sole_host;
  const lost_commits policy;
  uuid id;  // of the first file; set before any other thread has the object

  // Guards `known`, because wait_newer runs beside the other calls.
  mutable shale::detail::fork_safe_mutex mutex;
  std::shared_ptr<shared_file> known;  // the file that had the name at the last look

  // Views of this object that may still be alive, so that a generation is pinned only once.
  std::vector<std::weak_ptr<const generation_view::state>> views;
};

// Returns the file that the name leads to now. The name leads to another file after a compacted
// file has replaced the container.
std::shared_ptr<shared_file> container_file::state::follow_name() {
  auto have = current();
  if (have && identity_of(place) == have->identity) return have;
  for (int round = 0;; ++round) {
    auto opened = open_shared_file(place, access);
    if (have) require_same_container(*opened, have->id);
    if (access == open_access::write && !sole_host) require_local(*opened->data, path);
    const auto second = open_existing(place, open_access::read);
    if (identity_of(*second, path) != opened->identity) {  // the name has moved on in between
      if (round < reader_rounds_max) continue;
      throw name_changes_too_often(path);
    }
    probe_locks(*opened->data, *second, path);
    const std::lock_guard lock(mutex);
    if (!known) id = opened->id;
    known = opened;
    return opened;
  }
}

// One round of a reader (commit.7). Returns nothing if a writer was faster: the caller starts over.
//
// The superblock is read before the pin is taken, so a writer may scan the pins in between and not
// see this one. Such a writer protects this generation anyway as long as a valid superblock holds
// it (commit.2). So the slot is read again after the pin is taken: if it is unchanged, the
// generation was protected by its superblock up to then, and is protected by the pin from then on.
std::optional<generation_view> container_file::state::try_latest() {
  const auto in = follow_name();
  const slots both = read_settled_slots(*in->data, in->id, path, policy);
  const std::uint32_t number = *newest_slot(both);
  const superblock& newest = *both[number].fields;
  require_supported(newest, open_access::read, path);

  std::erase_if(views, [](const auto& view) { return view.expired(); });
  for (const auto& known_view : views)
    if (const auto view = known_view.lock(); view && view->file == in && view->fields == newest)
      return generation_view(view);
  if (newest.generation >= generations_end)
    throw error(errc::corrupt, "a superblock holds an impossible generation",
                {"file " + path, fmt::format("generation {}, at most {} is possible",
                                             newest.generation, generations_end - 1)});

  // The pin must be on the file that was read, and that file must still have the name.
  auto hold = in->pins->take(place, in->identity, newest.generation);
  if (!hold || identity_of(place) != in->identity) return std::nullopt;
  if (!unchanged(*in->data, number, both[number], path)) return std::nullopt;
  const auto made = std::make_shared<const generation_view::state>(in, std::move(hold), newest);
  views.push_back(made);
  return generation_view(made);
}

// commit.1: takes the writer lock of the file that has the name, on a description of its own.
std::shared_ptr<writer> container_file::state::take_writer_lock(std::chrono::milliseconds timeout) {
  writer_lock_wait waiting(place, timeout);
  for (;;) {
    auto turn = waiting.take();
    auto file = follow_name();
    // This description is opened under the lock, so no other writer uses it. It starts without the
    // errors of earlier writers, which do not concern this transaction: their commits were synced,
    // and the superblocks are written again unless this process has synced them itself.
    auto sync = open_unshared(place);
    sync->discard_old_errors();
    if (identity_of(*turn.lock, path) == file->identity &&
        identity_of(*sync, path) == file->identity)
      return std::make_shared<writer>(std::move(file), std::move(turn.lock), std::move(sync));
    // The name was given to another file after the description with the lock was opened.
  }
}

container_file::container_file(std::unique_ptr<state> made) noexcept : state_(std::move(made)) {}
container_file::container_file(container_file&&) noexcept = default;
container_file& container_file::operator=(container_file&&) noexcept = default;
container_file::~container_file() = default;

const std::string& container_file::path() const noexcept { return state_->path; }
const uuid& container_file::id() const noexcept { return state_->id; }
open_access container_file::access() const noexcept { return state_->access; }
bool container_file::poisoned() const noexcept {
  const auto in = state_->current();
  return in && in->write_back && in->write_back->failed();
}

container_file container_file::create(const bound_path& place,
                                      const create_container_options& options,
                                      const std::function<void()>& named) {
  return with_context("create container", [&] {
    const std::string& path = place.shown();
    file_system& files = place.files();
    file_identity taken;
    if (uninterrupted([&] { return files.identify(place.name(), taken); }) >= 0)
      throw error(errc::already_exists, "a file of that name exists", {"file " + path});

    auto made = std::make_shared<shared_file>(place);
    made->id = options.id ? *options.id : uuid::random();
    os_result result =
        uninterrupted([&] { return files.create_unnamed(place.name(), options.mode, made->data); });
    if (result < 0) throw opening_failure("cannot create file", result, path);
    if (!options.sole_host) require_local(*made->data, path);
    made->identity = identity_of(*made->data, path);
    // The zeros are written, not only reserved. If the first write to reserved space fails, ext4
    // may never make a later one durable (see generation_space::forget_old_pages), and superblocks
    // are written again without leaving the cache.
    std::vector<std::byte> fixed(first_extent_offset);
    const auto header = encode_header({made->id});
    std::copy(header.begin(), header.end(), fixed.begin());
    write_all(*made->data, 0, fixed, path);

    transaction first(std::make_shared<writer>(made));
    first.commit();

    // `open` checks the locks too. But if they do not work, the name cannot be taken back safely, so
    // it is not given. (Without /proc the file cannot be opened again here.)
    std::unique_ptr<open_file> second;
    if (uninterrupted([&] { return made->data->open_again(second); }) >= 0)
      probe_locks(*made->data, *second, path);
    second.reset();

    const auto folder = open_directory_of(place);
    result = uninterrupted([&] { return files.link(*made->data, place.name()); });
    if (result < 0) throw failure("cannot give the container its name", result, path);
    // It may be an unfinished file of this process.
    shale::detail::awaited_file::appeared(path, made->data->descriptor());
    try {
      result = folder->sync_names();  // never repeated: see sync_failure
      if (result < 0) throw failure("cannot make the container's name durable", result, path);
      container_file opened = open(place, open_access::write, {.sole_host = options.sole_host});
      if (named) named();
      return opened;
    } catch (...) {
      take_name_back(*made);  // so that no container appears when `create` fails
      throw;
    }
  });
}

container_file container_file::open(const bound_path& place, open_access access,
                                    const open_options& options) {
  return with_context("open container", [&] {
    for (int round = 0;; ++round) {
      try {
        container_file opened(std::make_unique<state>(place, access, options));
        const generation_view newest = opened.latest();
        require_supported(newest.shared().fields, access, place.shown());
        return opened;
      } catch (const container_replaced&) {
        if (round == reader_rounds_max) throw;
      }
    }
  });
}

generation_view container_file::latest() {
  for (int round = 0; round < reader_rounds_max; ++round)
    if (auto view = state_->try_latest()) return *view;
  throw error(
      errc::io, "the newest generation could not be pinned",
      {"file " + state_->path,
       fmt::format("in {} attempts another generation was there each time", reader_rounds_max)});
}

transaction container_file::begin(std::chrono::milliseconds timeout) {
  state& self = *state_;
  return with_context("begin transaction", [&] {
    if (self.access != open_access::write)
      throw error(errc::access_denied, "the container was opened for reading",
                  {"file " + self.path});
    if (const auto in = self.current()) require_no_failed_sync(*in);
    std::shared_ptr<writer> held_writer = self.take_writer_lock(timeout);
    // The transaction that was waited for may have failed.
    require_no_failed_sync(held_writer->file());
    held_writer->adopt_newest();
    return transaction(std::move(held_writer));
  });
}

std::optional<std::uint64_t> container_file::wait_newer(std::uint64_t seen,
                                                        std::chrono::milliseconds timeout) const {
  const state& self = *state_;
  auto in = self.current();
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    if (identity_of(self.place) != in->identity) {
      auto opened = open_shared_file(self.place, open_access::read);
      require_same_container(*opened, in->id);
      in = std::move(opened);
    }
    // The word is read before the superblocks: a commit in between changes it, so waiting ends at
    // once.
    std::byte word[4];
    read_exact(*in->data, live_page_offset, word, self.path);
    const slots both = read_settled_slots(*in->data, in->id, self.path, self.policy);
    const std::uint64_t newest = both[*newest_slot(both)].fields->generation;
    if (newest > seen) return newest;
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return std::nullopt;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now);
    in->data->wait_word(live_page_offset, load<std::uint32_t>(word), std::min(left, look_interval));
  }
}

std::vector<generation_range> container_file::pinned() const {
  // This description holds no pin, so it sees all of them.
  const auto in = state_->current();
  return scan_pins(*in->data, state_->path).pins;
}

}  // namespace shale::format
