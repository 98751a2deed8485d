// Fuzzes .npz archives: the directory, stored members and deflated members.
//
// Properties for any bytes: Opening and reading throw corrupt or unsupported. Otherwise two ways of
// reading give the same elements. Memory is bounded by the bytes of the archive; declared sizes do
// not count.
//
// A change of a member's bytes would usually be refused because of its CRC-32. So the mutator
// corrects the checksums in half of the inputs that it makes.
#include <zlib.h>

#include <cstring>
#include <vector>

#include "fuzz/memory_file.hpp"
#include "fuzz/require.hpp"
#include "shale/error.hpp"
#include "shale/memory_pool.hpp"
#include "shale/npz.hpp"
#include "shale/tensor.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);

namespace {

using namespace shale;
using fuzz::require;

void require_refusal(const error& failure) {
  if (failure.code() != errc::out_of_memory) fuzz::require_refusal(failure);
}

bool same_elements(const tensor& a, const tensor& b) {
  if (a.dtype() != b.dtype() || a.layout().shape() != b.layout().shape()) return false;
  if (a.strides() != b.strides()) return false;
  return a.size() == 0 || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

void read_member(const npz_file& archive, const std::string& name) {
  require(archive.contains(name), "an archive has the members that it names");
  try {
    const npz_member about = archive.inspect(name);
    const tensor first = archive.read(name, {.checksum = npz_checksum::always});
    require(first.dtype() == about.header.dtype && first.shape() == about.header.shape,
            "a member is what inspecting it says");
    const tensor second = archive.read(name, {.access = access::copy_on_write});
    require(same_elements(first, second), "two ways of reading, one member");
  } catch (const error& failure) {
    require_refusal(failure);
  }
}

// ---- correcting checksums: a second reader of ZIP, as naive as can be
// -----------------------------

template <class Number>
Number number_at(const std::uint8_t* data, std::size_t offset) {
  Number value;
  std::memcpy(&value, data + offset, sizeof value);
  return value;
}

void put(std::uint8_t* data, std::size_t offset, std::uint32_t value) {
  std::memcpy(data + offset, &value, sizeof value);
}

// The bytes that a deflated member inflates to, up to a limit.
std::vector<std::uint8_t> inflated(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> content(std::size_t{1} << 18);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return {};
  stream.next_in = const_cast<Bytef*>(data);
  stream.avail_in = static_cast<uInt>(size);
  stream.next_out = content.data();
  stream.avail_out = static_cast<uInt>(content.size());
  inflate(&stream, Z_FINISH);
  content.resize(stream.total_out);
  inflateEnd(&stream);
  return content;
}

// A record of the central directory starts at `offset`.
void correct_member(std::uint8_t* data, std::size_t size, std::size_t offset) {
  constexpr std::size_t local_bytes = 30;
  const auto method = number_at<std::uint16_t>(data, offset + 10);
  const std::size_t stored = number_at<std::uint32_t>(data, offset + 20);
  const std::size_t local = number_at<std::uint32_t>(data, offset + 42);
  if (size < local_bytes || local > size - local_bytes) return;
  const std::size_t names = std::size_t{number_at<std::uint16_t>(data, local + 26)} +
                            number_at<std::uint16_t>(data, local + 28);
  const std::size_t begin = local + local_bytes + names;
  if (begin > size || stored > size - begin) return;
  std::uint32_t sum = 0;
  std::uint32_t length = 0;
  if (method == 8) {
    const auto content = inflated(data + begin, stored);
    sum = static_cast<std::uint32_t>(crc32(0, content.data(), static_cast<uInt>(content.size())));
    length = static_cast<std::uint32_t>(content.size());
  } else {
    sum = static_cast<std::uint32_t>(crc32(0, data + begin, static_cast<uInt>(stored)));
    length = static_cast<std::uint32_t>(stored);
  }
  put(data, offset + 16, sum);
  put(data, offset + 24, length);
  put(data, local + 14, sum);
  put(data, local + 18, static_cast<std::uint32_t>(stored));
  put(data, local + 22, length);
}

void correct_checksums(std::uint8_t* data, std::size_t size) {
  constexpr std::size_t record_bytes = 46;
  for (std::size_t offset = 0; offset + record_bytes <= size; ++offset)
    if (std::memcmp(data + offset, "PK\1\2", 4) == 0) correct_member(data, size, offset);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t size_max, unsigned seed) {
  const std::size_t mutated = LLVMFuzzerMutate(data, size, size_max);
  if (seed % 2 == 0) correct_checksums(data, mutated);
  return mutated;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  memory_pool& pool = memory_pool::default_pool();
  // Deflate compresses at most 1032 : 1, and members may not share bytes.
  pool.set_limit_bytes(std::size_t{1} << 30);
  pool.reset_peak();
  const fuzz::memory_file file({data, size});
  try {
    const npz_file archive = npz_file::open(file.path());
    for (const std::string& name : archive.names()) read_member(archive, name);
  } catch (const error& failure) {
    require_refusal(failure);
  }
  require(pool.statistics().peak_live_bytes <= 4 * 1040 * size + (std::size_t{16} << 20),
          "memory follows the archive's bytes");
  return 0;
}
