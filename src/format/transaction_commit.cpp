// A transaction's beginning, what it writes, and its end.
#include <fmt/format.h>

#include <algorithm>

#include "format/bytes.hpp"
#include "format/checksum.hpp"
#include "format/container_state.hpp"
#include "format/file_io.hpp"
#include "shale/error.hpp"

namespace shale::format {
namespace {

std::vector<std::uint64_t> retained_generations(const tree& retained) {
  std::vector<std::uint64_t> generations;
  for (auto at = retained.seek({}); at.valid(); at.next())
    if (at.key().size() == 8) generations.push_back(load_ordered(at.key(), 0));
  return generations;
}

}  // namespace

transaction::state::state(transaction_base&& from)
    : base(std::move(from)),
      generation(base.newest.generation + 1),
      reader(base.handle, base.newest.end_of_file),
      root(base.newest.generation == 0 ? root_fields{} : reader.load_root(base.newest)),
      catalog(tree_kind::catalog, reader, root.catalog, this),
      space_tree(tree_kind::space, reader, root.space, this),
      metadata_bytes(base.metadata_bytes),
      write_failed(false) {
  const tree retained(tree_kind::retained, reader, root.retained);
  space.emplace(space_tree, generation, base.newest.end_of_file,
                protected_generations(base.both, base.pins, retained_generations(retained)));
}

transaction::state::~state() {
  if (active) finish();
}

void transaction::state::finish() noexcept {
  active = false;
  give_back_tail(0);
  base.lock.reset();  // releases the writer lock
}

// Truncates what lies behind `end` and behind both superblocks: the space of transactions that were
// aborted or killed. Nobody may hold the no-shrink byte meanwhile; taking it exclusively proves
// that, and the lock goes with the description.
void transaction::state::give_back_tail(std::uint64_t end) noexcept {
  if (!base.lock || base.poisoned->load()) return;
  for (const slot& each : base.both)
    if (each.fields) end = std::max(end, each.fields->end_of_file);
  const os_result size = base.lock->size();
  if (size < 0 || static_cast<std::uint64_t>(size) <= end) return;
  if (base.lock->try_lock(no_shrink_lock, lock_mode::exclusive) < 0) return;
  (void)base.lock->truncate(end);
}

// commit.3 up to the sync: everything gets its place and is written. Indexes first, because the
// catalog holds their roots; the space map last, because it accounts for all the others.
superblock transaction::state::write_everything() {
  for (const auto& [offset, bytes] : std::exchange(unclaimed, {})) space->release(offset, bytes);
  for (auto& [name, array] : arrays) {
    if (!array.changed) continue;
    array.index.place(space->allocate_pages(array.index.unplaced()));
    array.record.chunked().index = array.index.write();
    store(array.record);
  }
  catalog.place(space->allocate_pages(catalog.unplaced()));
  root.catalog = catalog.write();
  const std::uint64_t root_offset = space->allocate_pages(1).front();
  if (base.newest.generation != 0) space->release(base.newest.root.offset, page_bytes);
  space->settle();
  root.space = space_tree.write();

  page encoded = encode_root(root);
  const page_ref written = write_page(encoded, root_offset);
  superblock next;
  next.generation = generation;
  next.root = {written.offset, page_bytes};
  next.root_checksum = written.checksum;
  next.end_of_file = space->end_of_file();
  next.incompatible = base.newest.incompatible;
  next.read_only_compatible = base.newest.read_only_compatible;
  return next;
}

std::uint64_t transaction::state::commit(const std::function<void()>& after_sync) {
  require_active();
  open_file& file = *base.handle->data;
  const std::string& path = base.handle->path;
  if (broken || write_failed.load())
    throw error(
        errc::io, "the transaction cannot be committed",
        {"file " + path, "an earlier change or write of it failed: abort, and begin again"});
  try {
    const superblock next = write_everything();
    // The file may be shorter than what was allocated: chunks and pages are written, not reserved.
    if (size_bytes(file, path) < next.end_of_file)
      allocate_space(file, next.end_of_file - page_bytes, page_bytes, path);
    // Or it only seems long enough, for pages that a failed writer left and the device never got: a
    // write at its end makes the sync bring the size along.
    if (next.end_of_file > base.newest.end_of_file) {
      std::byte last[1];
      read_exact(file, next.end_of_file - 1, last, path);
      write_all(file, next.end_of_file - 1, last, path);
    }
    const auto poisoning = [&](auto&& body) {
      try {
        body();
      } catch (...) {
        base.poisoned->store(true);  // commit.6
        throw;
      }
    };
    poisoning([&] { sync_data(file, path); });
    if (after_sync) after_sync();
    poisoning([&] { publish(file, slot_to_write(base.both), next, base.handle->id, path); });
    metadata_bytes += superblock_bytes;
    active = false;
    announce(file, generation);
    give_back_tail(next.end_of_file);
    base.lock.reset();
  } catch (error& failed) {
    failed.add_context(fmt::format("commit generation {}", generation));
    if (active) finish();
    throw;
  } catch (...) {
    if (active) finish();
    throw;
  }
  return generation;
}

// ---- the trees' sink --------------------------------------------------------------------------

void transaction::state::release(const extent& range) {
  space->release(range.offset, page_space(range.bytes));
}

overflow_ref transaction::state::store_overflow(bytes_view value) {
  const extent where = space->allocate(value.size(), page_bytes);
  reader.extend(space->end_of_file());
  // Padded to whole pages, so that no old byte is left in them.
  std::vector<std::byte> padded(page_space(value.size()));
  std::copy(value.begin(), value.end(), padded.begin());
  write_all(*base.handle->data, where.offset, padded, base.handle->path);
  metadata_bytes += padded.size();
  return {where, checksum_metadata(value)};
}

page_ref transaction::state::write_page(page& made, std::uint64_t offset) {
  made.stamp(generation, offset);
  write_all(*base.handle->data, offset, made.bytes(), base.handle->path);
  metadata_bytes += page_bytes;
  return {offset, checksum_metadata(made.bytes())};
}

}  // namespace shale::format
