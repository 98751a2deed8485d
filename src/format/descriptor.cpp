#include "format/descriptor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "descriptor_generated.h"
#include "format/container_file.hpp"
#include "format/header.hpp"
#include "shale/error.hpp"

namespace shale::format {
namespace {

// Largest product of a grid's capacity: leaves the sign bit and one more alone.
constexpr std::uint64_t chunk_numbers_max = 1ull << 62;

std::optional<std::uint64_t> product(const dims& values, std::uint64_t start,
                                     std::uint64_t most) noexcept {
  for (const index_t value : values)
    if (value == 0) return 0;
  for (const index_t value : values) {
    const auto next = checked_mul(start, static_cast<std::uint64_t>(value));
    if (!next || *next > most) return std::nullopt;
    start = *next;
  }
  return start;
}

// One character of UTF-8 at `at`, which moves behind it; nothing if it is malformed.
// Source: the Unicode Standard, table 3-7 (well-formed byte sequences).
std::optional<char32_t> next_character(std::string_view text, std::size_t& at) noexcept {
  const auto lead = static_cast<unsigned char>(text[at++]);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xc2 && lead <= 0xdf   ? 1
                   : lead >= 0xe0 && lead <= 0xef ? 2
                   : lead >= 0xf0 && lead <= 0xf4 ? 3
                                                  : 0;
  if (more == 0) return std::nullopt;
  char32_t value = lead & (0x3fu >> more);
  for (int i = 0; i < more; ++i) {
    if (at == text.size()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(text[at++]);
    if ((byte & 0xc0) != 0x80) return std::nullopt;
    value = (value << 6) | (byte & 0x3fu);
  }
  const bool overlong = (more == 2 && value < 0x800) || (more == 3 && value < 0x10000);
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (overlong || surrogate || value > 0x10ffff) return std::nullopt;
  return value;
}

std::optional<std::string> problem_of_name(std::string_view name) {
  if (name.empty() || name.size() > name_bytes_max)
    return fmt::format("a name has 1 to {} bytes, got {}", name_bytes_max, name.size());
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t start = at;
    const auto character = next_character(name, at);
    if (!character) return fmt::format("a name is UTF-8, byte {} is not", start);
    if (*character < 0x20 || (*character >= 0x7f && *character < 0xa0))
      return fmt::format("a name has no control characters, byte {} is one", start);
  }
  return std::nullopt;
}

std::optional<std::string> problem_of(const array_record& record, const dense_layout& dense) {
  const std::uint64_t bytes = array_bytes(record);
  std::uint64_t capacity = 0;
  for (std::size_t i = 0; i < dense.extents.size(); ++i) {
    const extent& piece = dense.extents[i];
    if (piece.bytes == 0) return fmt::format("extent {} is empty", i);
    if (capacity >= bytes) return fmt::format("extent {} holds no element", i);
    if (i + 1 < dense.extents.size() && piece.bytes % dense_alignment(piece.bytes) != 0)
      return fmt::format("extent {} has {} bytes, not a multiple of its alignment {}", i,
                         piece.bytes, dense_alignment(piece.bytes));
    const auto sum = checked_add(capacity, piece.bytes);
    if (!sum) return "its extents are too long";
    capacity = *sum;
  }
  if (capacity < bytes)
    return fmt::format("its extents hold {} bytes, its shape needs {}", capacity, bytes);
  const std::uint64_t wanted = ceil_div(bytes, dense_segment_bytes) * 8;
  if (dense.checksums.bytes != 0 && dense.checksums.bytes != wanted)
    return fmt::format("its checksums have {} bytes, its shape needs {}", dense.checksums.bytes,
                       wanted);
  return std::nullopt;
}

std::optional<std::string> problem_of(const array_record& record, const chunked_layout& chunked) {
  const index_t rank = record.shape.size();
  if (chunked.chunk_shape.size() != rank || chunked.grid_capacity.size() != rank)
    return fmt::format("shape {}, chunk shape {} and grid capacity {} differ in rank",
                       to_string(record.shape), to_string(chunked.chunk_shape),
                       to_string(chunked.grid_capacity));
  for (index_t axis = 0; axis < rank; ++axis) {
    if (chunked.chunk_shape[axis] < 1)
      return fmt::format("chunk length {} along axis {}", chunked.chunk_shape[axis], axis);
    const index_t needed = ceil_div(record.shape[axis], chunked.chunk_shape[axis]);
    if (chunked.grid_capacity[axis] < std::max<index_t>(needed, 1))
      return fmt::format("grid capacity {} along axis {}, its shape needs {}",
                         chunked.grid_capacity[axis], axis, std::max<index_t>(needed, 1));
  }
  if (!product(chunked.chunk_shape, item_bytes(record.dtype), chunk_bytes_max))
    return fmt::format("chunks of shape {} have more than {} bytes", to_string(chunked.chunk_shape),
                       chunk_bytes_max);
  if (!product(chunked.grid_capacity, 1, chunk_numbers_max))
    return fmt::format("grid capacity {} is too large", to_string(chunked.grid_capacity));
  try {
    const codec checked(chunked.stages, record.dtype);
  } catch (const error& failure) {
    return failure.what();
  }
  return std::nullopt;
}

std::optional<std::string> problem_of(const array_record& record) {
  if (auto problem = problem_of_name(record.name)) return problem;
  for (index_t axis = 0; axis < record.shape.size(); ++axis)
    if (record.shape[axis] < 0)
      return fmt::format("length {} along axis {}", record.shape[axis], axis);
  // Strides step over axes of length 0 as if it were 1.
  dims stepped = record.shape;
  for (index_t& length : stepped) length = std::max<index_t>(length, 1);
  if (!product(stepped, item_bytes(record.dtype), file_bytes_max))
    return fmt::format("shape {} of {} is too large", to_string(record.shape), name(record.dtype));
  if (record.fill_value.size() != item_bytes(record.dtype))
    return fmt::format("its fill value has {} bytes, an element of {} has {}",
                       record.fill_value.size(), name(record.dtype), item_bytes(record.dtype));
  if (record.dtype == dtype::boolean && record.fill_value[0] > std::byte{1})
    return fmt::format("its fill value is {}, a bool is 0 or 1",
                       std::to_integer<int>(record.fill_value[0]));
  if (record.live) return "live arrays are of a later version";
  for (std::size_t i = 1; i < record.attributes.size(); ++i)
    if (record.attributes[i].first <= record.attributes[i - 1].first)
      return fmt::format("attribute {} is out of order", i);
  return std::visit([&](const auto& layout) { return problem_of(record, layout); }, record.layout);
}

// ---- from stored bytes ------------------------------------------------------------------------

[[noreturn]] void throw_corrupt_descriptor(const std::string& why) {
  throw error(errc::corrupt, "an array descriptor is damaged", {why});
}

[[noreturn]] void throw_unsupported(const std::string& why) {
  throw error(errc::unsupported, "an array is from a later version", {why});
}

// FlatBuffers verifies where a vector's length lies, not where its elements do.
template <class T>
void require_aligned(const flatbuffers::Vector<T>& stored, const char* what) {
  if (stored.size() > 0 &&
      reinterpret_cast<std::uintptr_t>(stored.Data()) % sizeof(std::uint64_t) != 0)
    throw_corrupt_descriptor(fmt::format("{} is misaligned", what));
}

dims to_dims(const flatbuffers::Vector<std::uint64_t>* stored, const char* what) {
  dims values;
  if (stored == nullptr) return values;
  require_aligned(*stored, what);
  if (stored->size() > max_rank)
    throw_corrupt_descriptor(fmt::format("{} of rank {}", what, stored->size()));
  for (const std::uint64_t value : *stored) {
    if (value > static_cast<std::uint64_t>(INT64_MAX))
      throw_corrupt_descriptor(fmt::format("{} holds {}", what, value));
    values.push_back(static_cast<index_t>(value));
  }
  return values;
}

extent to_extent(const stored::Extent* stored, std::uint64_t end_of_file, const char* what) {
  if (stored == nullptr) return {};
  const extent range{stored->offset(), stored->bytes()};
  if (range == extent{}) return range;
  if (range.offset < first_extent_offset || range.offset % page_bytes != 0 ||
      range.offset > end_of_file || range.bytes > end_of_file - range.offset)
    throw_corrupt_descriptor(fmt::format("{} at {} with {} bytes is not inside the file's {} bytes",
                                         what, range.offset, range.bytes, end_of_file));
  return range;
}

checksum128 to_checksum(const stored::Checksum* stored) {
  return stored == nullptr ? checksum128{} : checksum128{stored->low(), stored->high()};
}

dense_layout to_dense(const stored::Dense& stored, std::uint64_t end_of_file) {
  dense_layout dense;
  if (const auto* const extents = stored.extents()) {
    require_aligned(*extents, "the list of extents");
    for (const stored::Extent* const piece : *extents)
      dense.extents.push_back(to_extent(piece, end_of_file, "an extent"));
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
      if (stage->kind() > static_cast<std::uint8_t>(stage_kind::zstd))
        throw_unsupported(fmt::format("codec stage {} is unknown", stage->kind()));
      chunked.stages.push_back({static_cast<stage_kind>(stage->kind()), stage->parameter()});
    }
  }
  if (const stored::PageRef* const index = stored.index())
    chunked.index = {index->offset(), to_checksum(&index->checksum())};
  chunked.chunk_count = stored.chunk_count();
  chunked.stored_bytes = stored.stored_bytes();
  return chunked;
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

void require_chunked(const array_record& record) {
  if (record.is_dense())
    throw error(errc::invalid_argument, "a dense array has no chunks",
                {"array '" + record.name + "'"});
}

std::uint64_t array_bytes(const array_record& record) {
  return product(record.shape, item_bytes(record.dtype), file_bytes_max).value_or(file_bytes_max);
}

std::uint64_t chunk_bytes(const array_record& record) {
  return product(record.chunked().chunk_shape, item_bytes(record.dtype), chunk_bytes_max)
      .value_or(chunk_bytes_max);
}

dims chunk_grid(const array_record& record) {
  dims grid = record.shape;
  for (index_t axis = 0; axis < grid.size(); ++axis)
    grid[axis] = ceil_div(grid[axis], record.chunked().chunk_shape[axis]);
  return grid;
}

std::uint64_t chunk_number(const chunked_layout& layout, const dims& index) {
  std::uint64_t number = 0;
  for (index_t axis = 0; axis < index.size(); ++axis)
    number = number * static_cast<std::uint64_t>(layout.grid_capacity[axis]) +
             static_cast<std::uint64_t>(index[axis]);
  return number;
}

dims chunk_index(const chunked_layout& layout, std::uint64_t number) {
  dims index = layout.grid_capacity;
  for (index_t axis = index.size(); axis-- > 0;) {
    const auto length = static_cast<std::uint64_t>(layout.grid_capacity[axis]);
    index[axis] = static_cast<index_t>(number % length);
    number /= length;
  }
  return index;
}

void set_attribute(array_record& record, std::string_view key, std::string_view value) {
  const auto place =
      std::lower_bound(record.attributes.begin(), record.attributes.end(), key,
                       [](const auto& have, auto wanted) { return have.first < wanted; });
  if (place != record.attributes.end() && place->first == key) place->second = value;
  else record.attributes.emplace(place, key, value);
}

bool remove_attribute(array_record& record, std::string_view key) {
  return std::erase_if(record.attributes, [&](const auto& each) { return each.first == key; }) > 0;
}

void require_valid_name(std::string_view name) {
  if (const auto problem = problem_of_name(name))
    throw error(errc::invalid_argument, "not a name for an array", {*problem});
}

void require_valid(const array_record& record) {
  if (const auto problem = problem_of(record))
    throw error(errc::invalid_argument, "not an array that can be stored",
                {"array '" + record.name + "'", *problem});
}

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
  if (!type) throw_unsupported(fmt::format("array '{}' has dtype {}", record.name, stored.dtype()));
  record.dtype = *type;
  record.shape = to_dims(stored.shape(), "the shape");
  if (const auto* const fill = stored.fill_value()) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(fill->data());
    record.fill_value.assign(bytes, bytes + fill->size());
  }
  if (stored.live()) throw_unsupported(fmt::format("array '{}' is a live array", record.name));
  if (stored.dense() != nullptr && stored.chunked() != nullptr)
    throw_corrupt_descriptor("it is both dense and chunked");
  if (stored.dense() != nullptr) record.layout = to_dense(*stored.dense(), end_of_file);
  else if (stored.chunked() != nullptr) record.layout = to_chunked(*stored.chunked());
  else throw_unsupported(fmt::format("array '{}' has an unknown layout", record.name));
  if (const auto* const notes = stored.attributes()) {
    // FlatBuffers lets many tables share their values, and a vector name one table many times:
    // together they may not be longer than what they are stored in.
    std::size_t left = stored_bytes.size();
    for (const stored::Attribute* const note : *notes) {
      const auto* const value = note->value();
      const std::size_t bytes = note->key()->size() + (value == nullptr ? 0 : value->size());
      if (bytes > left) throw_corrupt_descriptor("its attributes are longer than it is");
      left -= bytes;
      record.attributes.emplace_back(
          note->key()->str(),
          value == nullptr
              ? std::string()
              : std::string(reinterpret_cast<const char*>(value->data()), value->size()));
    }
  }
  record.created = stored.created();
  record.modified = stored.modified();
  if (const auto problem = problem_of(record)) throw_corrupt_descriptor(*problem);
  return record;
}

}  // namespace shale::format
