// Enumeration values that are not enumerators (from a cast or uninitialised memory), in every
// public function of storages, arrays and foreign files that takes one: they are refused, and
// nothing is made.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "shale/shale.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

class OddValue : public testing::Test {
 protected:
  void SetUp() override {
    write_npy(directory_ / "x.npy", values_);
    write_raw(directory_ / "x.raw", values_);
    const std::pair<std::string, tensor> member{"a", values_};
    write_npz(directory_ / "x.npz", std::span(&member, 1));
    container::create(directory_ / "x.shale").close();
  }

  // The call must throw invalid_argument, and no file may be made, removed or changed.
  void expect_refused(const std::string& door, const std::function<void()>& call) {
    SCOPED_TRACE(door);
    auto before = directory_.names();
    const auto bytes = test::read_file(directory_ / "x.npy");
    const test::outcome got = test::outcome_of(call);
    EXPECT_EQ(got.code.value_or(errc{}), errc::invalid_argument) << got.text;
    auto after = directory_.names();
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
    EXPECT_EQ(before, after);
    EXPECT_EQ(test::read_file(directory_ / "x.npy"), bytes);
  }

  // A segment of an odd lifetime, if it were made, could be removed in no other way.
  ~OddValue() override { ::shm_unlink(("/shale." + segment_).c_str()); }

  const std::string segment_ = "odd-values-" + std::to_string(::getpid());
  test::scratch_directory directory_;
  const tensor values_ = tensor::of<float>({1, 2, 3, 4});
};

TEST_F(OddValue, OfADtypeIsRefused) {
  container file = container::open(directory_ / "x.shale", open_mode::write);
  transaction change = file.begin();
  for (const int code : {0, 18, 99, 200, 255}) {
    const auto odd = static_cast<dtype>(code);
    SCOPED_TRACE(code);
    EXPECT_EQ(name(odd), "no dtype");
    EXPECT_EQ(dtype_from_code(static_cast<std::uint8_t>(code)), std::nullopt);

    // Arrays.
    for (const array_kind kind : {array_kind::dense, array_kind::chunked}) {
      expect_refused("create", [&] { change.create("a", {odd, {4}, kind}); });
      expect_refused("create, empty", [&] { change.create("a", {odd, {0}, kind}); });
    }
    expect_refused("create, with chunks", [&] {
      change.create("a", {odd, {4}, array_kind::chunked, dims{2}, {.delta = true}});
    });
    expect_refused("create, rounded", [&] {
      change.create("a", {odd, {4}, array_kind::chunked, dims{2}, {.bitround = 3}});
    });
    expect_refused("default_chunk_shape", [&] { default_chunk_shape({4}, odd); });
    EXPECT_FALSE(change.find("a").has_value());

    // Foreign files.
    expect_refused("npy_writer", [&] { npy_writer(directory_ / "new.npy", odd, {4}); });
    expect_refused("npy_writer, over a file", [&] { npy_writer(directory_ / "x.npy", odd, {4}); });
    expect_refused("format_npy_header", [&] { format_npy_header({.dtype = odd, .shape = {4}}); });
    expect_refused("npy_header::data_bytes",
                   [&] { static_cast<void>(npy_header{.dtype = odd, .shape = {4}}.data_bytes()); });
    EXPECT_EQ((npy_header{.dtype = odd, .shape = {4}}.layout().size()), 4);
    for (const std::endian order : {std::endian::little, std::endian::big}) {
      expect_refused("read_raw",
                     [&] { read_raw(directory_ / "x.raw", odd, {.byte_order = order}); });
      expect_refused("read_raw, with a shape", [&] {
        read_raw(directory_ / "x.raw", odd, {.shape = dims{4}, .byte_order = order});
      });
      expect_refused("read_raw, with no elements", [&] {
        read_raw(directory_ / "x.raw", odd, {.shape = dims{0}, .byte_order = order});
      });
    }

    // Arguments of array writers: such values never become tensors or expressions.
    expect_refused("empty", [&] { tensor::empty({4}, odd); });
    expect_refused("zeros", [&] { tensor::zeros({4}, odd); });
    expect_refused("tensor", [&] { tensor(storage::allocate(64), odd, layout(dims{4})); });
    expect_refused("tensor, empty", [&] { tensor(storage(), odd, layout(dims{0})); });
    expect_refused("view_as", [&] { values_.view_as(odd); });
    expect_refused("cast", [&] { astype(values_, odd); });
    expect_refused("full", [&] { full({4}, 1, odd); });
    expect_refused("arange", [&] { arange(0, 4, 1, odd); });
    expect_refused("promote", [&] { promote(odd, dtype::int8); });
    expect_refused("promote, the other", [&] { promote(dtype::int8, odd); });
    expect_refused("converts_losslessly", [&] { converts_losslessly(dtype::int8, odd); });
    expect_refused("visit", [&] { visit(odd, all_types{}, [](auto) {}); });
    EXPECT_FALSE(scalar(1).fits(odd));
  }
  change.abort();
}

TEST_F(OddValue, OfALengthIsRefused) {
  // Products that no file's length can reach; nothing else limits the size of a header's elements.
  for (const dims& shape :
       {dims{-1}, dims{4, -4}, dims{index_t{1} << 62}, dims{index_t{1} << 40, index_t{1} << 40}})
    expect_refused(to_string(shape), [&] {
      static_cast<void>(npy_header{.dtype = dtype::complex128, .shape = shape}.data_bytes());
    });
  EXPECT_EQ((npy_header{.shape = {0, 5}}.data_bytes()), 0u);
  for (const dims& shape : {dims{index_t{1} << 62}, dims{INT64_MAX}, dims{0, INT64_MAX}, dims{}})
    for (const std::size_t target : {std::size_t{0}, std::size_t{1}, SIZE_MAX})
      for (const index_t extent : default_chunk_shape(shape, dtype::uint8, target))
        EXPECT_GE(extent, 1);
  for (const dims& shape : {dims{4, -1}, dims{INT64_MAX, INT64_MAX}})
    expect_refused("default_chunk_shape", [&] { default_chunk_shape(shape, dtype::int8); });
}

// Other enumerations, for which an invalid value would do something unintended, or leave files that
// nobody can remove.
TEST_F(OddValue, OfAnyEnumerationIsRefused) {
  const std::string npy = directory_ / "x.npy";
  const std::string made = directory_ / "new";
  const auto how = static_cast<existing_file>(7);
  expect_refused("write_npy", [&] { write_npy(npy, values_, {.existing = how}); });
  expect_refused("write_raw", [&] { write_raw(npy, values_, {.existing = how}); });
  expect_refused("write_npz", [&] { write_npz(npy, {}, {.existing = how}); });
  expect_refused("npy_writer", [&] { npy_writer(npy, dtype::int8, {4}, {.existing = how}); });
  expect_refused("unfinished_file", [&] { unfinished_file(npy, how); });
  expect_refused("npz_writer", [&] { npz_writer(npy, {.existing = how}); });
  expect_refused("create_file", [&] { create_file(made, 8, {.existing = how}); });
  expect_refused("write_npz, compression",
                 [&] { write_npz(made, {}, {.compression = static_cast<npz_compression>(7)}); });
  expect_refused("write_raw, order",
                 [&] { write_raw(made, values_, {.byte_order = static_cast<std::endian>(7)}); });
  expect_refused("read_raw, order", [&] {
    read_raw(directory_ / "x.raw", dtype::int8, {.byte_order = static_cast<std::endian>(7)});
  });
  expect_refused("format_npy_header, order",
                 [&] { format_npy_header({.byte_order = static_cast<std::endian>(7)}); });
  expect_refused("read_npy, trailing",
                 [&] { read_npy(npy, {.trailing = static_cast<trailing_bytes>(7)}); });
  expect_refused("npz_file::read, checksum", [&] {
    npz_file::open(directory_ / "x.npz").read("a", {.checksum = static_cast<npz_checksum>(7)});
  });

  const auto access_7 = static_cast<access>(7);
  expect_refused("map_file", [&] { map_file(npy, {.access = access_7}); });
  expect_refused("mapping_support_at", [&] { mapping_support_at(npy, access_7); });
  expect_refused("read_npy", [&] { read_npy(npy, {.access = access_7}); });
  expect_refused("read_raw",
                 [&] { read_raw(directory_ / "x.raw", dtype::int8, {.access = access_7}); });
  expect_refused("npz_file::read",
                 [&] { npz_file::open(directory_ / "x.npz").read("a", {.access = access_7}); });
  char bytes[8] = {};
  expect_refused("adopt", [&] { storage::adopt(bytes, 8, nullptr, access_7); });
  expect_refused("adopt, owned", [&] {
    storage::adopt(
        bytes, 8, [](void*) {}, access_7);
  });
  expect_refused("adopt_owner", [&] { storage::adopt_owner(bytes, 8, nullptr, access_7); });

  expect_refused("create_shared", [&] {
    create_shared(segment_, 8, {.lifetime = static_cast<shared_lifetime>(7)});
  });
  EXPECT_FALSE(remove_shared(segment_));
  const storage shared = create_shared(segment_, 8);
  expect_refused("open_shared", [&] { open_shared(segment_, {.access = access_7}); });
  expect_refused("open_shared, owner",
                 [&] { open_shared(segment_, {.owner = static_cast<shared_owner>(7)}); });

  const auto mode = static_cast<open_mode>(7);
  const std::string file = directory_ / "x.shale";
  expect_refused("container::open", [&] { container::open(file, mode); });
  expect_refused("container::create", [&] { container::create(made, mode); });
  expect_refused("container::open_or_create", [&] { container::open_or_create(made, mode); });
  expect_refused("container::open_if_exists", [&] { container::open_if_exists(made, mode); });
  container opened = container::open(file, open_mode::write);
  transaction change = opened.begin();
  expect_refused("create",
                 [&] { change.create("a", {.shape = {4}, .kind = static_cast<array_kind>(7)}); });
  expect_refused("create, shuffled", [&] {
    change.create("a", {.shape = {4},
                        .kind = array_kind::chunked,
                        .codec = {.shuffle = static_cast<shuffle_mode>(7)}});
  });
  EXPECT_FALSE(change.find("a").has_value());

  expect_refused("executor", [&] { executor({.checksums = static_cast<checksum_use>(7)}); });
}

}  // namespace
}  // namespace shale
