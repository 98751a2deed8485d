// The first page of the file. It is written once and never changed. docs/container-format.md,
// "Header", is this file in prose.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "format/bytes/file_layout.hpp"
#include "format/bytes/types.hpp"

namespace shale::format {

inline constexpr std::uint32_t header_version = 1;

struct header {
  uuid id;
};

using header_page = std::array<std::byte, page_bytes>;

header_page encode_header(const header& fields);

/// Throws   corrupt (not a container, or damaged), unsupported (a later version)
header decode_header(const header_page& page, const std::string& path);

}  // namespace shale::format
