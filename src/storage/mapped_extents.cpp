#include "storage/mapped_extents.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shale/error.hpp"
#include "storage/file_copy.hpp"
#include "storage/file_space.hpp"
#include "storage/mapped_block.hpp"

namespace shale::detail {

namespace {

void check_inside(int descriptor, std::span<const file_extent> extents, const std::string& path) {
  const std::uint64_t present = file_bytes(descriptor, path);
  for (const auto& each : extents)
    if (each.offset > present || each.bytes > present - each.offset)
      throw error(
          errc::io, "the file is shorter than what is to be mapped",
          {fmt::format("file {}, byte {}", path, each.offset),
           fmt::format("{} bytes were to follow, the file ends at byte {}", each.bytes, present)});
}

}  // namespace

storage map_extents(int descriptor, std::span<const file_extent> extents,
                    const extent_options& options) {
  check_inside(descriptor, extents, options.path);
  if (must_be_copied(descriptor, options.access, options.path))
    return copy_extents(descriptor, extents, options.access, options.path);
  mapping_source source;
  source.keep_alive = options.keep_alive;
  if (options.keep_alive == nullptr) {
    source.owned = file_descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (!source.owned)
      throw error::from_errno(code_for_errno(errno),
                              "the file's descriptor could not be duplicated", errno,
                              {fmt::format("file {}", options.path)});
  }
  source.descriptor = source.owned ? source.owned.get() : descriptor;
  source.path = options.path;
  source.access = options.access;
  return storage_block::handle(
      std::make_shared<mapped_block>(std::move(source), extents, options.reserve_bytes));
}

void append_extents(storage& mapped, std::span<const file_extent> extents) {
  mapped_block* const block = mapped_owner(mapped);
  if (block == nullptr)
    throw error(errc::invalid_argument, "only a mapped storage takes more extents");
  if (mapped.owner_offset() + mapped.size_bytes() != block->size_bytes())
    throw error(errc::invalid_argument, "this handle does not reach the end of its storage",
                {fmt::format("file {}", block->path())});
  block->append(extents);
  storage_block::reach_end(mapped);
}

void make_read_only(const storage& mapped) {
  if (mapped_block* const block = mapped_owner(mapped)) block->make_read_only();
}

void abandon(const storage& mapped) noexcept {
  if (mapped_block* const block = mapped_owner(mapped)) block->abandon();
}

}  // namespace shale::detail
