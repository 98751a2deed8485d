// Manages the space of the generation being made: it takes extents from the file, gives them back,
// and writes pages and long values.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "format/bytes/types.hpp"
#include "format/chunks/chunk_entry.hpp"
#include "format/generations/shared_file.hpp"
#include "format/pages/page_reader.hpp"
#include "format/pages/tree.hpp"
#include "format/space/space_map.hpp"
#include "format/transaction/page_writes.hpp"

namespace shale::format {

/// Changed trees write their pages through it. `reader` must read the pages of the base generation.
/// Its end of file is moved when a long value is stored, so that the value can be read back.
class generation_space final : public page_sink {
 public:
  /// `map` is the base generation's space map. No byte of the protected generations is used again.
  /// Throws   corrupt, io
  generation_space(shared_file& file, page_reader& reader, page_ref map, std::uint64_t generation,
                   generation_set protected_generations);

  generation_space(const generation_space&) = delete;
  generation_space& operator=(const generation_space&) = delete;

  std::uint64_t end_of_file() const noexcept { return map_.end_of_file(); }

  /// How often space was taken so far (see space_map).
  std::uint64_t times_taken() const noexcept { return map_.times_taken(); }

  /// Bytes of pages and long values written so far.
  std::uint64_t metadata_bytes() const noexcept { return metadata_bytes_; }

  /// `out_of_memory` if memory ran out in the middle of a change. In that case the state
  /// contradicts itself and must not be committed.
  std::optional<errc> broken() const noexcept { return broken_; }

  // ---- extents: allocated first, then claimed when something refers to them, or given back ------

  /// Space for dense bytes or their checksums: aligned, reserved on the device. The caller writes
  /// the first `overwritten` bytes, whose old content is unspecified. The others read as zeros.
  /// Throws   out_of_space, io (also if the file has become shorter)
  extent allocate(std::uint64_t bytes, std::uint64_t overwritten = 0);

  /// Space for one chunk's stored bytes, next to this transaction's other chunks. Its old content
  /// is unspecified.
  /// Throws   invalid_argument (no size of a chunk), out_of_space, io (also if the file has become
  ///          shorter)
  extent allocate_chunk(std::uint64_t stored_bytes);

  /// The bytes of the file that the unclaimed extent at `offset` takes; 0 if there is none.
  std::uint64_t unclaimed_space(std::uint64_t offset) const;

  /// Whether the extent was allocated here for `space` bytes of the file, and is not claimed yet.
  bool can_claim(const extent& used, std::uint64_t space) const;

  /// Records that the generation refers to the extent. Throws invalid_argument unless `can_claim`.
  void claim(const extent& used, std::uint64_t space);

  /// Gives back an extent that nothing has claimed. Throws invalid_argument if it is not one.
  void give_back(const extent& unused);

  /// Gives back the extents that begin in a range of the file and that nothing has claimed.
  void give_back_within(const extent& range);

  /// Gives back all extents that nothing has claimed.
  void give_back_unclaimed();

  /// The generation no longer refers to the chunk.
  void release_chunk(const chunk_entry& entry);

  /// Reserves the rest of the extent's first and last page. A store through a mapping makes the
  /// file system allocate its whole page. If the system's pages are larger than the format's, that
  /// page also has bytes beside the extent. These may be a hole, and then the store would raise a
  /// signal on a full disk.
  /// Throws   out_of_space, io
  void reserve_rest_of_pages(const extent& mapped) const;

  // ---- pages ------------------------------------------------------------------------------------

  // A page that was written need not have reached the file before `write_pages` returns. Until then
  // it is read back from the cache of pages only.

  /// Gives places to all changed pages of a tree, and writes them. Returns the new root.
  /// Throws   as write_pages
  page_ref write(tree& changed);

  std::uint64_t allocate_page() { return map_.allocate_pages(1).front(); }

  /// Enters everything into the space map and writes the map. Nothing may be taken or given back
  /// afterwards. Returns the map's root.
  /// Throws   corrupt, and as write_pages
  page_ref write_map();

  /// Writes the pages that wait, neighbours by one call.
  /// Throws   out_of_space, io (also if the file has become shorter)
  void write_pages();

  /// The generation is the base of the next transaction, or was published: keeps what that one
  /// needs to know of the map with that root. Nothing else may be called afterwards.
  void remember(const page_ref& map) noexcept;

  // page_sink
  void release(const extent& range) override;
  overflow_ref store_overflow(bytes_view value) override;
  page_ref write_page(page& made, std::uint64_t offset) override;

 private:
  std::uint64_t require_no_loss();
  void forget_old_pages();
  void clear_last_page(const extent& chunk) const;
  void write_zeros(std::uint64_t first, std::uint64_t end) const;
  void clear(const extent& range) const;
  void punch(const extent& range) const;
  template <class Body>
  decltype(auto) change_space(Body&& body);

  shared_file* file_;
  page_reader* reader_;
  std::uint64_t generation_;
  tree map_tree_;
  space_map map_;
  std::uint64_t size_before_;                         // of the file, when the transaction began
  std::uint64_t size_seen_ = size_before_;            // at the last look
  std::map<std::uint64_t, std::uint64_t> unclaimed_;  // offset -> space
  page_writes page_writes_;
  std::uint64_t metadata_bytes_ = 0;
  std::optional<errc> broken_;
};

}  // namespace shale::format
