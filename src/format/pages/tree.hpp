// The tree: a copy-on-write B+tree from byte strings to byte strings, in which each reference to a
// page carries the page's checksum. Catalog, chunk indexes, space map and retained generations are
// such trees.
//
// Invariants
//   tree.1  a page that a committed generation refers to is never changed: changing it copies it,
//           and its place is released
//   tree.2  every page is verified against the checksum in its parent before any byte of it is used,
//           unless this process wrote it
//   tree.3  a child is one level below its parent, and its keys lie between its parent's
//           separators: so a walk ends and meets each key once, also in a hostile file
//   tree.4  changed pages stay in memory until `write`, which goes bottom-up: a page is written
//           when the checksums of its children are known
//
// It does not know where pages come from or go to: a `page_source` reads and verifies them, a
// `page_sink` finds places for them and writes them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/pages/page.hpp"

namespace shale::format {

/// Reads the pages of trees.
class page_source {
 public:
  virtual ~page_source() = default;

  /// The page that a reference leads to, verified (tree.2). Throws corrupt, io.
  virtual std::shared_ptr<const page> load_page(const page_ref& ref) = 0;

  /// The value that an overflow reference leads to, verified. Throws corrupt, io.
  virtual std::vector<std::byte> load_overflow(const overflow_ref& ref) = 0;

  /// Throws the error for a page that contradicts the tree that it stands in.
  [[noreturn]] virtual void fail(const page_ref& ref, const std::string& problem) = 0;
};

/// Takes the pages of changed trees.
class page_sink {
 public:
  virtual ~page_sink() = default;

  /// The generation being made no longer refers to the range.
  virtual void release(const extent& range) = 0;

  /// Finds a place for a long value and writes it.
  virtual overflow_ref store_overflow(bytes_view value) = 0;

  /// Stamps the page with its place and writes it there.
  virtual page_ref write_page(page& made, std::uint64_t offset) = 0;
};

/// The tree below one root, and the changes that were made to it since.
/// Threads  const members from any thread if `source` allows it and nobody changes the tree
class tree {
 public:
  /// `sink` is needed for changing only. Both outlive the tree.
  tree(tree_kind kind, page_source& source, page_ref root, page_sink* sink = nullptr) noexcept;
  tree(tree&&) noexcept;
  tree& operator=(tree&&) noexcept;
  ~tree();

  /// The value of `key`; nothing if the tree does not have it. Reads one path.
  std::optional<std::vector<std::byte>> find(std::string_view key) const;

  class cursor;

  /// The first entry at or above `key`.
  cursor seek(std::string_view key) const;

  /// The last entry at or below `key`.
  cursor seek_floor(std::string_view key) const;

  bool empty() const noexcept;

  /// Calls `function(extent)` for every page and overflow extent; verifies each page and value.
  /// Cost     reads the whole tree
  void for_each_extent(const std::function<void(const extent&)>& function) const;

  /// Sets the value of `key` (1 to 1024 bytes). Returns whether the key is new.
  /// Throws   invalid_argument (value_bytes_max), corrupt, io
  bool insert(std::string_view key, bytes_view value);

  /// Returns whether the key was there.
  bool erase(std::string_view key);

  /// Changed pages that have no place yet.
  std::size_t unplaced() const noexcept;

  /// Gives places to all changed pages that have none: takes `unplaced()` offsets.
  void place(std::span<const std::uint64_t> offsets) noexcept;

  /// Writes all changed pages, each of which has a place.
  /// Returns  the new root; none if the tree is empty
  page_ref write();

  /// Releases every page and overflow extent, leaving the tree empty.
  /// Cost     reads the whole tree
  void clear();

 private:
  struct node;
  struct split;
  struct step;

  step open_root() const;
  step open_child(const step& parent, std::size_t i) const;
  std::vector<step> descend(std::string_view key) const;

  std::unique_ptr<node> copy_for_change(const page_ref& ref, const page& clean);
  node& change_child(node& parent, std::size_t i, const step& above);
  std::optional<split> insert_into(node& subtree, const step& here, std::string_view key,
                                   bytes_view value, bool& is_new);
  std::optional<split> insert_value(node& target, std::string_view key, bytes_view value,
                                    bool& is_new);
  std::optional<split> insert_child(node& parent, std::size_t i, split made);
  bool erase_from(node& subtree, const step& here, std::string_view key);
  void rebalance(node& parent, const step& here, std::size_t i);
  void remove_child(node& parent, std::size_t i);
  void release(const node& dropped);
  step step_into(const step& above, std::size_t i) const;
  page_ref write(node& changed);
  void visit(const step& here, const std::function<void(const extent&)>& function,
             bool read_values) const;

  tree_kind kind_;
  page_source* source_;
  page_sink* sink_;
  page_ref clean_root_;         // if nothing is changed
  std::unique_ptr<node> root_;  // if something is
};

/// A position in a tree. Any change of the tree invalidates it.
class tree::cursor {
 public:
  cursor(cursor&&) noexcept;
  cursor& operator=(cursor&&) noexcept;
  ~cursor();

  /// False after the last entry (or before the first, from seek_floor).
  bool valid() const noexcept;

  std::string_view key() const noexcept;

  /// The value, fetched from its overflow extent if need be.
  std::vector<std::byte> value() const;

  /// The value without copying it; only for trees whose values are short by construction.
  /// Throws   corrupt if it is in an overflow extent
  bytes_view short_value() const;

  /// The overflow extent of the entry, if there is one.
  std::optional<overflow_ref> overflow() const noexcept;

  void next();

 private:
  friend class tree;
  explicit cursor(const tree& in) noexcept;
  void move_to_entry();  // moves up and right until it stands on an entry, or is at the end

  const tree* in_;
  std::vector<step> path_;  // from the root to a leaf; empty: not valid
};

}  // namespace shale::format
