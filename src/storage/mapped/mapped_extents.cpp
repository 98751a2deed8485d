#include "storage/mapped/mapped_extents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shale/error.hpp"
#include "storage/files/file_copy.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/files/file_space.hpp"
#include "storage/mapped/mapped_block.hpp"
#include "storage/system/pages.hpp"

namespace shale::detail {

namespace {

void check_inside(int descriptor, std::span<const file_extent> extents, const std::string& path) {
  const std::uint64_t present = file_bytes(descriptor, path);
  for (const auto& extent : extents)
    if (extent.offset > present || extent.bytes > present - extent.offset)
      throw error(errc::io, "the file ends before the range to map",
                  {fmt::format("file {}, byte {}", path, extent.offset),
                   fmt::format("{} bytes were to follow, the file ends at byte {}", extent.bytes,
                               present)});
}

// Checks the alignment of extents. The result is the same on every machine, for any page size.
void check_whole(std::span<const file_extent> extents, const std::string& path) {
  const file_extent* before = nullptr;
  for (const auto& extent : extents) {
    if (extent.bytes == 0) continue;
    const std::uint64_t end = before != nullptr ? before->offset + before->bytes : 0;
    const bool continues = before != nullptr && end == extent.offset;
    if (!continues && (extent.offset % extent_unit_bytes != 0 || end % extent_unit_bytes != 0))
      throw error(errc::invalid_argument,
                  "extents that are mapped side by side must be whole pages",
                  {fmt::format("file {}, byte {}", path, extent.offset),
                   fmt::format("each begins at a multiple of {} bytes, and all but the last are a "
                               "multiple of that long",
                               extent_unit_bytes)});
    before = &extent;
  }
}

// Whether the file system allows mappings and this machine's pages can map the extents.
bool can_be_mapped(int descriptor, std::span<const file_extent> extents,
                   const extent_options& options) {
  if (must_be_copied(descriptor, options.access, options.path)) return false;
  if (mapped_parts::lie_on_pages(extents)) return true;
  if (options.access == access::read_write)
    throw error(
        errc::unsupported, "these extents cannot be mapped for writing on this machine",
        {fmt::format("file {}", options.path),
         fmt::format("they were made for smaller pages than its {} bytes", system_page_bytes()),
         "copy them into one extent"});
  return false;
}

}  // namespace

storage map_extents(int descriptor, std::span<const file_extent> extents,
                    const extent_options& options) {
  check_whole(extents, options.path);
  check_inside(descriptor, extents, options.path);
  if (!can_be_mapped(descriptor, extents, options)) {
    storage copied = copy_extents(descriptor, extents, options.access, options.path);
    storage_block::of(copied)->set_checksums(options.sums);
    return copied;
  }
  mapping_source source;
  source.keep_alive = options.keep_alive;
  if (options.keep_alive == nullptr) {
    source.owned = duplicate(descriptor);
    if (!source.owned)
      throw error::from_errno(code_for_errno(errno),
                              "the file's descriptor could not be duplicated", errno,
                              {fmt::format("file {}", options.path)});
  }
  source.descriptor = source.owned ? source.owned.get() : descriptor;
  source.path = options.path;
  source.access = options.access;
  source.write_back = options.write_back;
  auto block = std::make_shared<mapped_block>(std::move(source), extents, options.reserve_bytes);
  block->set_checksums(options.sums);
  return storage_block::handle(std::move(block));
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

void let_children_inherit(const storage& mapped) noexcept {
  if (mapped_block* const block = mapped_owner(mapped)) block->let_children_inherit();
}

void detach_from_file(const storage& mapped) noexcept {
  if (mapped_block* const block = mapped_owner(mapped)) block->detach_from_file();
}

}  // namespace shale::detail
