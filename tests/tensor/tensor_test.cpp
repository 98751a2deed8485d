#include "shale/tensor.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "shale/error.hpp"
#include "shale/mapped_file.hpp"
#include "shale/memory_pool.hpp"
#include "shale/view.hpp"
#include "support/failures.hpp"

namespace shale {
namespace {

using test::code_of;

std::string text_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const error& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

// ---- making
// --------------------------------------------------------------------------------------

TEST(Tensor, IsEmptyByDefault) {
  const tensor x;
  EXPECT_EQ(x.shape(), dims{0});
  EXPECT_EQ(x.dtype(), dtype::float32);
  EXPECT_EQ(x.size_bytes(), 0u);
  EXPECT_EQ(x.data(), nullptr);
  EXPECT_TRUE(x.is_contiguous());
}

TEST(Tensor, EmptyIsRowMajorInItsPool) {
  memory_pool pool;
  {
    const tensor x = tensor::empty({3, 4}, dtype::float64, &pool);
    EXPECT_EQ(x.strides(), (dims{4, 1}));
    EXPECT_EQ(x.size_bytes(), 96u);
    EXPECT_EQ(x.storage().size_bytes(), 96u);
    EXPECT_GE(pool.statistics().live_bytes, 96u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data()) % 64, 0u);
    EXPECT_EQ(x.stride(-2), 4);
    EXPECT_EQ(x.shape(-1), 4);
    EXPECT_EQ(code_of([&] { x.shape(2); }), errc::invalid_argument);
  }
  EXPECT_TRUE(pool.all_clear());
}

TEST(Tensor, ZerosAreZeroForEveryDtype) {
  for (int code = 1; code <= 17; ++code) {
    const auto type = dtype_from_code(static_cast<std::uint8_t>(code)).value();
    const tensor x = tensor::zeros({2, 3}, type);
    for (index_t i = 0; i < 2; ++i)
      for (index_t j = 0; j < 3; ++j) EXPECT_EQ(x.at({i, j}), scalar(0)) << name(type);
  }
  EXPECT_EQ(tensor::zeros({0}, dtype::int8).size(), 0);
}

TEST(Tensor, OfCopiesAndBorrowDoesNot) {
  float values[] = {1, 2, 3, 4};
  tensor borrowed = tensor::borrow(values, {2, 2});
  tensor copied = tensor::of<float>(values, {2, 2});
  values[3] = 9;
  EXPECT_EQ(borrowed.at({1, 1}), scalar(9));
  EXPECT_EQ(copied.at({1, 1}), scalar(4));
  borrowed.set({0, 0}, 7);
  EXPECT_EQ(values[0], 7);
  const float constant[] = {1};
  EXPECT_FALSE(tensor::borrow(constant, {1}).writable());
  EXPECT_EQ(text_of([&] { tensor::of<float>(values, {3}); }),
            "a shape does not fit the elements [invalid_argument]\n"
            "  got 4 values, wanted 3 for shape (3,)");
}

TEST(Tensor, RefusesElementsOutsideOrMisaligned) {
  const storage bytes = storage::allocate(64);
  EXPECT_EQ(code_of([&] { tensor(bytes, dtype::float64, layout({8})); }), errc{});
  EXPECT_EQ(code_of([&] { tensor(bytes, dtype::float64, layout({9})); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { tensor(bytes, dtype::float64, layout({8}, 1)); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { tensor(bytes, dtype::int8, layout({2}, {-1}, 0)); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { tensor(bytes, dtype::int8, layout({0}, 500)); }), errc{});
  EXPECT_EQ(text_of([&] { tensor(bytes.slice(2, 16), dtype::float32, layout({2})); }),
            "elements would be misaligned [invalid_argument]\n"
            "  float32 needs an address that is a multiple of 4\n"
            "  copy the bytes into a fresh tensor first");
  // A complex number has the alignment of its parts.
  EXPECT_EQ(code_of([&] { tensor(bytes.slice(8, 32), dtype::complex128, layout({2})); }), errc{});
  EXPECT_EQ(code_of([&] { tensor(bytes.slice(4, 32), dtype::complex64, layout({2})); }), errc{});
}

TEST(Tensor, RefusesMoreBytesThan64BitsCount) {
  EXPECT_EQ(text_of([] { tensor::empty({index_t{1} << 60}, dtype::complex128); }),
            "a tensor has too many bytes [invalid_argument]\n"
            "  shape (1152921504606846976,) of complex128 is beyond 2^63 - 1 bytes");
  EXPECT_EQ(code_of([] { tensor::empty({-1}, dtype::int8); }), errc::invalid_argument);
}

// ---- handles
// -------------------------------------------------------------------------------------

TEST(Tensor, BytesOfBroadcastElementsSaturate) {
  const tensor one = tensor::zeros({1}, dtype::float64);
  EXPECT_EQ(one.broadcast_to({index_t{1} << 60}).size_bytes(), std::size_t{1} << 63);
  EXPECT_EQ(one.broadcast_to({(index_t{1} << 61) - 1}).size_bytes(),
            (std::size_t{1} << 63) * 2 - 8);
  EXPECT_EQ(one.broadcast_to({index_t{1} << 61}).size_bytes(),
            std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(one.broadcast_to({(index_t{1} << 61) + 1}).size_bytes(),
            std::numeric_limits<std::size_t>::max());
}

TEST(Tensor, CopiesShareElements) {
  tensor x = tensor::of<std::int32_t>({1, 2, 3});
  const tensor y = x;
  x.set({0}, 5);
  EXPECT_EQ(y.at({0}), scalar(5));
  EXPECT_TRUE(y.is_set_to(x));
  EXPECT_FALSE(x.narrow(0, 0, 2).is_set_to(x));
  EXPECT_FALSE(x.view_as(dtype::float32).is_set_to(x));
  EXPECT_FALSE(x.clone().is_set_to(x));
  EXPECT_TRUE(tensor().is_set_to(tensor()));
  // A read-only handle is not the same as a writable one.
  EXPECT_FALSE(x.as_read_only().is_set_to(x));
  EXPECT_FALSE(x.is_set_to(x.as_read_only()));
  EXPECT_TRUE(x.as_read_only().is_set_to(y.as_read_only()));
}

TEST(Tensor, AViewKeepsTheElementsAlive) {
  memory_pool pool;
  tensor last = tensor::zeros({100}, dtype::int8, &pool).narrow(0, 99, 1);
  EXPECT_FALSE(pool.all_clear());
  EXPECT_EQ(last.item(), scalar(0));
  const auto typed = last.as<const std::int8_t, 1>();
  last = tensor();
  EXPECT_EQ(typed(0), 0);
  EXPECT_FALSE(pool.all_clear());
}

// ---- elements
// ------------------------------------------------------------------------------------

TEST(TensorElements, AtAndSetConvertEveryDtype) {
  for (int code = 1; code <= 17; ++code) {
    const auto type = dtype_from_code(static_cast<std::uint8_t>(code)).value();
    tensor x = tensor::zeros({2, 2}, type);
    x.set({1, -2}, true);
    EXPECT_EQ(x.at({-1, 0}), scalar(1)) << name(type);
    EXPECT_EQ(x.at({1, 0}).dtype(), type);
    EXPECT_EQ(x.at({0, 0}), scalar(0));
  }
}

TEST(TensorElements, SetRefusesValuesThatDoNotFit) {
  tensor x = tensor::zeros({1}, dtype::uint8);
  EXPECT_EQ(code_of([&] { x.set({0}, 256); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { x.set({0}, 0.5); }), errc::invalid_argument);
  EXPECT_EQ(x.item(), scalar(0));
  x.set({0}, 255.0);
  EXPECT_EQ(x.item(), scalar(255));
}

TEST(TensorElements, SetBumpsTheVersion) {
  tensor x = tensor::zeros({2}, dtype::uint8);
  const auto before = x.storage().version();
  static_cast<void>(x.at({0}));
  EXPECT_EQ(x.storage().version(), before);
  x.set({0}, 1);
  EXPECT_NE(x.narrow(0, 1, 1).storage().version(), before);
}

TEST(TensorElements, IndicesAreChecked) {
  tensor x = tensor::zeros({2, 3}, dtype::uint8);
  EXPECT_EQ(text_of([&] {
              x.at({0, -4});
            }),
            "index out of range [invalid_argument]\n"
            "  got index -4, but axis 1 has 3 positions");
  EXPECT_EQ(text_of([&] { x.set({0}, 1); }),
            "an index has the wrong rank [invalid_argument]\n"
            "  got 1 indices, wanted 2 for shape (2, 3)");
  EXPECT_EQ(code_of([] { tensor().at({0}); }), errc::invalid_argument);
}

TEST(TensorElements, ItemNeedsExactlyOneElement) {
  EXPECT_EQ(tensor::of<float>({2.5f}).view({1, 1}).item(), scalar(2.5));
  EXPECT_EQ(tensor::of<float>({2.5f}).view({}).item(), scalar(2.5));
  EXPECT_EQ(text_of([] {
              tensor::of<float>({1, 2}).item();
            }),
            "item() needs a tensor with one element [invalid_argument]\n"
            "  got shape (2,) with 2 elements");
}

TEST(TensorAs, WalksAnyLayout) {
  tensor x = tensor::empty({2, 3}, dtype::int16);
  auto rows = x.as<std::int16_t, 2>();
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) rows(i, j) = static_cast<std::int16_t>(10 * i + j);
  const auto turned = x.swapaxes(0, 1).flip({0}).as<const std::int16_t, 2>();
  EXPECT_EQ(turned.shape(0), 3);
  EXPECT_EQ(turned.stride(0), -1);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) EXPECT_EQ(turned(2 - j, i), 10 * i + j);
  const view<const std::int16_t, 2> readable = rows;
  EXPECT_EQ(readable(1, 2), 12);
  EXPECT_EQ((x.select(0, 1).select(0, 1).as<std::int16_t, 0>()()), 11);
}

TEST(TensorAs, RefusesTheWrongTypeAndRank) {
  const tensor x = tensor::zeros({2}, dtype::int32);
  EXPECT_EQ(text_of([&] { x.as<float, 1>(); }),
            "the tensor has dtype int32, not float32 [invalid_argument]\n"
            "  cast it, or use the type of its elements");
  EXPECT_EQ(text_of([&] { x.as<std::int32_t, 2>(); }),
            "the tensor has the wrong rank [invalid_argument]\n"
            "  got shape (2,), wanted rank 2");
}

TEST(TensorElements, SpansNeedContiguousElements) {
  tensor x = tensor::of<std::int32_t>({1, 2, 3, 4});
  EXPECT_EQ(x.narrow(0, 1, 2).elements<const std::int32_t>()[1], 3);
  EXPECT_EQ(x.elements<std::int32_t>().size(), 4u);
  EXPECT_EQ(tensor().elements<float>().size(), 0u);
  EXPECT_EQ(text_of([&] { x.flip().elements<std::int32_t>(); }),
            "the tensor is not contiguous [invalid_argument]\n"
            "  shape (4,) with strides (-1,)\n"
            "  call `contiguous()` first, or visit the elements with `as`");
}

// ---- tensors that refuse writing
// ------------------------------------------------------------------------

TEST(TensorWriting, IsRefusedByReadOnlyHandles) {
  tensor x = tensor::of<std::int32_t>({1, 2});
  tensor reader = x.as_read_only();
  EXPECT_FALSE(reader.writable());
  EXPECT_TRUE(x.writable());
  EXPECT_EQ(text_of([&] { reader.set({0}, 1); }),
            "a read-only tensor cannot be written [access_denied]\n"
            "  its storage refuses writing\n"
            "  write into a clone, or ask for const elements");
  EXPECT_EQ(code_of([&] { reader.narrow(0, 0, 1).as<std::int32_t, 1>(); }), errc::access_denied);
  EXPECT_EQ(code_of([&] { reader.view_as(dtype::uint8).elements<std::uint8_t>(); }),
            errc::access_denied);
  EXPECT_EQ((reader.as<const std::int32_t, 1>()(1)), 2);
  x.set({1}, 8);
  EXPECT_EQ(reader.at({1}), scalar(8));
  EXPECT_TRUE(reader.clone().writable());
}

TEST(TensorWriting, IsRefusedThroughBroadcastAxes) {
  tensor x = tensor::of<std::int32_t>({1}).broadcast_to({3});
  EXPECT_EQ(text_of([&] { x.set({0}, 1); }),
            "a broadcast tensor cannot be written [invalid_argument]\n"
            "  shape (3,) with strides (0,): several indices name one element\n"
            "  write into a clone, or ask for const elements");
  EXPECT_EQ(code_of([&] { x.as<std::int32_t, 1>(); }), errc::invalid_argument);
  EXPECT_EQ((x.as<const std::int32_t, 1>()(2)), 1);
  x.clone().set({2}, 4);
}

// ---- bytes that vanish
// ---------------------------------------------------------------------------

TEST(TensorElements, OfATruncatedFileThrowIo) {
  const std::string path = testing::TempDir() + "shale_truncated_" + std::to_string(getpid());
  const std::size_t bytes = 1 << 16;
  { create_file(path, bytes); }
  const tensor x(map_file(path), dtype::int32, layout({bytes / 4}));
  const tensor whole = tensor::zeros(x.shape(), dtype::int32);
  EXPECT_EQ(x.at({-1}), scalar(0));
  ASSERT_EQ(truncate(path.c_str(), 4096), 0);
  EXPECT_EQ(code_of([&] { x.at({-1}); }), errc::io);
  EXPECT_EQ(code_of([&] { x.clone(); }), errc::io);
  EXPECT_EQ(code_of([&] { equal_bits(whole, x); }), errc::io);
  EXPECT_EQ(code_of([&] { to_string(x); }), errc::io);
  EXPECT_EQ(code_of([&] { x.as<const std::int32_t, 1>(); }), errc::io);
  EXPECT_EQ(code_of([&] { x.elements<const std::int32_t>(); }), errc::io);
  unlink(path.c_str());
}

// ---- geometry in place
// ---------------------------------------------------------------------------

TEST(TensorResize, KeepsPositionsAndGrowsWhereThereIsReserve) {
  tensor x(storage::allocate(16, nullptr, 64), dtype::int32, layout({2, 2}));
  for (std::int32_t i = 0; i < 4; ++i) x.elements<std::int32_t>()[static_cast<std::size_t>(i)] = i;
  const tensor old = x;
  const void* address = x.data();
  x.resize({2, 5});
  EXPECT_EQ(x.data(), address);
  EXPECT_EQ(x.storage().size_bytes(), 40u);
  EXPECT_EQ(x.at({0, 3}), scalar(3));
  x.set({1, 4}, 9);
  EXPECT_EQ(old.shape(), (dims{2, 2}));
  x.resize({3});
  EXPECT_EQ(x.at({2}), scalar(2));
  EXPECT_EQ(x.storage().size_bytes(), 40u);
  EXPECT_EQ(
      text_of([&] { x.resize({17}); }),
      "a storage cannot grow that far [invalid_argument]\n"
      "  shape (17,) of int32 at offset 0 needs 68 bytes, and the storage can grow to 64\n"
      "  other handles refer to it: make the storage with a reserve, or copy into a new tensor");
  EXPECT_EQ(x.shape(), dims{3});
}

TEST(TensorResize, ReplacesMemoryThatGoesOnBehindItsHandle) {
  for (const index_t count : {32, 200, 100'000}) {
    storage whole = storage::allocate(1024);
    tensor x(whole.slice(0, 64), dtype::int32, layout(dims{16}));
    x.set({15}, 7);
    whole = storage();
    x.resize({count});  // nobody else holds the memory
    EXPECT_EQ(x.size(), count);
    EXPECT_EQ(x.at({15}), scalar(7));
  }
}

TEST(TensorResize, StartsWhereTheTensorStarts) {
  tensor x = tensor::of<std::int32_t>({0, 1, 2, 3, 4, 5}).narrow(0, 2, 1);
  x.resize({2, 2});
  EXPECT_EQ(x.at({1, 1}), scalar(5));
  x.resize({5});  // nobody else holds the memory
  EXPECT_EQ(x.at({0}), scalar(2));
  EXPECT_EQ(x.at({3}), scalar(5));
  const tensor other = x;
  EXPECT_EQ(code_of([&] { x.resize({6}); }), errc::invalid_argument);
  x.resize({0, 7});
  EXPECT_EQ(x.size(), 0);
}

TEST(TensorContiguous, CopiesOnlyWhereItMust) {
  const tensor x = tensor::of<std::int32_t>({1, 2, 3, 4}).view({2, 2});
  EXPECT_TRUE(x.contiguous().is_set_to(x));
  const tensor turned = x.swapaxes(0, 1).contiguous();
  EXPECT_FALSE(turned.storage().shares_owner_with(x.storage()));
  EXPECT_EQ(turned.at({0, 1}), scalar(3));
}

TEST(Tensor, RefusesWhatIsNoDtype) {
  for (const int code : {0, 18, 255}) {
    const auto none = static_cast<dtype>(code);
    EXPECT_EQ(code_of([&] { tensor::empty({2}, none); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { tensor::empty({0}, none); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { tensor::zeros({}, none); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { tensor(storage::allocate(64), none, layout(dims{2})); }),
              errc::invalid_argument);
    EXPECT_EQ(code_of([&] { tensor::zeros({2}, dtype::int8).view_as(none); }),
              errc::invalid_argument);
  }
}

}  // namespace
}  // namespace shale
