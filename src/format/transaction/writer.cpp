#include "format/transaction/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>

#include "core/allocating.hpp"
#include "format/bytes/file_layout.hpp"
#include "format/generations/replaced_file.hpp"
#include "format/os/file_io.hpp"
#include "format/os/locks.hpp"
#include "format/pages/header.hpp"
#include "format/transaction/commit.hpp"

namespace shale::format {
namespace {

// commit.1 for the container that is to take a name: makes durable all bytes of the file, and the
// superblocks as they were read. The file may be a copy that nobody has synced, or the sync of its
// last commit may be missing. `file` holds the writer lock, and was opened for this alone, so the
// sync reports every error that nobody has received.
void make_durable(open_file& file, const slots& both, const std::string& path) {
  rewrite_in_place(file, both, path);
  const os_result result = file.sync_data();
  if (result >= 0) return;
  // All other users of the file in this process must learn of the error.
  shale::detail::write_back_record::of(file.descriptor())
      ->report({.error_number = static_cast<int>(-result)});
  throw sync_failure(result, path)
      .add_detail("nothing was replaced; bytes of that file may be lost for good: make it anew");
}

constexpr const char* lost_with_its_file =
    "the generation is durable in the file that was replaced, and nobody who opens the name sees "
    "it: make the changes again, or give that file its name back";

// A pin is a lock on the byte of its generation, and there are no more such bytes.
void require_next_generation(const superblock& base, const std::string& path) {
  if (base.generation >= generations_end - 1)
    throw error(errc::unsupported, "the container's generations are used up",
                {"file " + path,
                 fmt::format("the last one possible is {}, its newest is {}", generations_end - 1,
                             base.generation),
                 "`shale convert` makes a container whose generations begin with 1"});
}

}  // namespace

writer::writer(std::shared_ptr<shared_file> created) : file_(std::move(created)) {
  base_.end_of_file = first_extent_offset;
  file_->write_back = shale::detail::write_back_record::of(file_->data->descriptor());
}

writer::writer(std::shared_ptr<shared_file> file, std::unique_ptr<open_file> lock,
               std::unique_ptr<open_file> sync) noexcept
    : file_(std::move(file)), lock_(std::move(lock)), sync_(std::move(sync)) {}

generation_set writer::protected_generations(const std::vector<std::uint64_t>& retained) const {
  return format::protected_generations(held_slots_, pins_.pins, retained).all();
}

// ---- the steps --------------------------------------------------------------------------------

void writer::adopt_newest() {
  open_file& data = *file_->data;
  const std::string& path = file_->path;
  both_ = read_slots(data, file_->id, path);
  const std::uint32_t newest = require_newest_slot(both_, data, file_->id, path);
  if (!both_[1 - newest].fields) require_no_lost_commit(data, file_->id, path);
  base_ = *both_[newest].fields;
  file_->cleaned = {};
  require_supported(base_, open_access::write, path);
  require_next_generation(base_, path);
  require_no_pin_above(base_.generation, scan_pins(*lock_, path), *lock_, path);
  file_->reader(base_.end_of_file).load_root(base_);
  mark_ = uuid::random();
  write_mark(data, mark_, path);
  if (!file_->durable.are(both_)) {
    rewrite_in_place(data, both_, path);
    sync_data();
    file_->durable.note(both_);
    metadata_bytes_ = 2 * superblock_bytes;
  }
  held_slots_ = both_;
  pins_ = scan_pins(*lock_, path);
  require_no_pin_above(base_.generation, pins_, *lock_, path);
}

void writer::check_written() const {
  file_->write_back->check(file_->path);
  const std::lock_guard lock(mutex_);
  if (!publishing_failed_) return;
  error refused(publishing_error_ ? publishing_error_->code() : errc::io,
                "a commit before this one failed",
                {"file " + file_->path, "this transaction began with its changes"});
  if (publishing_error_)
    refused.add_detail(fmt::format("it was: {}", publishing_error_->message()));
  throw refused;
}

void writer::make_size_durable(std::uint64_t end_of_file) const {
  open_file& data = *file_->data;
  const std::string& path = file_->path;
  // Chunks and pages are not reserved. So the file may end before the last allocated byte.
  if (size_bytes(data, path) < end_of_file)
    allocate_space(data, end_of_file - page_bytes, page_bytes, path);
  // The file may also be long enough in memory only: a failed writer may have left pages that the
  // device never received. Writing the last byte again makes the sync write the size too.
  if (end_of_file > base_.end_of_file) {
    std::byte last[1];
    read_exact(data, end_of_file - 1, last, path);
    write_all(data, end_of_file - 1, last, path);
  }
}

void writer::sync_data() const {
  const os_result result = (sync_ ? *sync_ : *file_->data).sync_data();
  if (result >= 0) return;
  file_->write_back->report({.error_number = static_cast<int>(-result)});
  throw sync_failure(result, file_->path);
}

// commit.3. The file had this length when the generation was written, so somebody has truncated it.
void writer::require_length(const superblock& next) const {
  const std::uint64_t present = size_bytes(*file_->data, file_->path);
  if (present >= next.end_of_file) return;
  throw error(
      errc::io, "the file has become shorter during the transaction",
      {"file " + file_->path,
       fmt::format("it has {} bytes, generation {} needs {}: another process truncated it", present,
                   next.generation, next.end_of_file),
       "nothing was published: `shale verify` shows whether the generation before is whole"});
}

// A failure poisons the file object, because a part of the superblock may have been written.
void writer::write_superblock(const superblock& next) {
  try {
    write_slot(*file_->data, slot_to_write(both_), next, file_->id, file_->path);
  } catch (...) {
    file_->write_back->report({.error_number = EIO});
    throw;
  }
}

void writer::publish(const superblock& next) {
  if (auto gone = replaced("nothing was published in either file: begin again"))
    throw *std::move(gone);
  require_length(next);
  // No system call lies between this look at the contents and the write that it allows.
  if (auto gone = overwritten()) throw *std::move(gone);
  check_written();
  // Everything else is durable, so a reader that finds the superblock finds the whole generation.
  // The text is made before the write, because there may be no memory later.
  const std::string may_exist = fmt::format(
      "generation {} may exist all the same: open the container anew to see which is the newest",
      next.generation);
  try {
    write_superblock(next);
    sync_data();
  } catch (error& failed) {
    if (lock_ != nullptr) failed.add_detail(may_exist);
    throw;
  }
  metadata_bytes_ += superblock_bytes;
  note_published(next);
}

// From here on the superblock that was overwritten cannot come back (commit.10).
void writer::note_published(const superblock& next) {
  const std::uint32_t number = slot_to_write(both_);
  const slot written{encode_superblock(next, file_->id, number), next};
  const std::lock_guard lock(mutex_);
  both_[number] = written;
  file_->durable.note(both_);
  chosen_ = 0;
  if (base_.generation < next.generation) base_ = next;
}

void writer::announce_and_release(const superblock& published) {
  announce(*file_->data, published.generation);
  give_back_tail(published.end_of_file);
  auto gone = replaced(lost_with_its_file);
  lock_.reset();
  if (gone) throw *std::move(gone);
}

void writer::release() noexcept {
  // In a forked child, another thread of the parent may have held the mutex.
  if (!left_behind_by_fork()) {
    {
      const std::lock_guard lock(mutex_);
      if (continues_) return;
    }
    if (holds_its_bytes()) {
      erase_mark(*file_->data);
      if (!is_lost_base_read()) give_back_tail(0);
    }
  }
  lock_.reset();
}

std::optional<error> writer::give_name_to(const std::string& other) {
  const bound_path& place = file_->place;
  const bound_path theirs(place.files(), other);
  const auto replacement = open_shared_file(theirs, open_access::read);
  if (replacement->identity == file_->identity)
    throw error(errc::invalid_argument, "a container does not replace itself",
                {"file " + place.shown(), "file " + other});
  const auto lock = open_unshared(theirs);
  if (!try_exclusive(*lock, writer_lock, other))
    throw writer_is_busy(*lock, std::chrono::milliseconds(0), other);
  if (identity_of(*lock, other) != replacement->identity)
    throw error(errc::io, "the file was replaced while it was opened", {"file " + other});
  const auto folder = open_directory_of(place);  // nothing after the rename needs a descriptor
  const slots both = read_slots(*replacement->data, replacement->id, other);
  const auto newest = newest_slot(both);
  if (!newest) throw error(errc::corrupt, "no superblock is valid", {"file " + other});
  if (!both[1 - *newest].fields) require_no_lost_commit(*replacement->data, replacement->id, other);
  const superblock& fields = *both[*newest].fields;
  require_supported(fields, open_access::write, other);
  replacement->reader(fields.end_of_file).load_root(fields);
  require_no_pin_above(fields.generation, scan_pins(*lock, other), *lock, other);  // commit.1
  make_durable(*lock, both, other);

  if (auto gone = replaced("nothing was replaced")) throw *std::move(gone);  // commit.9
  if (identity_of(theirs) != replacement->identity)
    throw error(errc::io, "the file was replaced while it was made durable",
                {"file " + other, "nothing was replaced"});
  // The name that was checked is renamed: `other` itself may be a link to it.
  os_result result = uninterrupted(
      [&] { return place.files().rename_from(theirs.files(), theirs.name(), place.name()); });
  if (result < 0)
    throw failure("cannot give the name to another file", result, place.shown())
        .add_detail("file " + other);
  result = folder->sync_names();
  lock_.reset();
  if (result < 0) return failure("cannot make the name durable", result, place.shown());
  return std::nullopt;
}

// ---- several generations ------------------------------------------------------------------------

void writer::hand_over(const superblock& written) {
  check_written();
  const std::lock_guard lock(mutex_);
  base_ = written;
  continues_ = true;
}

// The slots are noted before the pins are scanned. A reader may have taken its generation from a
// superblock that has been overwritten since. The reader had its pin before that. So if the note no
// longer shows the superblock, the scan shows the pin.
void writer::adopt_written() {
  check_written();
  require_next_generation(base_, file_->path);
  std::uint64_t chosen = 0;
  {
    const std::lock_guard lock(mutex_);
    held_slots_ = both_;
    chosen = chosen_;
  }
  pins_ = scan_pins(*lock_, file_->path);
  require_no_pin_above(base_.generation, pins_, *lock_, file_->path);
  if (chosen != 0) pins_.pins.push_back({chosen, chosen});
}

// Chooses the base, unless it is published. From here on the chosen generation is protected, even
// if a later one is handed over.
superblock writer::choose_written() {
  const std::lock_guard lock(mutex_);
  const auto newest = newest_slot(both_);
  if (!newest || both_[*newest].fields->generation != base_.generation) chosen_ = base_.generation;
  return base_;
}

// Nobody may build on a generation that cannot be published. `chosen_` stays: its superblock may be
// on the device.
void writer::note_failure(const error* failed) noexcept {
  const std::lock_guard lock(mutex_);
  if (!publishing_failed_ && failed != nullptr) publishing_error_.emplace(*failed);
  publishing_failed_ = true;
}

std::uint64_t writer::publish_written(const std::function<void(std::uint64_t)>& after_sync) {
  check_written();
  const superblock next = choose_written();
  if (chosen_ == 0) return next.generation;
  try {
    return shale::detail::reporting(
        [&] { return fmt::format("commit generation {}", next.generation); },
        [&] {
          sync_data();
          if (after_sync) after_sync(next.generation);
          publish(next);
          announce_beside_mark(*file_->data, next.generation);
          if (auto gone = replaced(lost_with_its_file)) throw *std::move(gone);
          return next.generation;
        });
  } catch (const error& failed) {
    note_failure(&failed);
    throw;
  } catch (...) {
    note_failure(nullptr);
    throw;
  }
}

std::uint64_t writer::unpublished_count() const noexcept {
  const std::lock_guard lock(mutex_);
  const auto newest = newest_slot(both_);
  return base_.generation - (newest ? both_[*newest].fields->generation : 0);
}

bool writer::is_awaited() const noexcept {
  found_lock ignored;
  return uninterrupted([&] { return lock_->find_lock({queue_lock, queue_lock}, ignored); }) != 0;
}

// Whether somebody may read a base that was never published. Its bytes may end after those of both
// superblocks.
bool writer::is_lost_base_read() const noexcept {
  if (unpublished_count() == 0) return false;
  const std::uint64_t newest = base_.generation - unpublished_count();
  try {
    const pin_scan held = scan_pins(*lock_, file_->path);
    return held.foreign || (!held.pins.empty() && held.pins.back().last > newest);
  } catch (...) {
    return true;  // unknown
  }
}

void writer::end() noexcept {
  if (!lock_) return;  // a commit has released it
  {
    const std::lock_guard lock(mutex_);
    continues_ = false;
  }
  release();
}

// ---- parts of the steps -----------------------------------------------------------------------

// Truncates the bytes after `end` and after the ends of both superblocks' generations: the space
// of transactions that were aborted or killed. All bytes that a reader holds, or may come to hold,
// end before (commit.8), so readers need no lock. Programs that map bytes after a generation's end
// hold the no-shrink byte shared. Locking it exclusively proves that there are none. The lock is
// released with the description.
void writer::give_back_tail(std::uint64_t end) noexcept {
  if (!lock_ || file_->write_back->failed()) return;
  for (const slot& written : both_)
    if (written.fields) end = std::max(end, written.fields->end_of_file);
  const os_result size = lock_->size();
  if (size < 0 || static_cast<std::uint64_t>(size) <= end) return;
  if (lock_->try_lock(no_shrink_lock, lock_mode::exclusive) < 0) return;
  (void)lock_->truncate(end);
}

// commit.9: the error if the file was replaced. A file that is being created has no name yet.
std::optional<error> writer::replaced(const char* outcome) const {
  return lock_ ? find_replaced(*file_, outcome) : std::nullopt;
}

// commit.9: the error if somebody has written over the file, as `cp` does to an existing file.
std::optional<error> writer::overwritten() const {
  if (!lock_) return std::nullopt;
  open_file& data = *file_->data;
  const std::string& path = file_->path;
  header_page first;
  read_exact(data, 0, first, path);
  const slots now = read_slots(data, file_->id, path);
  const auto lost = [&](const char* problem) {
    return error(errc::io, "the file was written over during the transaction",
                 {"file " + path, problem, "nothing was published: open it anew",
                  "replace a container by renaming another file, never by copying over it"});
  };
  if (!same_bytes(first, encode_header({file_->id})))
    return lost("its header is not the one that the transaction began with");
  if (!same_bytes(now[0].sector, both_[0].sector) || !same_bytes(now[1].sector, both_[1].sector))
    return lost("its superblocks are not those that the transaction began with");
  if (!has_mark(data, mark_, path)) return lost("the transaction's mark is gone");
  return std::nullopt;
}

// commit.9: whether the file is still the one that the transaction began with. If somebody has
// written over the file, the base no longer describes it, and does not tell where it ends.
bool writer::holds_its_bytes() const noexcept {
  try {
    return !overwritten();
  } catch (...) {
    return false;  // unknown
  }
}

}  // namespace shale::format
