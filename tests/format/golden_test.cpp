// Compares docs/container-format.md with the code: the code writes exactly the bytes of the worked
// example, and the quoted schema is the one that is compiled.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>

#include "format/bytes/checksum.hpp"
#include "format/container/container_file.hpp"
#include "format/container/verify.hpp"
#include "format/small_history.hpp"
#include "support/recording_file_system.hpp"

namespace shale::format {
namespace {

constexpr std::chrono::milliseconds at_once{0};

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The content of all fenced blocks of that language, in order.
std::string blocks(const std::string& document, const std::string& language) {
  std::string found;
  std::istringstream lines(document);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (!inside && line == "```" + language) inside = true;
    else if (inside && line == "```") inside = false;
    else if (inside) found += line + "\n";
  }
  return found;
}

// A hexdump with sixteen bytes per line, without lines of zeros.
std::string dump(const std::vector<std::byte>& bytes) {
  std::string text;
  for (std::size_t offset = 0; offset < bytes.size(); offset += 16) {
    std::string hex;
    std::string characters;
    bool zero = true;
    for (std::size_t i = offset; i < std::min(offset + 16, bytes.size()); ++i) {
      const auto value = static_cast<unsigned char>(bytes[i]);
      zero &= value == 0;
      hex += fmt::format("{:02x}{}", value, i % 16 == 7 ? "  " : " ");
      characters += value >= 0x20 && value < 0x7f ? static_cast<char>(value) : '.';
    }
    if (!zero) text += fmt::format("{:08x}  {} {}\n", offset, hex, characters);
  }
  return text;
}

// The container of the worked example.
std::vector<std::byte> example() {
  test::recording_file_system files;
  const std::string path = "/example.shale";
  uuid id;
  for (std::size_t i = 0; i < 16; ++i) id.bytes[i] = static_cast<std::uint8_t>(0xa0 + i);
  container_file container = container_file::create(files, path, {.id = id});
  transaction change = container.begin(at_once);

  array_record dense;
  dense.name = "d";
  dense.dtype = dtype::float32;
  dense.shape = {3};
  dense.fill_value.resize(4);
  set_attribute(dense, "unit", "m");
  const std::array<float, 3> values{1, 2, 3};
  dense_layout layout;
  layout.extents = {change.allocate(sizeof values)};
  change.write(layout.extents[0].offset, std::as_bytes(std::span(values)));
  const std::array<std::uint64_t, 1> sums{checksum_data(std::as_bytes(std::span(values)))};
  layout.checksums = change.allocate(sizeof sums);
  change.write(layout.checksums.offset, std::as_bytes(std::span(sums)));
  layout.checksums_checksum = checksum_metadata(std::as_bytes(std::span(sums)));
  dense.layout = layout;
  change.put(dense);

  array_record chunked;
  chunked.name = "c";
  chunked.dtype = dtype::int16;
  chunked.shape = {6};
  chunked.fill_value = {std::byte{0xff}, std::byte{0xff}};
  chunked_layout grid;
  grid.chunk_shape = {4};
  grid.grid_capacity = {2};
  grid.stages = {{stage_kind::byte_shuffle, 0}, {stage_kind::zstd, 1}};
  chunked.layout = grid;
  change.put(chunked);
  const std::array<std::int16_t, 4> elements{1, 2, 3, 4};
  test::store_chunk(
      change, "c", 0,
      codec(grid.stages, dtype::int16)
          .encode(std::as_bytes(std::span(elements)), codec_workspace::of_this_thread()));
  change.commit();
  EXPECT_TRUE(verify(container.latest()).findings.empty());
  return files.now().at(path);
}

TEST(FormatDocument, WorkedExampleIsWhatTheCodeWrites) {
  const std::string written = dump(example());
  const std::string documented = blocks(read_text(SHALE_FORMAT_DOCUMENT), "hexdump");
  if (documented == written) return;
  const std::string actual = testing::TempDir() + "format-example.hexdump";
  std::ofstream(actual) << written;
  FAIL() << "docs/container-format.md shows other bytes than are written; those are now in "
         << actual;
}

TEST(FormatDocument, QuotesTheSchema) {
  EXPECT_EQ(blocks(read_text(SHALE_FORMAT_DOCUMENT), "fbs"), read_text(SHALE_DESCRIPTOR_SCHEMA));
}

}  // namespace
}  // namespace shale::format
