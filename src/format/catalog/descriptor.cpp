#include "format/catalog/descriptor.hpp"

#include <fmt/format.h>

#include "core/printable.hpp"
#include "descriptor_generated.h"
#include "format/bytes/file_layout.hpp"
#include "shale/error.hpp"

namespace shale::format {
namespace {

// ---- from stored bytes ------------------------------------------------------------------------

[[noreturn]] void throw_corrupt_descriptor(const std::string& reason) {
  throw error(errc::corrupt, "an array descriptor is damaged", {reason});
}

[[noreturn]] void throw_unsupported(const std::string& reason) {
  throw error(errc::unsupported, "an array is from a later version", {reason});
}

// FlatBuffers verifies the alignment of a vector's length, but not that of its elements.
template <class T>
void require_aligned(const flatbuffers::Vector<T>& stored, const char* field) {
  if (stored.size() > 0 &&
      reinterpret_cast<std::uintptr_t>(stored.Data()) % sizeof(std::uint64_t) != 0)
    throw_corrupt_descriptor(fmt::format("{} is misaligned", field));
}

dims to_dims(const flatbuffers::Vector<std::uint64_t>* stored, const char* field) {
  dims values;
  if (stored == nullptr) return values;
  require_aligned(*stored, field);
  if (stored->size() > rank_max)
    throw_corrupt_descriptor(fmt::format("{} of rank {}", field, stored->size()));
  for (const std::uint64_t value : *stored) {
    if (value > static_cast<std::uint64_t>(INT64_MAX))
      throw_corrupt_descriptor(fmt::format("{} holds {}", field, value));
    values.push_back(static_cast<index_t>(value));
  }
  return values;
}

extent to_extent(const stored::Extent* stored, std::uint64_t end_of_file, const char* field) {
  if (stored == nullptr) return {};
  const extent range{stored->offset(), stored->bytes()};
  if (range == extent{}) return range;
  if (range.offset < first_extent_offset || range.offset % page_bytes != 0 ||
      range.offset > end_of_file || range.bytes > end_of_file - range.offset)
    throw_corrupt_descriptor(fmt::format("{} at {} with {} bytes is not inside the file's {} bytes",
                                         field, range.offset, range.bytes, end_of_file));
  return range;
}

checksum128 to_checksum(const stored::Checksum* stored) {
  return stored == nullptr ? checksum128{} : checksum128{stored->low(), stored->high()};
}

// A list may name one range of the file many times. So the extents' length is compared with that of
// the file, which bounds what a file can make a reader read.
dense_layout to_dense(const stored::Dense& stored, std::uint64_t end_of_file) {
  dense_layout dense;
  if (const auto* const extents = stored.extents()) {
    require_aligned(*extents, "the list of extents");
    std::uint64_t left = end_of_file;
    for (const stored::Extent* const piece : *extents) {
      dense.extents.push_back(to_extent(piece, end_of_file, "an extent"));
      const std::uint64_t bytes = dense.extents.back().bytes;
      if (bytes > left) throw_corrupt_descriptor("its extents are longer than the file together");
      left -= bytes;
    }
  }
  dense.checksums = to_extent(stored.checksums(), end_of_file, "the checksums");
  dense.checksums_checksum = to_checksum(stored.checksums_checksum());
  return dense;
}

chunked_layout to_chunked(const stored::Chunked& stored) {
  chunked_layout chunked;
  chunked.chunk_shape = to_dims(stored.chunk_shape(), "the chunk shape");
  chunked.grid_capacity = to_dims(stored.grid_capacity(), "the grid capacity");
  if (const auto* const stages = stored.stages()) {
    for (const stored::Stage* const stage : *stages) {
      const stage_facts* const known = find_stage(stage->kind());
      if (known == nullptr)
        throw_unsupported(fmt::format("codec stage {} is unknown", stage->kind()));
      chunked.stages.push_back({known->kind, stage->parameter()});
    }
  }
  if (const stored::PageRef* const index = stored.index())
    chunked.index = {index->offset(), to_checksum(&index->checksum())};
  chunked.chunk_count = stored.chunk_count();
  chunked.stored_bytes = stored.stored_bytes();
  return chunked;
}

// FlatBuffers lets many tables share their values, and lets a vector name one table many times. So
// the attributes' length is compared with that of the descriptor, which bounds what a file can make
// a reader allocate.
std::vector<std::pair<std::string, std::string>> to_attributes(
    const flatbuffers::Vector<flatbuffers::Offset<stored::Attribute>>& notes,
    std::size_t descriptor_bytes) {
  std::vector<std::pair<std::string, std::string>> attributes;
  std::size_t left = descriptor_bytes;
  for (const stored::Attribute* const note : notes) {
    const auto* const value = note->value();
    const std::size_t bytes = note->key()->size() + (value == nullptr ? 0 : value->size());
    if (bytes > left) throw_corrupt_descriptor("its attributes are longer than it is");
    left -= bytes;
    attributes.emplace_back(
        note->key()->str(),
        value == nullptr
            ? std::string()
            : std::string(reinterpret_cast<const char*>(value->data()), value->size()));
  }
  return attributes;
}

// ---- to stored bytes --------------------------------------------------------------------------

std::vector<std::uint64_t> from_dims(const dims& values) { return {values.begin(), values.end()}; }

stored::Extent from_extent(const extent& range) { return {range.offset, range.bytes}; }

stored::Checksum from_checksum(const checksum128& checksum) {
  return {checksum.low, checksum.high};
}

flatbuffers::Offset<stored::Dense> store_layout(flatbuffers::FlatBufferBuilder& builder,
                                                const dense_layout& dense) {
  std::vector<stored::Extent> extents;
  for (const extent& piece : dense.extents) extents.push_back(from_extent(piece));
  const stored::Extent checksums = from_extent(dense.checksums);
  const stored::Checksum checksum = from_checksum(dense.checksums_checksum);
  return stored::CreateDenseDirect(builder, &extents, &checksums, &checksum);
}

flatbuffers::Offset<stored::Chunked> store_layout(flatbuffers::FlatBufferBuilder& builder,
                                                  const chunked_layout& chunked) {
  const auto chunk_shape = from_dims(chunked.chunk_shape);
  const auto capacity = from_dims(chunked.grid_capacity);
  std::vector<flatbuffers::Offset<stored::Stage>> stages;
  for (const codec_stage& stage : chunked.stages)
    stages.push_back(
        stored::CreateStage(builder, static_cast<std::uint8_t>(stage.kind), stage.parameter));
  const stored::PageRef index(chunked.index.offset, from_checksum(chunked.index.checksum));
  return stored::CreateChunkedDirect(builder, &chunk_shape, &capacity, &stages, &index,
                                     chunked.chunk_count, chunked.stored_bytes);
}

}  // namespace

std::vector<std::byte> encode_descriptor(const array_record& record) {
  flatbuffers::FlatBufferBuilder builder(512);
  const auto name = builder.CreateString(record.name);
  const auto shape = builder.CreateVector(from_dims(record.shape));
  const auto fill = builder.CreateVector(
      reinterpret_cast<const std::uint8_t*>(record.fill_value.data()), record.fill_value.size());
  std::vector<flatbuffers::Offset<stored::Attribute>> notes;
  for (const auto& [key, value] : record.attributes) {
    const auto stored_key = builder.CreateString(key);
    notes.push_back(stored::CreateAttribute(
        builder, stored_key,
        builder.CreateVector(reinterpret_cast<const std::uint8_t*>(value.data()), value.size())));
  }
  const auto attributes = builder.CreateVector(notes);
  flatbuffers::Offset<stored::Dense> dense;
  flatbuffers::Offset<stored::Chunked> chunked;
  if (record.is_dense()) dense = store_layout(builder, record.dense());
  else chunked = store_layout(builder, record.chunked());
  stored::FinishArrayBuffer(
      builder, stored::CreateArray(builder, name, static_cast<std::uint8_t>(record.dtype), shape,
                                   fill, record.live, dense, chunked, attributes, record.created,
                                   record.modified));
  const auto* const begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {begin, begin + builder.GetSize()};
}

array_record decode_descriptor(bytes_view stored_bytes, std::uint64_t end_of_file) {
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(stored_bytes.data()),
                                 stored_bytes.size());
  if (!stored::VerifyArrayBuffer(verifier))
    throw_corrupt_descriptor("it is not a valid FlatBuffer");
  const stored::Array& stored = *stored::GetArray(stored_bytes.data());

  array_record record;
  if (stored.name() == nullptr) throw_corrupt_descriptor("it has no name");
  record.name = stored.name()->str();
  const auto type = dtype_from_code(stored.dtype());
  if (!type)
    throw_unsupported(fmt::format("array {} has dtype {}", shale::detail::in_quotes(record.name),
                                  stored.dtype()));
  record.dtype = *type;
  record.shape = to_dims(stored.shape(), "the shape");
  if (const auto* const fill = stored.fill_value()) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(fill->data());
    record.fill_value.assign(bytes, bytes + fill->size());
  }
  if (stored.live())
    throw_unsupported(
        fmt::format("array {} is a live array", shale::detail::in_quotes(record.name)));
  if (stored.dense() != nullptr && stored.chunked() != nullptr)
    throw_corrupt_descriptor("it is both dense and chunked");
  if (stored.dense() != nullptr) record.layout = to_dense(*stored.dense(), end_of_file);
  else if (stored.chunked() != nullptr) record.layout = to_chunked(*stored.chunked());
  else
    throw_unsupported(
        fmt::format("array {} has an unknown layout", shale::detail::in_quotes(record.name)));
  if (stored.attributes() != nullptr)
    record.attributes = to_attributes(*stored.attributes(), stored_bytes.size());
  record.created = stored.created();
  record.modified = stored.modified();
  if (const auto problem = problem_of(record)) throw_corrupt_descriptor(*problem);
  return record;
}

}  // namespace shale::format
