// Changes the arrays of the generation being made: the catalog and the chunk indexes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/bytes/types.hpp"
#include "format/catalog/array_record.hpp"
#include "format/chunks/chunk_entry.hpp"
#include "format/chunks/cut_chunks.hpp"
#include "format/pages/page_reader.hpp"
#include "format/pages/tree.hpp"
#include "format/transaction/generation_space.hpp"
#include "shale/level_entry.hpp"

namespace shale::format {

/// The members do the work of the members of `transaction` that have the same names.
class changed_arrays {
 public:
  /// Starts with the catalog of the base generation, from which `generation` is being made.
  changed_arrays(page_reader& reader, generation_space& space, page_ref catalog,
                 std::uint64_t array_count, std::uint64_t generation) noexcept;

  /// The error code of a change that has failed half-way, if there is one. In that case the trees
  /// contradict each other and must not be committed.
  std::optional<errc> broken() const noexcept { return broken_; }

  std::uint64_t array_count() const noexcept { return array_count_; }

  std::optional<array_record> find(std::string_view name) const;
  std::vector<std::string> list(std::string_view prefix, std::string_view after,
                                std::size_t limit) const;
  std::vector<level_entry> children(std::string_view level, std::string_view after,
                                    std::size_t limit) const;
  void put(array_record record);
  bool erase(std::string_view name);
  void rename(std::string_view from, std::string_view to);

  std::optional<chunk_entry> find_chunk(std::string_view name, std::uint64_t number);
  std::vector<numbered_chunk> chunks(std::string_view name, std::uint64_t first, std::size_t limit);
  void set_chunk(std::string_view name, std::uint64_t number, const chunk_entry& entry);
  bool erase_chunk(std::string_view name, std::uint64_t number);
  cut_chunks chunks_cut_by(std::string_view name, const dims& shape);
  void resize(std::string_view name, const dims& shape, std::span<const numbered_chunk> replaced);

  /// Writes the changed indexes, then the catalog, which holds their roots. Returns the catalog's
  /// root.
  page_ref write();

 private:
  /// A chunked array whose index is open. Its record is newer than the catalog's.
  struct open_array {
    array_record record;
    tree index;
    bool changed = false;
  };

  template <class Body>
  void change(Body&& body);
  tree index_of(const array_record& record);
  open_array& open(std::string_view name);
  std::optional<chunk_entry> find_chunk(const open_array& array, std::uint64_t number) const;
  void forget_chunk(open_array& array, const chunk_entry& replaced);
  void replace_chunk(open_array& array, const numbered_chunk& made);
  void renumber(open_array& array, const chunked_layout& layout);
  void store(const array_record& record);
  void drop_chunks(const array_record& record);
  void drop_layout(const array_record& record);

  page_reader* reader_;
  generation_space* space_;
  std::uint64_t generation_;
  tree catalog_;
  std::uint64_t array_count_;
  std::map<std::string, open_array, std::less<>> open_;
  std::optional<errc> broken_;
};

}  // namespace shale::format
