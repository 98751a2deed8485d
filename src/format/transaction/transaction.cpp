#include "format/transaction/transaction.hpp"

#include <fmt/format.h>

#include <mutex>
#include <optional>

#include "format/chunks/chunk_index.hpp"
#include "format/generations/generation_state.hpp"
#include "format/generations/replaced_file.hpp"
#include "format/generations/retained_generations.hpp"
#include "format/os/file_io.hpp"
#include "format/transaction/changed_arrays.hpp"
#include "format/transaction/commit.hpp"
#include "format/transaction/generation_space.hpp"
#include "format/transaction/writer.hpp"
#include "shale/error.hpp"

namespace shale::format {
namespace {

std::vector<std::uint64_t> retained_of(page_reader& reader, const root_fields& root) {
  return list_retained(tree(tree_kind::retained, reader, root.retained));
}

}  // namespace

// The parts refer to each other by address, so they are neither copied nor moved.
struct transaction::parts {
  explicit parts(std::shared_ptr<writer> from)
      : owner(std::move(from)),
        held_writer(*owner),
        generation(held_writer.base().generation + 1),
        on_unpublished(held_writer.unpublished_count() != 0),
        reader(held_writer.file().reader(held_writer.base().end_of_file)),
        root(held_writer.base().generation == 0 ? root_fields{}
                                                : reader.load_root(held_writer.base())),
        space(held_writer.file(), reader, root.space, generation,
              held_writer.protected_generations(retained_of(reader, root))),
        arrays(reader, space, root.catalog, root.array_count, generation) {}

  ~parts() {
    if (active) held_writer.release();
  }

  parts(const parts&) = delete;
  parts& operator=(const parts&) = delete;

  superblock write_generation();

  const std::shared_ptr<writer> owner;
  writer& held_writer;
  const std::uint64_t generation;
  const bool on_unpublished;  // no superblock described the base when the transaction began
  page_reader reader;
  root_fields root;
  generation_space space;
  changed_arrays arrays;
  bool active = true;
  std::optional<superblock> unpublished{};  // written, to be handed over

  // The first data write that failed, on any thread.
  mutable std::mutex failure_lock{};
  bool write_failed = false;
  std::optional<error> first_failure{};  // if it was a shale::error

  void note_failure(const error* failed) noexcept {
    const std::lock_guard lock(failure_lock);
    if (!write_failed && failed != nullptr) first_failure.emplace(*failed);
    write_failed = true;
  }

  // Throws if the transaction contradicts itself, because its trees would return half-changed
  // values.
  void require_consistent() const {
    if (const auto code = space.broken()) throw refusal(*code);
    if (const auto code = arrays.broken()) throw refusal(*code);
  }

  // Throws if the transaction contradicts itself, or if bytes are missing.
  void require_whole() const {
    require_consistent();
    const std::lock_guard lock(failure_lock);
    if (!write_failed) return;
    error refused = refusal(first_failure ? first_failure->code() : errc::io);
    if (first_failure) refused.add_detail(fmt::format("it was: {}", first_failure->message()));
    throw refused;
  }

  error refusal(errc code) const {
    return error(code, "the transaction cannot be committed",
                 {"file " + held_writer.file().path,
                  "one of its changes or writes has failed: abort, and begin again"});
  }
};

transaction::transaction(std::shared_ptr<writer> held)
    : parts_(std::make_unique<parts>(std::move(held))) {}
transaction::transaction(transaction&&) noexcept = default;
transaction& transaction::operator=(transaction&&) noexcept = default;
transaction::~transaction() = default;

std::uint64_t transaction::generation() const noexcept { return parts_->generation; }

bool transaction::active() const noexcept { return parts_ != nullptr && parts_->active; }

void transaction::require_active() const {
  const writer& current = parts_->held_writer;
  if (!parts_->active)
    throw error(errc::invalid_argument, "the transaction has ended",
                {"begin a new one on file " + current.file().path});
  if (current.left_behind_by_fork())
    throw error(
        errc::invalid_argument, "the transaction belongs to another process",
        {"this one was forked from it: begin one of its own on file " + current.file().path});
}

void transaction::require_consistent() const {
  require_active();
  parts_->require_consistent();
}

// ---- arrays -----------------------------------------------------------------------------------

std::optional<array_record> transaction::find(std::string_view name) const {
  require_consistent();
  return parts_->arrays.find(name);
}

std::vector<std::string> transaction::list(std::string_view prefix, std::string_view after,
                                           std::size_t limit) const {
  require_consistent();
  return parts_->arrays.list(prefix, after, limit);
}

std::vector<level_entry> transaction::children(std::string_view level, std::string_view after,
                                               std::size_t limit) const {
  require_consistent();
  return parts_->arrays.children(level, after, limit);
}

void transaction::put(const array_record& record) {
  require_consistent();
  parts_->arrays.put(record);
}

bool transaction::erase(std::string_view name) {
  require_consistent();
  return parts_->arrays.erase(name);
}

void transaction::rename(std::string_view from, std::string_view to) {
  require_consistent();
  parts_->arrays.rename(from, to);
}

std::optional<chunk_entry> transaction::find_chunk(std::string_view name,
                                                   std::uint64_t number) const {
  require_consistent();
  return parts_->arrays.find_chunk(name, number);
}

std::uint64_t transaction::times_space_taken() const noexcept {
  return parts_->space.times_taken();
}

std::vector<numbered_chunk> transaction::chunks(std::string_view name, std::uint64_t first,
                                                std::size_t limit) const {
  require_consistent();
  return parts_->arrays.chunks(name, first, limit);
}

void transaction::set_chunk(std::string_view name, std::uint64_t number, const chunk_entry& entry) {
  require_consistent();
  parts_->arrays.set_chunk(name, number, entry);
}

bool transaction::erase_chunk(std::string_view name, std::uint64_t number) {
  require_consistent();
  return parts_->arrays.erase_chunk(name, number);
}

cut_chunks transaction::chunks_cut_by(std::string_view name, const dims& shape) {
  require_consistent();
  return parts_->arrays.chunks_cut_by(name, shape);
}

void transaction::resize(std::string_view name, const dims& shape,
                         std::span<const numbered_chunk> replaced) {
  require_consistent();
  parts_->arrays.resize(name, shape, replaced);
}

// ---- space and bytes --------------------------------------------------------------------------

extent transaction::allocate(std::uint64_t bytes, std::uint64_t overwritten) {
  require_consistent();
  return parts_->space.allocate(bytes, overwritten);
}

extent transaction::allocate_chunk(std::uint64_t stored_bytes) {
  require_consistent();
  return parts_->space.allocate_chunk(stored_bytes);
}

void transaction::release(const extent& unused) {
  require_active();
  parts_->space.give_back(unused);
}

void transaction::release_within(const extent& range) {
  require_active();
  parts_->space.give_back_within(range);
}

void transaction::refuse_commit() noexcept { parts_->note_failure(nullptr); }

void transaction::write(std::uint64_t offset, bytes_view bytes) const {
  const shared_file& file = parts_->held_writer.file();
  try {
    write_all(*file.data, offset, bytes, file.path);
  } catch (const error& failed) {
    parts_->note_failure(&failed);
    throw;
  } catch (...) {
    parts_->note_failure(nullptr);
    throw;
  }
}

void transaction::read(std::uint64_t offset, bytes_span into) const {
  const shared_file& file = parts_->held_writer.file();
  read_exact(*file.data, offset, into, file.path);
}

void transaction::read_chunk(const chunk_entry& entry, bytes_span into) const {
  const shared_file& file = parts_->held_writer.file();
  format::read_chunk(*file.data, file.path, entry, into);
}

int transaction::descriptor() const noexcept {
  return parts_->held_writer.file().data->descriptor();
}

std::shared_ptr<const void> transaction::descriptor_owner() const noexcept {
  return parts_->held_writer.file_owner();
}

void transaction::prepare_mapped_write(const extent& written) {
  require_active();
  parts_->space.reserve_rest_of_pages(written);
  parts_->held_writer.file().data->note_mapped_write(written.offset, written.bytes);
}

const file_identity& transaction::file() const noexcept {
  return parts_->held_writer.file().identity;
}

std::shared_ptr<shale::detail::write_back_record> transaction::write_back() const noexcept {
  return parts_->held_writer.file().write_back;
}

void transaction::check_written() const { parts_->held_writer.check_written(); }

const std::shared_ptr<writer>& transaction::writer_owner() const noexcept { return parts_->owner; }

bool transaction::has_its_name() const noexcept {
  const shared_file& file = parts_->held_writer.file();
  file_identity named;
  const os_result result =
      uninterrupted([&] { return file.place.files().identify(file.place.name(), named); });
  return result >= 0 && named == file.identity;
}

generation_view transaction::pin_base() const {
  require_active();
  const writer& held = parts_->held_writer;
  const shared_file& file = held.file();
  const pin_target target =
      parts_->on_unpublished ? pin_target::unpublished_base : pin_target::published_generation;
  auto hold = file.pins->take(file.place, file.identity, held.base().generation, target);
  if (!hold) {
    if (auto gone = find_replaced(file, "nothing was published: begin again"))
      throw *std::move(gone);
    throw name_changes_too_often(file.path);
  }
  return generation_view(std::make_shared<const generation_view::state>(
      held.file_owner(), std::move(hold), held.base()));
}

// ---- the end ----------------------------------------------------------------------------------

// commit.3 up to the sync: gives a place to everything that has none yet, and writes it. Each step
// needs the results of the steps before. The catalog holds the roots of the chunk indexes, so the
// indexes are written first. The root page gets its place before the space map is written, because
// the map accounts for it too. The map is written after all allocations (space.5), and the root
// page last, because it holds the roots of catalog and map.
superblock transaction::parts::write_generation() {
  const superblock& base = held_writer.base();
  space.give_back_unclaimed();
  root.catalog = arrays.write();
  root.array_count = arrays.array_count();
  const std::uint64_t root_offset = space.allocate_page();
  if (base.generation != 0) space.release({base.root.offset, page_bytes});
  root.space = space.write_map();

  page encoded = encode_root(root);
  const page_ref written = space.write_page(encoded, root_offset);
  space.write_pages();
  superblock next;
  next.generation = generation;
  next.root = {written.offset, page_bytes};
  next.root_checksum = written.checksum;
  next.end_of_file = space.end_of_file();
  next.incompatible = base.incompatible;
  next.read_only_compatible = base.read_only_compatible;
  return next;
}

std::uint64_t transaction::commit(const commit_steps& during) {
  require_active();
  parts& self = *parts_;
  self.require_whole();
  const auto give_up = [&] {
    if (self.active && during.before_release) during.before_release(commit_outcome::failed);
    abort();
  };
  try {
    self.held_writer.check_written();
    const superblock next = self.write_generation();
    self.held_writer.make_size_durable(next.end_of_file);
    self.held_writer.sync_data();
    if (during.after_sync) during.after_sync();
    self.held_writer.publish(next);
    self.space.remember(self.root.space);
    self.active = false;
    if (during.before_release) during.before_release(commit_outcome::durable);
    self.held_writer.announce_and_release(next);
  } catch (error& failed) {
    give_up();
    failed.add_context(fmt::format("commit generation {}", self.generation));
    throw;
  } catch (...) {
    give_up();
    throw;
  }
  return self.generation;
}

// Runs a step of commit_unpublished. If it fails, the transaction is aborted.
template <class Step>
void transaction::or_abort(Step&& step) {
  try {
    step();
  } catch (error& failed) {
    abort();
    failed.add_context(fmt::format("commit generation {}", parts_->generation));
    throw;
  } catch (...) {
    abort();
    throw;
  }
}

// commit.10
void transaction::write_unpublished() {
  require_active();
  parts& self = *parts_;
  self.require_whole();
  or_abort([&] {
    self.held_writer.check_written();
    const superblock next = self.write_generation();
    self.held_writer.make_size_durable(next.end_of_file);
    self.unpublished = next;
  });
}

void transaction::hand_over() {
  require_active();
  parts& self = *parts_;
  if (!self.unpublished)
    throw error(errc::invalid_argument, "the generation is not written yet",
                {"file " + self.held_writer.file().path});
  or_abort([&] { self.held_writer.hand_over(*self.unpublished); });
  self.space.remember(self.root.space);
  self.active = false;
}

std::uint64_t transaction::commit_unpublished() {
  write_unpublished();
  hand_over();
  return parts_->generation;
}

void transaction::replace_by(const std::string& other) {
  require_active();
  // `other` is a copy of a published generation, perhaps of one before the base.
  if (parts_->on_unpublished)
    throw error(errc::busy, "earlier commits were not durable when the transaction began",
                {"file " + parts_->held_writer.file().path,
                 "a copy of the newest snapshot may lack them: wait for them, and begin again"});
  auto not_durable = parts_->held_writer.give_name_to(other);
  parts_->active = false;
  if (not_durable) throw *std::move(not_durable);
}

void transaction::abort() noexcept {
  if (!active()) return;
  parts_->active = false;
  parts_->held_writer.release();
}

std::uint64_t transaction::metadata_bytes_written() const noexcept {
  return parts_->held_writer.metadata_bytes() + parts_->space.metadata_bytes();
}

transaction begin_on_written(std::shared_ptr<writer> held) {
  return with_context("begin transaction", [&] {
    if (held->unpublished_count() >= unpublished_max)
      throw error(errc::busy, "too many generations are not published yet",
                  {"file " + held->file().path, fmt::format("at most {}", unpublished_max)});
    held->adopt_written();
    return transaction(std::move(held));
  });
}

}  // namespace shale::format
