// Reads and changes one 4 KiB page of a tree: a header, a directory of cells, and the cells in the
// order of their keys. Its entries, its place and its generation determine every byte of it.
// docs/container-format.md, "Tree pages", is this file in prose.
//
// Invariants
//   page.1  keys are strictly increasing byte strings of at most 1024 bytes; a branch's first key
//           is empty: it takes its lower bound from its parent
//   page.2  any three cells fit in a page, so that a page that overflows can always be split in two
//   page.3  every byte that no cell or header field uses is zero
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "format/bytes/byte_order.hpp"
#include "format/bytes/types.hpp"
#include "format/pages/header.hpp"

namespace shale::format {

/// The tree that a page belongs to. Each page stores it, so that a reference to a page of another
/// tree is recognised as damage.
enum class tree_kind : std::uint8_t { root = 0, catalog = 1, chunks = 2, space = 3, retained = 4 };

enum class page_kind : std::uint8_t { leaf = 1, branch = 2, root = 3 };

/// Refers to a value that is too long for a page. The value has an extent of its own, padded with
/// zeros to whole pages.
struct overflow_ref {
  extent range;
  checksum128 checksum;  ///< of the value's bytes
};

inline constexpr std::size_t overflow_ref_bytes = 32;

inline constexpr std::size_t key_bytes_max = 1024;

/// Longest overflow value. It bounds the memory that a damaged file makes a reader allocate.
inline constexpr std::uint64_t value_bytes_max = 64u << 20;

/// Levels above the leaves that a tree may have. A child is exactly one level below its parent, so
/// following references always ends.
inline constexpr std::uint8_t level_max = 23;

class page {
 public:
  static constexpr std::size_t header_bytes = 32;
  static constexpr std::size_t body_bytes = page_bytes - header_bytes;
  static constexpr std::size_t slot_bytes = 2;

  /// Largest leaf cell, slot not included (page.2).
  static constexpr std::size_t cell_bytes_max = body_bytes / 3 - slot_bytes;

  static constexpr std::size_t leaf_cell_header_bytes = 4;
  static constexpr std::size_t branch_cell_header_bytes = 4 + page_ref_bytes;

  /// An empty page.
  page(tree_kind tree, page_kind kind, std::uint8_t level) noexcept;

  /// Describes the first violation of page.1 to page.3 in the bytes; nothing if they are sound.
  static std::optional<std::string> problem(bytes_view bytes);

  /// A page with these bytes, which `problem` has found to be sound.
  explicit page(bytes_view sound_bytes) noexcept;

  tree_kind tree() const noexcept { return static_cast<tree_kind>(bytes_[tree_at]); }
  page_kind kind() const noexcept { return static_cast<page_kind>(bytes_[kind_at]); }
  std::uint8_t level() const noexcept { return static_cast<std::uint8_t>(bytes_[level_at]); }
  bool is_leaf() const noexcept { return kind() == page_kind::leaf; }
  std::uint64_t generation() const noexcept { return load<std::uint64_t>(at(generation_at)); }
  std::uint64_t offset() const noexcept { return load<std::uint64_t>(at(offset_at)); }
  bytes_view bytes() const noexcept { return bytes_; }

  std::size_t count() const noexcept { return load<std::uint16_t>(at(count_at)); }
  bool empty() const noexcept { return count() == 0; }

  /// Bytes of slots and cells.
  std::size_t used_bytes() const noexcept { return load<std::uint32_t>(at(end_at)) - header_bytes; }

  // ---- entries; 0 <= i < count() ----------------------------------------------------------------

  std::string_view key(std::size_t i) const noexcept;

  /// Leaf: the value, unless it is in an overflow extent.
  bytes_view value(std::size_t i) const noexcept;
  bool overflows(std::size_t i) const noexcept;
  overflow_ref overflow(std::size_t i) const noexcept;

  /// Branch.
  page_ref child(std::size_t i) const noexcept;

  /// First entry whose key is not below `wanted`; count() if all are.
  std::size_t lower_bound(std::string_view wanted) const noexcept;

  /// Branch: the child whose keys include `wanted`.
  std::size_t child_for(std::string_view wanted) const noexcept;

  // ---- changing ---------------------------------------------------------------------------------

  /// Bytes of a cell with its slot.
  static std::size_t leaf_entry_bytes(std::size_t key, std::size_t value) noexcept {
    return slot_bytes + leaf_cell_header_bytes + key + value;
  }
  static std::size_t branch_entry_bytes(std::size_t key) noexcept {
    return slot_bytes + branch_cell_header_bytes + key;
  }

  bool fits(std::size_t entry_bytes) const noexcept {
    return used_bytes() + entry_bytes <= body_bytes;
  }

  // The caller keeps the order of the keys, and checks `fits` before.
  void insert_value(std::size_t i, std::string_view key, bytes_view value);
  void insert_overflow(std::size_t i, std::string_view key, const overflow_ref& ref);
  void insert_child(std::size_t i, std::string_view key, const page_ref& ref);
  void set_child(std::size_t i, const page_ref& ref) noexcept;
  void erase(std::size_t i);

  /// Appends entries first <= i < last of `other`, which has this page's kind.
  void append(const page& other, std::size_t first, std::size_t last);

  /// Keeps the first `count` entries.
  void keep(std::size_t count);

  /// Bytes of entry i with its slot.
  std::size_t entry_bytes(std::size_t i) const noexcept;

  void stamp(std::uint64_t generation, std::uint64_t offset) noexcept {
    store(at(generation_at), generation);
    store(at(offset_at), offset);
  }

  /// Raw bytes after the header, for the root page, which has no cells.
  std::byte* body() noexcept { return bytes_.data() + header_bytes; }
  const std::byte* body() const noexcept { return bytes_.data() + header_bytes; }

 private:
  static constexpr std::size_t kind_at = 0;
  static constexpr std::size_t level_at = 1;
  static constexpr std::size_t count_at = 2;
  static constexpr std::size_t end_at = 4;
  static constexpr std::size_t generation_at = 8;
  static constexpr std::size_t offset_at = 16;
  static constexpr std::size_t tree_at = 24;
  static constexpr std::uint16_t overflow_bit = 0x8000;

  std::byte* at(std::size_t place) noexcept { return bytes_.data() + place; }
  const std::byte* at(std::size_t place) const noexcept { return bytes_.data() + place; }
  std::size_t cell_at(std::size_t i) const noexcept {
    return load<std::uint16_t>(at(header_bytes + i * slot_bytes));
  }
  std::size_t cell_bytes(std::size_t i) const noexcept;
  void set_count(std::size_t count) noexcept {
    store(at(count_at), static_cast<std::uint16_t>(count));
  }
  void set_end(std::size_t end) noexcept { store(at(end_at), static_cast<std::uint32_t>(end)); }
  std::byte* open_gap(std::size_t i, std::size_t cell_bytes);

  std::array<std::byte, page_bytes> bytes_;
};

}  // namespace shale::format
