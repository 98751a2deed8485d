#include "interop/zip_reader.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>

#include "core/printable.hpp"
#include "core/utf8.hpp"
#include "interop/zip_format.hpp"
#include "shale/error.hpp"
#include "shale/index.hpp"

namespace shale::interop {

namespace {

using namespace zip;
using bytes_view = std::span<const std::byte>;

constexpr std::uint64_t longest_directory_bytes = std::uint64_t{64} << 20;

[[noreturn]] void throw_corrupt(std::string_view problem, std::uint64_t byte, std::string detail) {
  throw error(errc::corrupt, fmt::format("zip archive: {}", problem),
              {fmt::format("byte {}", byte), std::move(detail)});
}

std::vector<std::byte> read_range(const input_file& file, std::uint64_t offset,
                                  std::uint64_t bytes) {
  std::vector<std::byte> result(static_cast<std::size_t>(bytes));
  file.read(result, offset);
  return result;
}

struct directory_place {
  std::uint64_t members;
  std::uint64_t bytes;
  std::uint64_t offset;
};

// Finds the end record. Only a comment may follow it, and the record contains the comment's length.
std::uint64_t find_end_record(const input_file& file) {
  const std::uint64_t size = file.size_bytes();
  if (size < end_bytes)
    throw_corrupt("too short", 0, fmt::format("{} bytes, at least {}", size, end_bytes));
  const std::uint64_t tail_bytes = std::min<std::uint64_t>(size, end_bytes + ones_16);
  const std::vector<std::byte> tail = read_range(file, size - tail_bytes, tail_bytes);
  // The comment may contain the signature, so search backwards, and accept a record only if its
  // comment ends exactly at the end of the file.
  for (std::size_t offset = tail.size() - end_bytes;; --offset) {
    if (load<std::uint32_t>(tail, offset) == end_signature &&
        load<std::uint16_t>(tail, offset + 20) == tail.size() - offset - end_bytes)
      return size - tail_bytes + offset;
    if (offset == 0) break;
  }
  throw_corrupt("no directory at its end", size,
                "the file is cut short, has bytes after the archive, or is not an archive");
}

// Reads the ZIP64 end record before `end`; nothing if there is none.
std::optional<directory_place> find_end64_record(const input_file& file, std::uint64_t end,
                                                 bytes_view record) {
  if (end < end64_locator_bytes) return std::nullopt;
  const std::uint64_t locator_at = end - end64_locator_bytes;
  const auto locator = read_range(file, locator_at, end64_locator_bytes);
  if (load<std::uint32_t>(locator, 0) != end64_locator_signature) return std::nullopt;
  if (load<std::uint32_t>(locator, 4) != 0 || load<std::uint32_t>(locator, 16) != 1)
    throw error(errc::unsupported, "zip archive on several disks", {"join its parts first"});
  const auto offset = load<std::uint64_t>(locator, 8);
  if (offset > locator_at || locator_at - offset < end64_bytes)
    throw_corrupt("ZIP64 end record outside the file", locator_at,
                  fmt::format("at byte {}", offset));
  const auto wide = read_range(file, offset, end64_bytes);
  // The record's size field does not count itself and the bytes before it (12 bytes). The record
  // must end where the locator begins.
  if (load<std::uint32_t>(wide, 0) != end64_signature ||
      load<std::uint64_t>(wide, 4) != locator_at - offset - 12)
    throw_corrupt("no ZIP64 end record where one was announced", offset,
                  fmt::format("announced at byte {}", locator_at));
  if (load<std::uint32_t>(wide, 16) != 0 || load<std::uint32_t>(wide, 20) != 0)
    throw error(errc::unsupported, "zip archive on several disks", {"join its parts first"});
  const directory_place place{load<std::uint64_t>(wide, 32), load<std::uint64_t>(wide, 40),
                              load<std::uint64_t>(wide, 48)};
  const auto agrees = [](std::uint64_t narrow, std::uint64_t ones, std::uint64_t value) {
    return narrow == ones || narrow == value;
  };
  if (load<std::uint64_t>(wide, 24) != place.members ||
      !agrees(load<std::uint16_t>(record, 10), ones_16, place.members) ||
      !agrees(load<std::uint32_t>(record, 12), ones_32, place.bytes) ||
      !agrees(load<std::uint32_t>(record, 16), ones_32, place.offset))
    throw_corrupt("the two end records contradict each other", offset,
                  fmt::format("the other is at byte {}", end));
  if (place.offset > offset || place.bytes != offset - place.offset)
    throw_corrupt("the directory does not end at its end record", offset,
                  fmt::format("{} bytes from byte {} on", place.bytes, place.offset));
  return place;
}

directory_place find_directory(const input_file& file) {
  const std::uint64_t end = find_end_record(file);
  const auto record = read_range(file, end, end_bytes);
  const auto disk = load<std::uint16_t>(record, 4);
  const auto directory_disk = load<std::uint16_t>(record, 6);
  const auto members_here = load<std::uint16_t>(record, 8);
  const directory_place narrow{load<std::uint16_t>(record, 10), load<std::uint32_t>(record, 12),
                               load<std::uint32_t>(record, 16)};
  const auto is_disk_0 = [](std::uint16_t number) { return number == 0 || number == ones_16; };
  if (!is_disk_0(disk) || !is_disk_0(directory_disk) || members_here != narrow.members)
    throw error(errc::unsupported, "zip archive on several disks", {"join its parts first"});
  if (const auto wide = find_end64_record(file, end, record)) return *wide;
  if (narrow.offset > end || narrow.bytes != end - narrow.offset)
    throw_corrupt("the directory does not end at its end record", end,
                  fmt::format("{} bytes from byte {} on", narrow.bytes, narrow.offset));
  return narrow;
}

// The ZIP64 extra field holds the numbers that do not fit in 32 bits, in a fixed order and without
// marks: it has one 64-bit number for each 32-bit field with all bits set. This replaces each of
// `fields` that has all bits set by the next number of the extra field.
void resolve_zip64(bytes_view extra, std::span<std::uint64_t* const> fields,
                   std::uint64_t record_offset) {
  std::size_t offset = 0;
  bytes_view wide;
  bool found = false;
  while (extra.size() - offset >= 4) {
    const std::size_t bytes = load<std::uint16_t>(extra, offset + 2);
    if (bytes > extra.size() - offset - 4)
      throw_corrupt("an extra field is longer than its record", record_offset,
                    fmt::format("{} bytes", bytes));
    if (load<std::uint16_t>(extra, offset) == extra_zip64 && !found) {
      wide = extra.subspan(offset + 4, bytes);
      found = true;
    }
    offset += 4 + bytes;
  }
  std::size_t used = 0;
  for (std::uint64_t* const field : fields) {
    if (*field != ones_32) continue;
    // Without the extra field, the value with all bits set is the number itself.
    if (!found) continue;
    if (wide.size() - used < 8)
      throw_corrupt("the ZIP64 extra field is too short", record_offset,
                    fmt::format("{} bytes", wide.size()));
    *field = load<std::uint64_t>(wide, used);
    used += 8;
  }
}

zip_member parse_member(bytes_view directory, std::size_t& offset, std::uint64_t record_offset) {
  if (directory.size() - offset < central_bytes ||
      load<std::uint32_t>(directory, offset) != central_signature)
    throw_corrupt("the directory is damaged", record_offset, "no member record here");
  const bytes_view record = directory.subspan(offset, central_bytes);
  const std::size_t name_bytes = load<std::uint16_t>(record, 28);
  const std::size_t extra_bytes = load<std::uint16_t>(record, 30);
  const std::size_t comment_bytes = load<std::uint16_t>(record, 32);
  if (directory.size() - offset - central_bytes < name_bytes + extra_bytes + comment_bytes)
    throw_corrupt("the directory is damaged", record_offset, "a record reaches beyond its end");
  const bytes_view name = directory.subspan(offset + central_bytes, name_bytes);
  zip_member member;
  member.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  member.flags = load<std::uint16_t>(record, 8);
  member.method = load<std::uint16_t>(record, 10);
  member.crc32 = load<std::uint32_t>(record, 16);
  member.stored_bytes = load<std::uint32_t>(record, 20);
  member.bytes = load<std::uint32_t>(record, 24);
  member.header_offset = load<std::uint32_t>(record, 42);
  std::uint64_t* const fields[] = {&member.bytes, &member.stored_bytes, &member.header_offset};
  resolve_zip64(directory.subspan(offset + central_bytes + name_bytes, extra_bytes), fields,
                record_offset);
  if (member.name.find('\0') != std::string::npos ||
      ((member.flags & flag_utf8) != 0 && !is_utf8_name(member.name)))
    throw_corrupt("a member's name is not text", record_offset,
                  "name " + shale::detail::in_quotes(member.name));
  if (load<std::uint16_t>(record, 34) != 0)
    throw error(errc::unsupported, "zip archive on several disks", {"join its parts first"});
  offset += central_bytes + name_bytes + extra_bytes + comment_bytes;
  return member;
}

// Sets each member's `limit`, and checks zip.2 as far as the directory alone allows.
// zip_data_offset checks it again with the real length of the local header.
void set_limits(std::vector<zip_member>& members, std::uint64_t directory_offset) {
  // Sorted by offset, each member must end before the next one begins, and the last before the
  // directory. The name in the local header is as long as that in the directory, so this is the
  // least that a member takes.
  std::vector<std::size_t> by_offset(members.size());
  std::iota(by_offset.begin(), by_offset.end(), std::size_t{0});
  std::sort(by_offset.begin(), by_offset.end(), [&](std::size_t a, std::size_t b) {
    return members[a].header_offset < members[b].header_offset;
  });
  for (std::size_t i = 0; i < by_offset.size(); ++i) {
    zip_member& member = members[by_offset[i]];
    member.limit =
        i + 1 < by_offset.size() ? members[by_offset[i + 1]].header_offset : directory_offset;
    const std::uint64_t before = local_bytes + member.name.size();
    if (member.limit > directory_offset || member.header_offset > member.limit ||
        member.limit - member.header_offset < before ||
        member.limit - member.header_offset - before < member.stored_bytes)
      throw_corrupt("members overlap, or lie outside the file", member.header_offset,
                    fmt::format("{} stored bytes of {}, next is byte {}", member.stored_bytes,
                                shale::detail::in_quotes(member.name), member.limit));
  }
}

}  // namespace

std::vector<zip_member> read_zip_directory(const input_file& file) {
  const directory_place place = find_directory(file);
  if (place.bytes > longest_directory_bytes)
    throw error(errc::unsupported, "zip archive with too long a directory",
                {fmt::format("{} bytes, at most {}", place.bytes, longest_directory_bytes)});
  const auto directory = read_range(file, place.offset, place.bytes);
  std::vector<zip_member> members;
  std::size_t offset = 0;
  while (offset < directory.size())
    members.push_back(parse_member(directory, offset, place.offset + offset));
  if (members.size() != place.members)
    throw_corrupt("the directory is damaged", place.offset,
                  fmt::format("{} members, {} announced", members.size(), place.members));
  set_limits(members, place.offset);
  return members;
}

std::uint64_t zip_data_offset(const input_file& file, const zip_member& member) {
  if ((member.flags & (flag_encrypted | flag_strong_encryption | flag_masked)) != 0)
    throw error(errc::unsupported, "encrypted member", {"write the archive without a password"});
  if ((member.flags & flag_patch) != 0 ||
      (member.method != method_stored && member.method != method_deflate))
    throw error(errc::unsupported, "unknown compression of a member",
                {fmt::format("method {}, known are 0 (stored) and 8 (deflate)", member.method),
                 "np.savez and np.savez_compressed write those"});
  const auto header = read_range(file, member.header_offset, local_bytes);
  const std::size_t name_bytes = load<std::uint16_t>(header, 26);
  const std::size_t extra_bytes = load<std::uint16_t>(header, 28);
  const std::uint64_t before = local_bytes + name_bytes + extra_bytes;
  const std::uint64_t room = member.limit - member.header_offset;
  if (load<std::uint32_t>(header, 0) != local_signature || room < before ||
      room - before < member.stored_bytes)
    throw_corrupt("the directory points to bytes that are not this member", member.header_offset,
                  "name " + shale::detail::in_quotes(member.name));
  const auto rest = read_range(file, member.header_offset + local_bytes, name_bytes + extra_bytes);
  const std::string_view name(reinterpret_cast<const char*>(rest.data()), name_bytes);
  std::uint64_t bytes = load<std::uint32_t>(header, 22);
  std::uint64_t stored_bytes = load<std::uint32_t>(header, 18);
  std::uint64_t* const fields[] = {&bytes, &stored_bytes};
  resolve_zip64(bytes_view(rest).subspan(name_bytes), fields, member.header_offset);
  const bool sizes_follow = (member.flags & flag_descriptor) != 0;
  if (name != member.name || load<std::uint16_t>(header, 6) != member.flags ||
      load<std::uint16_t>(header, 8) != member.method ||
      (!sizes_follow && (load<std::uint32_t>(header, 14) != member.crc32 || bytes != member.bytes ||
                         stored_bytes != member.stored_bytes)))
    throw_corrupt("a member contradicts the directory", member.header_offset,
                  "name " + shale::detail::in_quotes(member.name));
  if (member.method == method_stored && member.stored_bytes != member.bytes)
    throw_corrupt("the two sizes of a stored member differ", member.header_offset,
                  fmt::format("{} stored bytes for {}", member.stored_bytes, member.bytes));
  return member.header_offset + before;
}

struct zip_stream::inflater {
  z_stream state{};
  bool ended = false;
  std::array<std::byte, std::size_t{1} << 16> input;

  inflater() {
    // A negative number means raw deflate data without zlib's header.
    const int result = ::inflateInit2(&state, -MAX_WBITS);
    if (result != Z_OK) throw error(errc::out_of_memory, "zlib cannot start");
  }
  ~inflater() { ::inflateEnd(&state); }
  inflater(const inflater&) = delete;
  inflater& operator=(const inflater&) = delete;
};

zip_stream::zip_stream(const input_file& file, const zip_member& member)
    : file_(file),
      member_(member),
      at_(zip_data_offset(file, member)),
      stored_left_(member.stored_bytes),
      left_(member.bytes) {
  if (member.method == method_stored) return;
  // In deflate, a match of at most 258 bytes takes at least 2 bits. So no data inflates to more
  // than 258 * 4 = 1032 times its size.
  constexpr std::uint64_t largest_ratio = 1032;
  if (member.bytes / largest_ratio > member.stored_bytes)
    throw_corrupt("a member claims more bytes than it can hold", member.header_offset,
                  fmt::format("{} from {} stored ones", member.bytes, member.stored_bytes));
  inflater_ = std::make_unique<inflater>();
}

zip_stream::~zip_stream() = default;

std::size_t zip_stream::read(std::span<std::byte> into) {
  into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left_)));
  std::size_t done = 0;
  while (done < into.size()) {
    const auto rest = into.subspan(done);
    const std::size_t got = inflater_ ? inflate_some(rest) : read_stored(rest);
    if (got == 0)
      throw_corrupt("a member is shorter than it claims", at_,
                    fmt::format("{} bytes are missing", left_ - done));
    done += got;
  }
  crc32_ = crc32_of(crc32_, into);
  left_ -= into.size();
  return into.size();
}

std::size_t zip_stream::read_stored(std::span<std::byte> into) {
  file_.read(into, at_);
  at_ += into.size();
  stored_left_ -= into.size();
  return into.size();
}

// Inflates into `into` and returns the number of bytes: at least one, or 0 at the end of the
// stream.
std::size_t zip_stream::inflate_some(std::span<std::byte> into) {
  z_stream& state = inflater_->state;
  const std::size_t room = std::min<std::size_t>(into.size(), std::size_t{1} << 30);
  state.next_out = reinterpret_cast<Bytef*>(into.data());
  state.avail_out = static_cast<uInt>(room);
  while (state.avail_out == room && !inflater_->ended) {
    if (state.avail_in == 0) {
      const auto some =
          static_cast<std::size_t>(std::min<std::uint64_t>(stored_left_, inflater_->input.size()));
      read_stored(std::span(inflater_->input).first(some));
      state.next_in = reinterpret_cast<Bytef*>(inflater_->input.data());
      state.avail_in = static_cast<uInt>(some);
    }
    const bool starved = state.avail_in == 0;
    const int result = ::inflate(&state, Z_NO_FLUSH);
    if (result == Z_STREAM_END) inflater_->ended = true;
    else if (result == Z_MEM_ERROR) throw error(errc::out_of_memory, "zlib has no memory");
    else if (result != Z_OK && result != Z_BUF_ERROR)
      throw_corrupt("compressed bytes are damaged", at_ - state.avail_in,
                    fmt::format("zlib says: {}", state.msg ? state.msg : "nothing"));
    else if (starved && state.avail_out == room)
      throw_corrupt("compressed bytes are missing", at_, "they end before the stream does");
  }
  return room - state.avail_out;
}

void zip_stream::finish() {
  if (left_ > 0) {
    std::vector<std::byte> skipped(std::size_t{1} << 18);
    while (left_ > 0) read(skipped);
  }
  if (inflater_) {
    std::byte beyond{};
    if (inflate_some({&beyond, 1}) > 0)
      throw_corrupt("a member is longer than it claims", at_ - inflater_->state.avail_in,
                    fmt::format("{} bytes claimed", member_.bytes));
    const std::uint64_t unused = inflater_->state.avail_in + stored_left_;
    if (unused > 0)
      throw_corrupt("bytes after the compressed stream", at_ - inflater_->state.avail_in,
                    fmt::format("{} of them", unused));
  }
  require_crc32(member_, crc32_);
}

std::uint32_t crc32_of(std::uint32_t before, std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return before;  // zlib would restart the CRC for a null address
  return static_cast<std::uint32_t>(
      ::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void require_crc32(const zip_member& member, std::uint32_t computed) {
  if (computed != member.crc32)
    throw error(errc::corrupt, "checksum mismatch",
                {fmt::format("member {}, byte {}", shale::detail::in_quotes(member.name),
                             member.header_offset),
                 fmt::format("stored {:08x}, computed {:08x}", member.crc32, computed)});
}

bool is_utf8_name(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto character = shale::detail::first_character(text);
    if (!character || character->value == 0) return false;
    text.remove_prefix(character->bytes);
  }
  return true;
}

}  // namespace shale::interop
