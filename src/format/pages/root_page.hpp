// The root page, which a superblock refers to. It refers to the trees of a generation.
// docs/container-format.md, "Root page", is this file in prose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "format/bytes/types.hpp"
#include "format/pages/page.hpp"

namespace shale::format {

struct root_fields {
  page_ref catalog;   ///< name -> descriptor
  page_ref space;     ///< the space map
  page_ref retained;  ///< retained generations: number -> root
  std::uint64_t array_count = 0;

  friend bool operator==(const root_fields&, const root_fields&) noexcept = default;
};

/// The page, not yet stamped with its place.
page encode_root(const root_fields& fields) noexcept;

/// The fields of a page whose checksum has been verified.
/// Returns  nothing if the page is not the root of that generation at that offset
std::optional<root_fields> decode_root(const page& root, std::uint64_t generation,
                                       std::uint64_t offset) noexcept;

}  // namespace shale::format
