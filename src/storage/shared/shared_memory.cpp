#include "shale/shared_memory.hpp"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "core/allocating.hpp"
#include "shale/error.hpp"
#include "storage/mapped/mapped_block.hpp"
#include "storage/shared/shared_segment.hpp"
#include "storage/system/fork_handlers.hpp"

namespace shale {

namespace {

using detail::open_segment;

enum class role : std::uint8_t { creator, user };

// A mapping of a segment that detaches from it when the last handle is destroyed.
class shared_block final : public detail::mapped_block {
 public:
  shared_block(open_segment segment, std::string path, shale::access allowed,
               std::size_t reserve_bytes, role own_role)
      : mapped_block(source_of(segment, path, allowed),
                     {detail::segment_header_bytes, segment.bytes}, reserve_bytes),
        segment_(std::move(segment)),
        path_(std::move(path)),
        role_(own_role) {}

  ~shared_block() override {
    // In a forked child, also in one that was made without the handlers of fork, this only closes
    // the child's descriptors: the parent is still attached.
    if (attached_.is_this_one()) detail::leave_segment(segment_, path_, role_ == role::creator);
  }

  const open_segment& segment() const noexcept { return segment_; }

 private:
  static detail::mapping_source source_of(const open_segment& segment, const std::string& path,
                                          shale::access allowed) {
    detail::mapping_source source;
    source.descriptor = segment.pages.get();  // segment_ of this block owns it
    source.path = path;
    source.kind = storage_kind::shared_memory;
    source.access = allowed;
    return source;
  }

  open_segment segment_;
  const std::string path_;
  const role role_;
  const detail::owning_process attached_;
};

// The names of files that may be segments, without the directory and the common prefix. Files of
// other programs are left out if no segment can have their names.
std::vector<std::string> segment_names(std::string_view beginning) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(detail::segment_directory),
                                                      &::closedir);
  if (!directory && errno == ENOENT) return names;
  const auto throw_failure = [](int failure) {
    throw error::from_errno(code_for_errno(failure), "segments could not be listed", failure,
                            {fmt::format("directory {}", detail::segment_directory)});
  };
  if (!directory) throw_failure(errno);
  constexpr std::string_view prefix = detail::segment_prefix;
  for (;;) {
    errno = 0;  // readdir returns null at the end and on failure; only a failure sets errno
    const dirent* const entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view file = entry->d_name;
    if (file.substr(0, prefix.size()) != prefix) continue;
    const std::string_view name = file.substr(prefix.size());
    if (name.substr(0, beginning.size()) == beginning && detail::is_segment_name(name))
      names.emplace_back(name);
  }
  if (errno != 0) throw_failure(errno);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

storage create_shared(const std::string& name, std::size_t bytes,
                      const create_shared_options& options) {
  return detail::reporting([&] { return "create shared segment " + name; },
                           [&] {
                             const std::string path = detail::segment_path(name);
                             auto block = std::make_shared<shared_block>(
                                 detail::make_segment(path, bytes, options), path,
                                 access::read_write, options.reserve_bytes, role::creator);
                             // The name comes last, so that no process sees an incomplete segment.
                             // On failure the block is destroyed and no name is left.
                             detail::name_segment(block->segment(), path);
                             return detail::storage_block::handle(std::move(block));
                           });
}

storage open_shared(const std::string& name, const open_shared_options& options) {
  return detail::reporting(
      [&] { return "open shared segment " + name; },
      [&] {
        const std::string path = detail::segment_path(name);
        auto segment = detail::attach_segment(path, options.access, options.owner);
        if (!segment)
          throw error(errc::not_found, "there is no shared segment of that name",
                      {fmt::format("file {}", path)});
        return detail::storage_block::handle(std::make_shared<shared_block>(
            std::move(*segment), path, options.access, options.reserve_bytes, role::user));
      });
}

bool remove_shared(const std::string& name) {
  return detail::reporting(
      [&] { return "remove shared segment " + name; },
      [&] { return detail::remove_segment(detail::segment_path(name), detail::removal::always); });
}

std::vector<shared_segment> list_shared(std::string_view prefix) {
  return detail::allocating([&] {
    std::vector<shared_segment> segments;
    for (const auto& name : segment_names(prefix)) {
      auto seen = detail::look_at_segment(
          fmt::format("{}/{}{}", detail::segment_directory, detail::segment_prefix, name));
      if (!seen) continue;
      seen->name = name;
      segments.push_back(std::move(*seen));
    }
    return segments;
  });
}

std::size_t reclaim_shared(std::string_view prefix) {
  return detail::allocating([&] {
    std::size_t reclaimed = 0;
    for (const auto& name : segment_names(prefix))
      if (detail::remove_segment(
              fmt::format("{}/{}{}", detail::segment_directory, detail::segment_prefix, name),
              detail::removal::if_dead_at_once))
        ++reclaimed;
    return reclaimed;
  });
}

}  // namespace shale
