// Fuzzes .npy files.
//
// Properties for any bytes: A reader throws corrupt or unsupported. Otherwise the header describes
// the same array as the header that NumPy would write for it, and the elements are the bytes of the
// file.
#include <algorithm>
#include <cstring>
#include <vector>

#include "fuzz/memory_file.hpp"
#include "fuzz/require.hpp"
#include "shale/error.hpp"
#include "shale/memory_pool.hpp"
#include "shale/npy.hpp"
#include "shale/tensor.hpp"

namespace {

using namespace shale;
using fuzz::require;
using fuzz::require_refusal;

constexpr index_t elements_compared_max = 4096;

// A header that is written and read again is the same. Its elements begin at a multiple of 64.
void require_round_trip(const npy_header& header) {
  const std::string text = format_npy_header(header);
  npy_header again = parse_npy_header(std::as_bytes(std::span(text)));
  require(again.data_offset == text.size() && text.size() % 64 == 0, "headers are padded to 64");
  again.data_offset = header.data_offset;
  again.version = header.version;
  require(again == header, "a header survives being written");
}

// The axes, the one whose elements follow each other first. That is the characters of a text, then
// the first axis in Fortran order, or the last one.
std::vector<std::size_t> axes_by_speed(const npy_header& header, std::size_t rank) {
  std::vector<std::size_t> axes;
  const bool is_text = header.logical && header.dtype != dtype::int64;
  const std::size_t plain = rank - (is_text ? 1 : 0);
  if (is_text) axes.push_back(plain);
  for (std::size_t step = 0; step < plain; ++step)
    axes.push_back(header.fortran_order ? step : plain - 1 - step);
  return axes;
}

// Compares element by element in the order of the file, without using layouts.
void require_file_elements(const tensor& values, const npy_header& header,
                           std::span<const std::uint8_t> file) {
  const std::size_t width = values.item_bytes();
  const bool is_complex = values.dtype() == dtype::complex64 || values.dtype() == dtype::complex128;
  const std::size_t word = is_complex ? width / 2 : width;
  const auto rank = static_cast<std::size_t>(values.rank());
  std::vector<index_t> index(rank, 0);
  std::vector<std::uint8_t> expected(width);
  for (index_t i = 0; i < values.size(); ++i) {
    index_t place = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) place += index[axis] * values.strides()[axis];
    const std::uint8_t* const stored =
        file.data() + header.data_offset + static_cast<std::size_t>(i) * width;
    std::memcpy(expected.data(), stored, width);
    if (header.byte_order == std::endian::big)
      for (std::size_t part = 0; part < width; part += word)
        std::reverse(expected.begin() + static_cast<std::ptrdiff_t>(part),
                     expected.begin() + static_cast<std::ptrdiff_t>(part + word));
    const std::byte* const seen = values.data() + place * static_cast<index_t>(width);
    require(std::memcmp(seen, expected.data(), width) == 0, "elements are those of the file");
    for (const std::size_t axis : axes_by_speed(header, rank)) {
      if (++index[axis] < values.shape()[axis]) break;
      index[axis] = 0;
    }
  }
}

void read_whole(std::span<const std::uint8_t> bytes, const npy_header* header,
                trailing_bytes trailing) {
  const fuzz::memory_file file(bytes);
  try {
    const tensor values = read_npy(file.path(), {.trailing = trailing});
    require(header != nullptr, "no elements without a header");
    require(values.dtype() == header->dtype && values.shape() == header->shape,
            "the tensor is what the header says");
    const bool fits = header->data_offset <= bytes.size() &&
                      values.size_bytes() <= bytes.size() - header->data_offset;
    require(fits, "the file has every element");
    if (trailing == trailing_bytes::refuse)
      require(values.size_bytes() == bytes.size() - header->data_offset, "no byte is left over");
    if (values.size() <= elements_compared_max) require_file_elements(values, *header, bytes);
  } catch (const error& failure) {
    require_refusal(failure);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(data, size);
  npy_header header;
  bool parsed = false;
  try {
    // The copy has exactly this size, so that AddressSanitizer detects a read beyond its end.
    const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
    header = parse_npy_header(std::as_bytes(std::span(exact)));
    parsed = true;
  } catch (const error& failure) {
    require_refusal(failure);
  }
  if (parsed) require_round_trip(header);
  memory_pool::default_pool().set_limit_bytes(std::size_t{64} << 20);  // sizes are bytes that exist
  read_whole(bytes, parsed ? &header : nullptr, trailing_bytes::refuse);
  if (parsed) read_whole(bytes, &header, trailing_bytes::ignore);
  return 0;
}
