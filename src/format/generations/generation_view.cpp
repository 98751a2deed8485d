#include "format/generations/generation_view.hpp"

#include "format/catalog/catalog.hpp"
#include "format/catalog/dense_checksums.hpp"
#include "format/chunks/chunk_index.hpp"
#include "format/generations/generation_state.hpp"
#include "format/os/file_io.hpp"
#include "shale/error.hpp"

namespace shale::format {

std::uint64_t generation_view::generation() const noexcept { return state_->fields.generation; }

std::uint64_t generation_view::end_of_file() const noexcept { return state_->fields.end_of_file; }

std::uint64_t generation_view::array_count() const noexcept { return state_->root.array_count; }

std::optional<array_record> generation_view::find(std::string_view name) const {
  return find_array(state_->catalog, name, end_of_file());
}

std::vector<std::string> generation_view::list(std::string_view prefix, std::string_view after,
                                               std::size_t limit) const {
  return list_names(state_->catalog, prefix, after, limit);
}

std::vector<level_entry> generation_view::children(std::string_view level, std::string_view after,
                                                   std::size_t limit) const {
  return list_children(state_->catalog, level, after, limit);
}

std::optional<chunk_entry> generation_view::find_chunk(const array_record& record,
                                                       std::uint64_t number) const {
  require_chunked(record);
  const tree index(tree_kind::chunks, state_->reader, record.chunked().index);
  return format::find_chunk(index, record, number, end_of_file());
}

std::vector<numbered_chunk> generation_view::chunks(const array_record& record, std::uint64_t first,
                                                    std::size_t limit) const {
  require_chunked(record);
  const tree index(tree_kind::chunks, state_->reader, record.chunked().index);
  return list_chunks(index, record, first, limit, end_of_file());
}

void generation_view::read_chunk(const chunk_entry& entry, bytes_span into) const {
  format::read_chunk(*state_->file->data, state_->file->path, entry, into);
}

void generation_view::read(std::uint64_t offset, bytes_span into) const {
  read_exact(*state_->file->data, offset, into, state_->file->path);
}

std::vector<std::uint64_t> generation_view::dense_checksums(const array_record& record,
                                                            std::uint64_t first,
                                                            std::uint64_t count) const {
  if (!record.is_dense())
    throw error(errc::invalid_argument, "a chunked array has its checksums in its index",
                {"array '" + record.name + "'"});
  std::vector<std::uint64_t> sums;
  scan_dense_checksums(state_->reader, record, [&](std::uint64_t segment, std::uint64_t sum) {
    if (segment >= first && segment - first < count) sums.push_back(sum);
  });
  return sums;
}

file_identity generation_view::file() const noexcept { return state_->file->identity; }

std::weak_ptr<const void> generation_view::opened_file() const noexcept { return state_->file; }

int generation_view::descriptor() const noexcept { return state_->file->data->descriptor(); }

}  // namespace shale::format
