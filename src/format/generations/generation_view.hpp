// One generation of a container: immutable, and pinned for as long as a copy of its view lives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/bytes/types.hpp"
#include "format/catalog/array_record.hpp"
#include "format/chunks/chunk_entry.hpp"
#include "format/os/file_system.hpp"
#include "shale/level_entry.hpp"

namespace shale::format {

/// A pinned generation. Copies share it.
/// Threads  every const member may be called from any thread, copies may be used by different ones
/// Lifetime pins the generation until the last copy is destroyed; keeps its file open, even when
///          another file has taken the name
class generation_view {
 public:
  struct state;
  explicit generation_view(std::shared_ptr<const state> made) noexcept : state_(std::move(made)) {}

  std::uint64_t generation() const noexcept;

  /// Bytes of the file that this generation may refer to.
  std::uint64_t end_of_file() const noexcept;

  /// Arrays in the catalog. O(1).
  std::uint64_t array_count() const noexcept;

  /// The array of that name, or nothing.
  /// Cost     the pages of one path of the catalog; cached ones are not read again
  /// Throws   corrupt, io, unsupported (from a later version)
  std::optional<array_record> find(std::string_view name) const;

  /// Up to `limit` names in byte order that start with `prefix` and come after `after`.
  /// Throws   corrupt (also if one of them is no name of an array), io
  std::vector<std::string> list(std::string_view prefix = {}, std::string_view after = {},
                                std::size_t limit = SIZE_MAX) const;

  /// See list_children.
  std::vector<level_entry> children(std::string_view level = {}, std::string_view after = {},
                                    std::size_t limit = SIZE_MAX) const;

  /// The entry of chunk `number` of an array of this generation; nothing if the chunk is absent and
  /// so reads as the fill value. The entry has been checked against the file's end and the chunk's
  /// size.
  std::optional<chunk_entry> find_chunk(const array_record& record, std::uint64_t number) const;

  /// Up to `limit` chunks that are present, numbers from `first` on, in order.
  std::vector<numbered_chunk> chunks(const array_record& record, std::uint64_t first = 0,
                                     std::size_t limit = SIZE_MAX) const;

  /// Reads a chunk's stored bytes (`into` is entry.stored_bytes long) and verifies them.
  /// Throws   corrupt naming the byte offset, io
  void read_chunk(const chunk_entry& entry, bytes_span into) const;

  /// Reads bytes of the file, and verifies nothing. Throws io, also if the file ends before them.
  void read(std::uint64_t offset, bytes_span into) const;

  /// The checksums of up to `count` segments of a dense array from `first` on, themselves verified;
  /// empty if it has none.
  /// Cost     reads all of the array's checksums (8 bytes a segment), and keeps the requested ones
  std::vector<std::uint64_t> dense_checksums(const array_record& record, std::uint64_t first = 0,
                                             std::uint64_t count = UINT64_MAX) const;

  /// The file that the generation lies in. Another file may get the same identity once
  /// `opened_file` has expired.
  file_identity file() const noexcept;

  /// Expires when the file is closed: when its container, and all views of it, are destroyed.
  std::weak_ptr<const void> opened_file() const noexcept;

  /// The descriptor for mappings of this generation's extents; -1 if there is none. Its description
  /// holds no lock. A mapping must keep a copy of this view alive.
  int descriptor() const noexcept;

  /// The state, for other classes of this floor.
  const state& shared() const noexcept { return *state_; }

 private:
  std::shared_ptr<const state> state_;
};

}  // namespace shale::format
