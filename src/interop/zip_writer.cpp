#include "interop/zip_writer.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "interop/zip_format.hpp"
#include "interop/zip_reader.hpp"
#include "shale/error.hpp"

namespace shale::interop {

namespace {

using namespace zip;

// Stored members start at multiples of 64 bytes. The length of an .npy header is a multiple of 64
// too, so the elements are aligned to cache lines.
constexpr std::uint64_t stored_alignment = 64;

constexpr std::uint16_t version_plain = 20;
constexpr std::uint16_t version_zip64 = 45;
constexpr std::uint16_t made_on_unix = 3u << 8;

// The times are fixed, so that the same members give the same archive. 1 January 1980 is the first
// day that the format can express.
constexpr std::uint16_t fixed_time = 0;
constexpr std::uint16_t fixed_date = 1u << 5 | 1u;

template <class Integer>
void put(std::string& to, Integer value) {
  for (std::size_t i = 0; i < sizeof(Integer); ++i)
    to += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff);
}

std::uint32_t narrow_32(std::uint64_t value, bool wide) {
  return wide ? ones_32 : static_cast<std::uint32_t>(value);
}

}  // namespace

struct zip_writer::deflater {
  z_stream state{};
  std::array<std::byte, std::size_t{1} << 16> output;

  explicit deflater(int level) {
    constexpr int memory_level_max = 9;
    if (::deflateInit2(&state, level, Z_DEFLATED, -MAX_WBITS, memory_level_max,
                       Z_DEFAULT_STRATEGY) != Z_OK)
      throw error(errc::out_of_memory, "zlib cannot start");
  }
  ~deflater() { ::deflateEnd(&state); }
  deflater(const deflater&) = delete;
  deflater& operator=(const deflater&) = delete;
};

zip_writer::zip_writer(const std::string& path, existing_file existing, zip64_form form)
    : file_(path, existing), form_(form) {}

zip_writer::~zip_writer() = default;

// The header is written twice: first to reserve its place, and again at the end with sizes and CRC.
std::string zip_writer::local_header(const member& written) const {
  std::string extra;
  if (written.wide) {
    put(extra, extra_zip64);
    put(extra, std::uint16_t{16});
    put(extra, written.bytes);
    put(extra, written.stored_bytes);
  }
  if (written.method == method_stored) {
    const std::uint64_t before =
        written.header_offset + local_bytes + written.name.size() + extra.size() + 6;
    const auto padding = static_cast<std::uint16_t>(-before % stored_alignment);
    put(extra, extra_alignment);
    put(extra, static_cast<std::uint16_t>(2 + padding));
    put(extra, static_cast<std::uint16_t>(stored_alignment));
    extra.append(padding, '\0');
  }
  std::string header;
  put(header, local_signature);
  put(header, written.wide ? version_zip64 : version_plain);
  put(header, written.flags);
  put(header, written.method);
  put(header, fixed_time);
  put(header, fixed_date);
  put(header, written.crc32);
  put(header, narrow_32(written.stored_bytes, written.wide));
  put(header, narrow_32(written.bytes, written.wide));
  put(header, static_cast<std::uint16_t>(written.name.size()));
  put(header, static_cast<std::uint16_t>(extra.size()));
  return header + written.name + extra;
}

void zip_writer::begin(std::string_view name, const zip_member_options& options) {
  member next;
  next.name = name;
  const bool ascii = std::all_of(name.begin(), name.end(),
                                 [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
  next.flags = ascii ? 0 : flag_utf8;
  next.method = options.deflate_level == 0 ? method_stored : method_deflate;
  next.announced_bytes = options.bytes;
  next.header_offset = file_.position();
  // Incompressible data grows by some bytes per block under deflate: far less than one in 1000.
  const std::uint64_t most = options.bytes + options.bytes / 1000 + 4096;
  next.wide = form_ == zip64_form::always || most >= ones_32;
  if (next.method == method_deflate) deflater_ = std::make_unique<deflater>(options.deflate_level);
  file_.append(local_header(next));
  members_.push_back(std::move(next));
}

void zip_writer::append(std::span<const std::byte> bytes) {
  member& current = members_.back();
  current.crc32 = crc32_of(current.crc32, bytes);
  current.bytes += bytes.size();
  if (deflater_) {
    // zlib counts its input in 32 bits.
    constexpr std::size_t piece_bytes_max = std::size_t{1} << 30;
    for (std::size_t offset = 0; offset < bytes.size(); offset += piece_bytes_max)
      deflate_some(bytes.subspan(offset, std::min(piece_bytes_max, bytes.size() - offset)),
                   Z_NO_FLUSH);
  } else {
    file_.append(bytes);
    current.stored_bytes += bytes.size();
  }
}

void zip_writer::deflate_some(std::span<const std::byte> bytes, int flush) {
  z_stream& state = deflater_->state;
  state.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  state.avail_in = static_cast<uInt>(bytes.size());
  for (bool more = true; more;) {
    state.next_out = reinterpret_cast<Bytef*>(deflater_->output.data());
    state.avail_out = static_cast<uInt>(deflater_->output.size());
    const int result = ::deflate(&state, flush);
    const auto made =
        std::span(deflater_->output)
            .first(deflater_->output.size() - static_cast<std::size_t>(state.avail_out));
    file_.append(std::as_bytes(made));
    members_.back().stored_bytes += made.size();
    more = flush == Z_FINISH ? result != Z_STREAM_END : state.avail_out == 0;
  }
}

void zip_writer::end() {
  member& current = members_.back();
  if (deflater_) deflate_some({}, Z_FINISH);
  deflater_.reset();
  if (current.bytes != current.announced_bytes)
    throw error(errc::invalid_argument, "a member is not as long as announced",
                {fmt::format("got {} bytes, wanted {}", current.bytes, current.announced_bytes)});
  const std::string header = local_header(current);
  file_.overwrite(current.header_offset,
                  std::as_bytes(std::span<const char>(header.data(), header.size())));
}

void zip_writer::append_directory_entry(std::string& to, const member& written) const {
  const bool wide_offset = form_ == zip64_form::always || written.header_offset >= ones_32;
  std::string extra;
  if (written.wide || wide_offset) {
    put(extra, extra_zip64);
    put(extra, static_cast<std::uint16_t>((written.wide ? 16 : 0) + (wide_offset ? 8 : 0)));
    if (written.wide) put(extra, written.bytes);
    if (written.wide) put(extra, written.stored_bytes);
    if (wide_offset) put(extra, written.header_offset);
  }
  const std::uint16_t version = written.wide || wide_offset ? version_zip64 : version_plain;
  put(to, central_signature);
  put(to, static_cast<std::uint16_t>(made_on_unix | version));
  put(to, version);
  put(to, written.flags);
  put(to, written.method);
  put(to, fixed_time);
  put(to, fixed_date);
  put(to, written.crc32);
  put(to, narrow_32(written.stored_bytes, written.wide));
  put(to, narrow_32(written.bytes, written.wide));
  put(to, static_cast<std::uint16_t>(written.name.size()));
  put(to, static_cast<std::uint16_t>(extra.size()));
  put(to, std::uint16_t{0});  // comment
  put(to, std::uint16_t{0});  // disk
  put(to, std::uint16_t{0});  // internal attributes
  put(to, std::uint32_t{0600u << 16});
  put(to, narrow_32(written.header_offset, wide_offset));
  to += written.name + extra;
}

void zip_writer::publish() {
  const std::uint64_t directory_offset = file_.position();
  for (const member& written : members_) {
    std::string entry;
    append_directory_entry(entry, written);
    file_.append(entry);
  }
  const std::uint64_t end = file_.position();
  const std::uint64_t directory_bytes = end - directory_offset;
  const bool wide = form_ == zip64_form::always || directory_offset >= ones_32 ||
                    directory_bytes >= ones_32 || members_.size() >= ones_16;
  std::string record;
  if (wide) {
    put(record, end64_signature);
    put(record, std::uint64_t{end64_bytes - 12});
    put(record, static_cast<std::uint16_t>(made_on_unix | version_zip64));
    put(record, version_zip64);
    put(record, std::uint32_t{0});
    put(record, std::uint32_t{0});
    put(record, std::uint64_t{members_.size()});
    put(record, std::uint64_t{members_.size()});
    put(record, directory_bytes);
    put(record, directory_offset);
    put(record, end64_locator_signature);
    put(record, std::uint32_t{0});
    put(record, end);
    put(record, std::uint32_t{1});
  }
  const auto count = wide ? ones_16 : static_cast<std::uint16_t>(members_.size());
  put(record, end_signature);
  put(record, std::uint16_t{0});
  put(record, std::uint16_t{0});
  put(record, count);
  put(record, count);
  put(record, narrow_32(directory_bytes, wide));
  put(record, narrow_32(directory_offset, wide));
  put(record, std::uint16_t{0});
  file_.append(record);
  file_.publish();
}

}  // namespace shale::interop
