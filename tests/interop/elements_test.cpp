#include "interop/elements.hpp"

#include <gtest/gtest.h>

#include "interop/test_support.hpp"
#include "shale/mapped_file.hpp"

namespace shale {
namespace {

// Resident bytes of mapped files in this process.
std::size_t resident_file_bytes() {
  std::istringstream status(test::read_file("/proc/self/status"));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssFile:")) return std::stoul(line.substr(8)) * 1024;
  ADD_FAILURE() << "no RssFile";
  return 0;
}

class StreamedElements : public testing::Test {
 protected:
  // 96 MiB of zeros that take no space, with some elements set to recognise the position.
  StreamedElements() {
    test::write_file(path_, "");
    std::filesystem::resize_file(path_, bytes_);
    tensor values(map_file(path_, {.access = access::read_write}), dtype::float32,
                  layout({3, 1 << 23}));
    for (index_t i = 0; i < values.size(); i += 9973)
      values.data()[i * 4] = static_cast<std::byte>(i % 251);
  }

  tensor mapped() const { return tensor(map_file(path_), dtype::float32, layout({3, 1 << 23})); }

  // The largest increase of resident file pages during the pieces.
  std::size_t peak_while_streaming(const tensor& values, std::string& bytes) {
    executor small({.threads = 1, .memory_bytes = std::size_t{16} << 20});
    const std::size_t before = resident_file_bytes();
    std::size_t most = 0;
    bytes.reserve(bytes_);
    interop::stream_elements(
        values, std::endian::little, small, [&](std::span<const std::byte> piece) {
          EXPECT_LE(piece.size(), interop::piece_bytes);
          bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
          most = std::max(most, resident_file_bytes() - before);
        });
    return most;
  }

  static constexpr std::size_t bytes_ = std::size_t{96} << 20;
  test::scratch_directory files_;
  std::string path_ = files_ / "a.raw";
};

TEST_F(StreamedElements, OfADenseMappingLeaveItsPagesBehind) {
  std::string bytes;
  EXPECT_LE(peak_while_streaming(mapped(), bytes), std::size_t{24} << 20);
  EXPECT_EQ(bytes, test::read_file(path_));
}

TEST_F(StreamedElements, OfAStridedMappingLeaveItsPagesBehind) {
  std::string bytes;
  EXPECT_LE(peak_while_streaming(mapped().sliced(1, {.step = -1}), bytes), std::size_t{24} << 20);
  const std::string whole = test::read_file(path_);
  ASSERT_EQ(bytes.size(), whole.size());
  const std::size_t row = std::size_t{1} << 23;
  for (std::size_t i = 0; i < 3 * row; i += 9973) {
    const std::size_t mirrored = i / row * row + (row - 1 - i % row);
    EXPECT_EQ(bytes.substr(mirrored * 4, 4), whole.substr(i * 4, 4)) << i;
  }
}

TEST_F(StreamedElements, OfATruncatedFileAreAnErrorNotASignal) {
  const tensor values = mapped();
  std::filesystem::resize_file(path_, bytes_ / 2);
  std::string bytes;
  EXPECT_EQ(test::code_of([&] { peak_while_streaming(values, bytes); }), errc::io);
}

}  // namespace
}  // namespace shale
