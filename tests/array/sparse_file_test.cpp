// Tests containers of a few pages that claim to hold terabytes. They are sparse files, whose holes
// read as zeros. A call must use memory for the elements that it asks for, not for those that the
// file claims.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array/test_support.hpp"
#include "format/bytes/checksum.hpp"
#include "format/container/container_file.hpp"
#include "shale/container.hpp"
#include "support/little_memory.hpp"

namespace shale {
namespace {

using test::code_of;

constexpr std::uint64_t segment = format::dense_segment_bytes;

using format::os_result;

// A file whose space is not reserved: reserving only sets its length.
class sparse_file final : public format::open_file {
 public:
  explicit sparse_file(std::unique_ptr<open_file> real) : real_(std::move(real)) {}

  os_result allocate(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    const os_result size = real_->size();
    const auto end = static_cast<os_result>(offset + bytes);
    return size < 0 || size >= end ? size : real_->truncate(offset + bytes);
  }

  os_result pread(format::bytes_span into, std::uint64_t offset) noexcept override {
    return real_->pread(into, offset);
  }
  os_result pwrite(format::bytes_view bytes, std::uint64_t offset) noexcept override {
    return real_->pwrite(bytes, offset);
  }
  os_result punch(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    return real_->punch(offset, bytes);
  }
  os_result sync_data() noexcept override { return real_->sync_data(); }
  os_result truncate(std::uint64_t bytes) noexcept override { return real_->truncate(bytes); }
  os_result size() noexcept override { return real_->size(); }
  os_result identify(format::file_identity& identity) noexcept override {
    return real_->identify(identity);
  }
  os_result try_lock(std::uint64_t byte, format::lock_mode mode) noexcept override {
    return real_->try_lock(byte, mode);
  }
  os_result find_lock(format::lock_range within, format::found_lock& found) noexcept override {
    return real_->find_lock(within, found);
  }
  void wait_word(std::uint64_t, std::uint32_t, std::chrono::milliseconds) noexcept override {}
  void wake_word(std::uint64_t) noexcept override {}

 private:
  std::unique_ptr<open_file> real_;
};

class sparse_files final : public format::file_system {
 public:
  os_result open(const std::string& path, format::open_access access,
                 std::unique_ptr<format::open_file>& opened) noexcept override {
    std::unique_ptr<format::open_file> real;
    const os_result result = real_.open(path, access, real);
    if (result >= 0) opened = std::make_unique<sparse_file>(std::move(real));
    return result;
  }
  os_result create_unnamed(const std::string& path, unsigned mode,
                           std::unique_ptr<format::open_file>& created) noexcept override {
    return real_.create_unnamed(path, mode, created);
  }
  os_result link(format::open_file& file, const std::string& path) noexcept override {
    return real_.link(file, path);
  }
  os_result rename(const std::string& from, const std::string& to) noexcept override {
    return real_.rename(from, to);
  }
  os_result remove(const std::string& path) noexcept override { return real_.remove(path); }
  os_result open_directory_of(const std::string& path,
                              std::unique_ptr<format::open_directory>& opened) noexcept override {
    return real_.open_directory_of(path, opened);
  }
  os_result identify(const std::string& path, format::file_identity& identity) noexcept override {
    return real_.identify(path, identity);
  }
  std::chrono::microseconds pause(std::chrono::milliseconds duration) noexcept override {
    return real_.pause(duration);
  }

 private:
  format::file_system& real_ = format::posix_files();
};

class SparseFile : public testing::Test {
 protected:
  ~SparseFile() override { ::unlink(path_.c_str()); }

  static format::array_record of_bytes(const std::string& name, std::uint64_t bytes) {
    format::array_record record;
    record.name = name;
    record.dtype = dtype::uint8;
    record.shape = {static_cast<index_t>(bytes)};
    record.fill_value.resize(1);
    return record;
  }

  // A dense array of zeros, which is one hole in the file. Its checksums are a hole too, unless
  // given.
  void declare_dense(std::uint64_t bytes, const std::vector<std::uint64_t>& sums = {}) {
    format::transaction change = file_.begin(std::chrono::milliseconds{0});
    format::array_record record = of_bytes("dense", bytes);
    format::dense_layout layout;
    layout.extents = {change.allocate(bytes)};
    const std::uint64_t sums_bytes = bytes / segment * 8;
    layout.checksums = change.allocate(sums_bytes);
    if (!sums.empty()) {
      const format::bytes_view stored = std::as_bytes(std::span(sums));
      ASSERT_EQ(stored.size(), sums_bytes);
      change.write(layout.checksums.offset, stored);
      layout.checksums_checksum = format::checksum_metadata(stored);
    }
    record.layout = layout;
    change.put(record);
    change.commit();
  }

  // The file is in memory, where it may be long; it is removed after the test.
  const std::string path_ = "/dev/shm/shale-sparse-file-test-" + std::to_string(::getpid());
  sparse_files files_;
  format::container_file file_ = format::container_file::create(files_, path_);
};

TEST_F(SparseFile, OfManySumsIsReadAndVerifiedInLittleMemory) {
  constexpr std::uint64_t bytes = (48u << 20) * segment;  // 384 MiB of checksums
  declare_dense(bytes);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  ASSERT_LT(status.st_blocks, 4096);
  const container file = container::open(path_);
  const array dense = file.latest().at("dense");
  const test::little_memory limit;
  const auto some = [&](std::uint64_t first, std::uint64_t count) {
    return dense.read({{static_cast<index_t>(first)}, {static_cast<index_t>(count)}});
  };
  // Parts of a segment are not verified, so this reads no checksums.
  EXPECT_TRUE(equal_bits(some(bytes - 16, 16), tensor::zeros({16}, dtype::uint8)));
  EXPECT_EQ(code_of([&] { some(segment, segment); }), errc::corrupt);
  const verification report = file.verify();
  ASSERT_EQ(report.findings.size(), 1u) << test::findings_of(file);
  EXPECT_EQ(report.findings[0].code, errc::corrupt);
  EXPECT_NE(report.findings[0].text.find("segment checksums"), std::string::npos);
}

TEST_F(SparseFile, OfALargeChunkIsVerifiedInLittleMemory) {
  constexpr std::uint64_t bytes = 512u << 20;
  {
    format::transaction change = file_.begin(std::chrono::milliseconds{0});
    format::array_record record = of_bytes("chunked", bytes);
    format::chunked_layout layout;
    layout.chunk_shape = record.shape;
    layout.grid_capacity = {1};
    record.layout = layout;
    change.put(record);
    change.set_chunk("chunked", 0, {change.allocate_chunk(bytes).offset, bytes, 0, 0});
    change.commit();
  }
  const container file = container::open(path_);
  const test::little_memory limit;
  const verification report = file.verify();
  ASSERT_EQ(report.findings.size(), 1u) << test::findings_of(file);
  EXPECT_EQ(report.findings[0].code, errc::corrupt);
  EXPECT_NE(report.findings[0].text.find("chunk 0"), std::string::npos);
}

// More checksums than are read in one piece, and more than a handle keeps; each must be found at
// its place.
class LongSums : public SparseFile, public testing::WithParamInterface<std::uint64_t> {};

TEST_P(LongSums, FarBehindTheFirstAreFound) {
  const std::uint64_t of_zeros = format::checksum_data(std::vector<std::byte>(segment));
  std::vector<std::uint64_t> sums(GetParam() / 512 * 512);
  for (const std::size_t right : {std::size_t{0}, std::size_t{131'072}, sums.size() - 1})
    sums[right] = of_zeros;
  declare_dense(sums.size() * segment, sums);
  const container file = container::open(path_);
  const array dense = file.latest().at("dense");
  const auto read = [&](std::size_t first, std::size_t count) {
    return dense.read(
        {{static_cast<index_t>(first * segment)}, {static_cast<index_t>(count * segment)}});
  };
  for (std::size_t number : {std::size_t{0}, std::size_t{1}, std::size_t{131'071},
                             std::size_t{131'072}, std::size_t{131'073}, sums.size() - 1})
    EXPECT_EQ(code_of([&] { read(number, 1); }), sums[number] == 0 ? errc::corrupt : errc{})
        << number;
  EXPECT_EQ(code_of([&] { read(131'071, 2); }), errc::corrupt);
  EXPECT_EQ(code_of([&] { read(131'072, 2); }), errc::corrupt);
}

INSTANTIATE_TEST_SUITE_P(Of, LongSums, testing::Values(300'000, 1'300'000));

}  // namespace
}  // namespace shale
