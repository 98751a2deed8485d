#include "shale/npz.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "core/held.hpp"
#include "core/printable.hpp"
#include "interop/elements.hpp"
#include "interop/npy_header.hpp"
#include "interop/npy_stream.hpp"
#include "interop/zip_format.hpp"
#include "interop/zip_reader.hpp"
#include "interop/zip_writer.hpp"
#include "parallel/executor/executor_state.hpp"
#include "shale/executor.hpp"

namespace shale {

namespace {

constexpr std::string_view suffix = ".npy";

// Reads a member's .npy header. npy.1 to npy.3 hold here too; in addition the member must end with
// its last element.
npy_header header_of(interop::zip_stream& stream, const interop::zip_member& member) {
  const auto read = [&](std::span<std::byte> into, std::size_t offset) {
    const std::size_t got = stream.read(into);
    // NumPy recognises arrays by their magic bytes, not by the member's name.
    if (offset == 0 &&
        (got < interop::npy_magic.size() ||
         std::memcmp(into.data(), interop::npy_magic.data(), interop::npy_magic.size()) != 0))
      throw error(errc::unsupported, "a member that is not an npy array",
                  {fmt::format("{} of {} bytes", detail::in_quotes(member.name), member.bytes),
                   "extract it with unzip"});
    return got;
  };
  const npy_header header = interop::read_npy_header(read);
  if (member.bytes - header.data_offset != header.data_bytes())
    throw error(
        errc::corrupt, "a member is not as long as its header says",
        {fmt::format("shape {} of {} needs {} bytes, the member has {}", to_string(header.shape),
                     name(header.dtype), header.data_bytes(), member.bytes - header.data_offset)});
  return header;
}

tensor inflate(interop::zip_stream& stream, const npy_header& header, access allowed) {
  storage bytes = storage::allocate(static_cast<std::size_t>(header.data_bytes()));
  const executor& on = executor::current();
  const std::span<std::byte> all(bytes.data(), bytes.size_bytes());
  for (std::size_t offset = 0; offset < all.size(); offset += interop::piece_bytes) {
    parallel::require_not_cancelled(on);
    const auto piece = all.subspan(offset, std::min(interop::piece_bytes, all.size() - offset));
    stream.read(piece);
    if (header.byte_order != std::endian::native) interop::swap_bytes(piece, header.dtype);
  }
  stream.finish();
  if (header.dtype == dtype::boolean) interop::require_booleans(bytes);
  tensor made(std::move(bytes), header.dtype, header.layout());
  return allowed == access::read_only ? made.as_read_only() : made;
}

}  // namespace

struct npz_file::implementation {
  explicit implementation(const std::string& path)
      : file(path), members(interop::read_zip_directory(file)) {
    for (std::size_t i = 0; i < members.size(); ++i)
      if (!by_name.emplace(members[i].name, i).second)
        throw error(errc::corrupt, "zip archive: two members have one name",
                    {"name " + detail::in_quotes(members[i].name)});
    for (const interop::zip_member& member : members) {
      const bool is_directory = member.name.ends_with('/') && member.bytes == 0;
      if (!is_directory) names.emplace_back(shown(member));
    }
  }

  // The name without ".npy", unless another member has that name, or nothing would be left.
  std::string shown(const interop::zip_member& member) const {
    std::string_view name = member.name;
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
    return name.empty() || by_name.count(name) != 0 ? member.name : std::string(name);
  }

  // As in NumPy: looks for the name itself, then for the name with ".npy".
  const interop::zip_member* find(std::string_view name) const {
    auto found = by_name.find(name);
    if (found == by_name.end()) found = by_name.find(std::string(name) + std::string(suffix));
    return found == by_name.end() ? nullptr : &members[found->second];
  }

  const interop::zip_member& get(std::string_view name) const {
    if (const interop::zip_member* found = find(name)) return *found;
    constexpr std::size_t shown_at_most = 12;
    std::string held;
    for (std::size_t i = 0; i < std::min(names.size(), shown_at_most); ++i)
      held += (i == 0 ? "" : ", ") + detail::in_quotes(names[i]);
    if (names.size() > shown_at_most)
      held += fmt::format(" and {} more", names.size() - shown_at_most);
    throw error(errc::not_found, "no such member",
                {"wanted " + detail::in_quotes(name),
                 "there is " + (held.empty() ? std::string("none") : held)});
  }

  std::string frame(std::string_view name) const {
    return fmt::format("read {} of {}", detail::in_quotes(name), file.path());
  }

  interop::input_file file;
  std::vector<interop::zip_member> members;
  std::map<std::string, std::size_t, std::less<>> by_name;
  std::vector<std::string> names;
};

npz_file::npz_file(std::shared_ptr<const implementation> opened) noexcept
    : implementation_(std::move(opened)) {}

npz_file npz_file::open(const std::string& path) {
  return detail::reporting([&] { return "open " + path; },
                           [&] { return npz_file(std::make_shared<implementation>(path)); });
}

const npz_file::implementation& npz_file::state() const {
  return detail::held(implementation_, "npz_file");
}

const std::vector<std::string>& npz_file::names() const { return state().names; }

bool npz_file::contains(std::string_view name) const {
  const implementation& self = state();
  return detail::allocating([&] { return self.find(name) != nullptr; });
}

npz_member npz_file::inspect(std::string_view name) const {
  const implementation& self = state();
  return detail::reporting([&] { return self.frame(name); },
                           [&] {
                             const interop::zip_member& member = self.get(name);
                             interop::zip_stream stream(self.file, member);
                             npz_member result;
                             result.header = header_of(stream, member);
                             result.name = self.shown(member);
                             result.compression = member.method == interop::zip::method_stored
                                                      ? npz_compression::stored
                                                      : npz_compression::deflate;
                             result.stored_bytes = member.stored_bytes;
                             return result;
                           });
}

tensor npz_file::read(std::string_view name, const npz_read_options& options) const {
  const implementation& self = state();
  return detail::reporting(
      [&] { return self.frame(name); },
      [&] {
        detail::require_enumerator(options.access, access::copy_on_write, "access");
        detail::require_enumerator(options.checksum, npz_checksum::always, "npz_checksum");
        if (options.access == access::read_write)
          throw error(errc::invalid_argument, "members of an archive are not changed in place",
                      {"read with copy_on_write access, then write a new archive"});
        const interop::input_file& file = self.file;
        const interop::zip_member& member = self.get(name);
        interop::zip_stream stream(file, member);
        const npy_header header = header_of(stream, member);
        if (member.method == interop::zip::method_stored) {
          const interop::element_place place{
              interop::zip_data_offset(file, member) + header.data_offset, header.dtype,
              header.byte_order, header.layout()};
          if (interop::mappable(place)) {
            if (options.checksum == npz_checksum::always) stream.finish();
            return interop::read_elements(file, place, options.access);
          }
        }
        return inflate(stream, header, options.access);
      });
}

struct npz_writer::implementation {
  implementation(const std::string& path, const npz_write_options& options)
      : archive(path, options.existing),
        target(path),
        deflate_level(options.compression == npz_compression::deflate ? options.level : 0) {}

  // Throws if nothing can be added to the archive any more.
  void require_open() const {
    if (state == progress::going_on) return;
    throw error(errc::invalid_argument,
                state == progress::finished ? "the archive is finished already"
                                            : "a member of the archive could not be written",
                {"file " + target, "begin another archive"});
  }

  enum class progress : std::uint8_t { going_on, failed, finished };

  interop::zip_writer archive;
  std::string target;
  int deflate_level;
  std::set<std::string, std::less<>> names;
  progress state = progress::going_on;
};

namespace {

void require_options(const npz_write_options& options) {
  detail::require_enumerator(options.compression, npz_compression::deflate, "npz_compression");
  if (options.level < 1 || options.level > 9)
    throw error(errc::invalid_argument, "no such level of deflate",
                {fmt::format("got {}, wanted 1 to 9", options.level)});
}

// Whether one of `taken` is the name with ".npy", or without it. A member is looked for under its
// name first, and then under its name with ".npy": both names of such a pair would find the same
// member.
template <class Names>
bool differs_by_suffix(std::string_view name, const Names& taken) {
  if (taken.count(std::string(name) + std::string(suffix)) != 0) return true;
  return name.ends_with(suffix) && taken.count(name.substr(0, name.size() - suffix.size())) != 0;
}

// Throws if a member cannot have the name beside those in `taken`.
template <class Names>
void require_name(std::string_view name, const Names& taken) {
  constexpr std::size_t longest = 65'000;  // ZIP's lengths have 16 bits
  const char* wrong = name.empty()                   ? "it is empty"
                      : name.size() > longest        ? "it is longer than 65,000 bytes"
                      : !interop::is_utf8_name(name) ? "it is not UTF-8 without zero bytes"
                      : taken.count(name) != 0       ? "it occurs twice"
                      : differs_by_suffix(name, taken)
                          ? "another name differs by \".npy\" alone, and both would find one member"
                          : nullptr;
  if (wrong)
    throw error(errc::invalid_argument, "not a name for a member",
                {"got " + detail::in_quotes(name), wrong});
}

}  // namespace

npz_writer::npz_writer(const std::string& path, const npz_write_options& options) {
  detail::reporting([&] { return "write " + path; },
                    [&] {
                      require_options(options);
                      implementation_ = std::make_unique<implementation>(path, options);
                    });
}

npz_writer::~npz_writer() = default;
npz_writer::npz_writer(npz_writer&&) noexcept = default;
npz_writer& npz_writer::operator=(npz_writer&&) noexcept = default;

void npz_writer::add(std::string_view name, const tensor& values,
                     const std::optional<logical_dtype>& logical) {
  implementation& self = detail::held(implementation_, "npz_writer");
  detail::reporting(
      [&] { return fmt::format("write {} of {}", detail::in_quotes(name), self.target); },
      [&] {
        self.require_open();
        require_name(name, self.names);
        const interop::npy_stream stream(values, logical);
        const auto added = self.names.emplace(name).first;
        self.state = implementation::progress::failed;  // until the member is whole
        self.archive.begin(*added + std::string(suffix),
                           {.deflate_level = self.deflate_level, .bytes = stream.bytes()});
        const std::string& header = stream.header();
        self.archive.append(std::as_bytes(std::span<const char>(header.data(), header.size())));
        stream.for_each_piece(executor::current(), [&](std::span<const std::byte> piece) {
          self.archive.append(piece);
        });
        self.archive.end();
        self.state = implementation::progress::going_on;
      });
}

void npz_writer::finish() {
  implementation& self = detail::held(implementation_, "npz_writer");
  detail::reporting([&] { return "write " + self.target; },
                    [&] {
                      self.require_open();
                      self.state = implementation::progress::finished;
                      self.archive.publish();
                    });
}

void write_npz(const std::string& path, std::span<const std::pair<std::string, tensor>> members,
               const npz_write_options& options) {
  detail::reporting([&] { return "write " + path; },
                    [&] {
                      require_options(options);
                      std::set<std::string_view> names;
                      for (const auto& [name, values] : members) {
                        require_name(name, names);
                        names.insert(name);
                      }
                    });
  npz_writer writer(path, options);
  for (const auto& [name, values] : members) writer.add(name, values);
  writer.finish();
}

}  // namespace shale
