#include "format/transaction/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "format/bytes/file_layout.hpp"
#include "format/generations/replaced_file.hpp"
#include "format/os/file_io.hpp"
#include "format/os/locks.hpp"
#include "format/pages/header.hpp"
#include "format/transaction/commit.hpp"

namespace shale::format {

writer::writer(std::shared_ptr<shared_file> created) : file_(std::move(created)) {
  base_.end_of_file = first_extent_offset;
  file_->write_back = shale::detail::write_back_record::of(file_->data->descriptor());
}

writer::writer(std::shared_ptr<shared_file> file, std::unique_ptr<open_file> lock,
               std::unique_ptr<open_file> sync) noexcept
    : file_(std::move(file)), lock_(std::move(lock)), sync_(std::move(sync)) {}

std::vector<generation_range> writer::protected_generations(
    const std::vector<std::uint64_t>& retained) const {
  return format::protected_generations(both_, pins_.pins, retained).all();
}

// ---- the steps --------------------------------------------------------------------------------

void writer::adopt_newest() {
  open_file& data = *file_->data;
  const std::string& path = file_->path;
  both_ = read_slots(data, file_->id, path);
  const std::uint32_t newest = require_newest_slot(both_, data, file_->id, path);
  if (!both_[1 - newest].fields) require_no_lost_commit(data, file_->id, path);
  base_ = *both_[newest].fields;
  require_supported(base_, open_access::write, path);
  if (base_.generation >= generations_end - 1)
    throw error(errc::unsupported, "the container's generations are used up",
                {"file " + path,
                 fmt::format("the last one possible is {}, its newest is {}", generations_end - 1,
                             base_.generation),
                 "`shale convert` makes a container that counts anew"});
  require_no_pin_above(base_.generation, scan_pins(*lock_, path), *lock_, path);
  file_->reader(base_.end_of_file).load_root(base_);
  mark_ = uuid::random();
  write_mark(data, mark_, path);
  rewrite_in_place(data, both_, path);
  sync_data();
  metadata_bytes_ = 2 * superblock_bytes;
  pins_ = scan_pins(*lock_, path);
  require_no_pin_above(base_.generation, pins_, *lock_, path);
}

void writer::check_written() const { file_->write_back->check(file_->path); }

void writer::make_size_durable(std::uint64_t end_of_file) const {
  open_file& data = *file_->data;
  const std::string& path = file_->path;
  // Chunks and pages are not reserved. So the file may end before the last allocated byte.
  if (size_bytes(data, path) < end_of_file)
    allocate_space(data, end_of_file - page_bytes, page_bytes, path);
  // Or the file is long enough in memory only: a failed writer may have left pages that the device
  // never received. Writing the last byte again makes the sync write the size too.
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
  if (auto gone = overwritten()) throw *std::move(gone);
  check_written();
  // Everything else is durable, so whoever finds the superblock reads the whole generation. The text
  // is made before, because there may be no memory later.
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
}

void writer::announce_and_release(const superblock& published) {
  announce(*file_->data, published.generation);
  give_back_tail(published.end_of_file);
  auto gone = replaced(
      "the generation is durable in the file that was replaced, and nobody who opens the name "
      "sees it: make the changes again, or give that file its name back");
  lock_.reset();
  if (gone) throw *std::move(gone);
}

void writer::release() noexcept {
  if (!left_behind_by_fork() && holds_its_bytes()) {
    erase_mark(*file_->data);
    give_back_tail(0);
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
  const slots both = read_slots(*replacement->data, replacement->id, other);
  const auto newest = newest_slot(both);
  if (!newest) throw error(errc::corrupt, "no superblock is valid", {"file " + other});
  if (!both[1 - *newest].fields) require_no_lost_commit(*replacement->data, replacement->id, other);
  const superblock& fields = *both[*newest].fields;
  require_supported(fields, open_access::write, other);
  replacement->reader(fields.end_of_file).load_root(fields);

  if (auto gone = replaced("nothing was replaced")) throw *std::move(gone);  // commit.9
  // The name that was checked is renamed: `other` itself may be a link to it.
  os_result result = uninterrupted(
      [&] { return place.files().rename_from(theirs.files(), theirs.name(), place.name()); });
  if (result < 0)
    throw failure("give the name to another file", result, place.shown())
        .add_detail("file " + other);
  result = place.files().sync_directory_of(place.name());
  lock_.reset();
  if (result < 0) return failure("make the name durable", result, place.shown());
  return std::nullopt;
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
  if (first != encode_header({file_->id})) return lost("its header is another one");
  if (now[0].sector != both_[0].sector || now[1].sector != both_[1].sector)
    return lost("its superblocks are not those that the transaction began with");
  if (!has_mark(data, mark_, path)) return lost("the transaction's mark is gone");
  return std::nullopt;
}

// commit.9: whether the file is still the one that the transaction began with. Of a file that
// somebody has written over, the base says nothing, least of all where it ends.
bool writer::holds_its_bytes() const noexcept {
  try {
    return !overwritten();
  } catch (...) {
    return false;  // unknown
  }
}

}  // namespace shale::format
