// Tests the choice of codecs: what is tried, what is chosen, and that both are true of real arrays.
#include "shale/codec_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>

#include "array/test_support.hpp"
#include "shale/executor.hpp"
#include "shale/ops.hpp"
#include "support/failures.hpp"

namespace shale {
namespace {

class CodecChoice : public test::fresh_container {};

template <class T>
tensor to_tensor(const std::vector<T>& values) {
  return tensor::of(std::span<const T>(values), {static_cast<index_t>(values.size())});
}

array_spec chunked(dtype type, const dims& shape, std::optional<dims> chunk = std::nullopt) {
  return {.dtype = type, .shape = shape, .kind = array_kind::chunked, .chunk_shape = chunk};
}

// A surface with a little noise in its last digits.
template <class T>
tensor surface(index_t rows, index_t columns) {
  std::mt19937 random(5);
  std::vector<T> values;
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j)
      values.push_back(static_cast<T>(i * 3 + j * 2 + static_cast<index_t>(random() % 4)));
  return to_tensor(values).reshape({rows, columns});
}

tensor noise(index_t count) {
  std::mt19937 random(6);
  std::vector<std::uint8_t> values;
  for (index_t i = 0; i < count; ++i) values.push_back(static_cast<std::uint8_t>(random()));
  return to_tensor(values);
}

TEST_F(CodecChoice, CountsTheBytesThatAnArrayWouldStore) {
  const tensor values = surface<std::int32_t>(200, 300);
  const array_spec spec = chunked(dtype::int32, {200, 300}, dims{200, 300});
  const codec_choice choice = choose_codec(values, spec);
  EXPECT_EQ(choice.sample_bytes, 200u * 300 * 4);
  EXPECT_EQ(choice.trials.size(), 19u);
  int number = 0;
  for (const codec_trial& trial : choice.trials) {
    array_spec tried = spec;
    tried.codec = trial.codec;
    const std::string name = "a" + std::to_string(number++);
    write_new(name, tried, values);
    EXPECT_EQ(at(name).stored_bytes(), trial.stored_bytes) << name;
  }
}

TEST_F(CodecChoice, TakesASlowerCodecOnlyIfItSavesATenth) {
  for (const tensor& values :
       {surface<std::int16_t>(64, 4096), surface<float>(300, 500), surface<double>(9, 7)}) {
    const codec_choice choice = choose_codec(values, chunked(values.dtype(), values.shape()));
    // The rule again, seen from its result: the chosen one saves a tenth over what was best before
    // it, and nothing after it saves another tenth.
    std::uint64_t chosen = 0;
    for (const codec_trial& trial : choice.trials)
      if (trial.codec == choice.codec) chosen = trial.stored_bytes;
    ASSERT_GT(chosen, 0u);
    bool is_behind = false;
    for (const codec_trial& trial : choice.trials) {
      if (trial.codec == choice.codec) is_behind = true;
      else if (is_behind) EXPECT_GE(trial.stored_bytes * 10, chosen * 9);
      else EXPECT_GT(trial.stored_bytes * 9, chosen * 10 - 10);
    }
    EXPECT_TRUE(choice.codec.compression);
  }
}

TEST_F(CodecChoice, LeavesNoiseAsItIs) {
  const codec_choice choice = choose_codec(noise(100'000), chunked(dtype::uint8, {100'000}));
  EXPECT_FALSE(choice.codec.compression);
  EXPECT_EQ(choice.codec.shuffle, shuffle_mode::none);
}

TEST_F(CodecChoice, FindsDifferencesOfIntegersAndBytesOfFloats) {
  std::vector<std::int64_t> ramp;
  std::mt19937 random(7);
  for (std::int64_t value = 1'000'000'000; ramp.size() < 50'000;
       value += static_cast<std::int64_t>(random() % 200))
    ramp.push_back(value);
  const codec_choice integers = choose_codec(to_tensor(ramp), chunked(dtype::int64, {50'000}));
  EXPECT_TRUE(integers.codec.delta);
  EXPECT_NE(integers.codec.shuffle, shuffle_mode::none);
  const codec_choice floats =
      choose_codec(surface<double>(300, 300), chunked(dtype::float64, {300, 300}));
  EXPECT_FALSE(floats.codec.delta);
}

TEST_F(CodecChoice, SamplesFourBlocksFromAllOverTheArray) {
  // The first quarter of the chunks is zeros, the rest is noise.
  const index_t rows = 64, columns = 1 << 18;
  const tensor values = noise(rows * columns).reshape({rows, columns});
  fill(values.sliced(0, {0, rows / 4}), 0);
  const array_spec spec = chunked(dtype::uint8, {rows, columns}, dims{1, columns});
  const codec_choice choice = choose_codec(values, spec);
  EXPECT_EQ(choice.sample_bytes, 4u << 18);
  const codec_trial& smallest = *std::min_element(
      choice.trials.begin(), choice.trials.end(),
      [](const auto& a, const auto& b) { return a.stored_bytes < b.stored_bytes; });
  EXPECT_GT(smallest.stored_bytes, 3u << 18);
  EXPECT_LT(smallest.stored_bytes, (3u << 18) + (1u << 14));
}

TEST_F(CodecChoice, SamplesTheEndOfAnArrayThatFourDoesNotDivide) {
  const index_t columns = 1 << 16;
  for (index_t rows = 5; rows <= 11; ++rows) {
    const tensor values = noise(rows * columns).reshape({rows, columns});
    fill(values.sliced(0, {0, rows - rows / 4}), 0);
    const codec_choice choice =
        choose_codec(values, chunked(dtype::uint8, {rows, columns}, dims{1, columns}));
    const auto raw = choice.trials.front().stored_bytes, packed = choice.trials.back().stored_bytes;
    EXPECT_GT(packed, raw / 5) << rows;
    EXPECT_LT(packed, raw / 3) << rows;
  }
}

TEST_F(CodecChoice, ReadsOnlyTheTilesOfItsSample) {
  const tensor values = surface<std::int16_t>(256, 1024);
  write_new("a", chunked(dtype::int16, {256, 1024}, dims{4, 1024}), values);
  const array stored = at("a");
  const executor on({.threads = 1});
  const codec_choice from_file = [&] {
    const executor::scope within(on);
    return choose_codec(expr(stored), chunked(dtype::int16, {256, 1024}, dims{4, 1024}));
  }();
  EXPECT_EQ(on.statistics().tiles_decoded, 4u);
  const codec_choice from_memory =
      choose_codec(values, chunked(dtype::int16, {256, 1024}, dims{4, 1024}));
  EXPECT_EQ(from_file.sample_bytes, 4u * 4 * 1024 * 2);
  EXPECT_EQ(from_file.codec, from_memory.codec);
}

TEST_F(CodecChoice, KeepsRoundingAndConvertsElements) {
  array_spec spec = chunked(dtype::float32, {100, 100});
  spec.codec.bitround = 5;
  const codec_choice choice = choose_codec(expr(surface<double>(100, 100)) / 7, spec);
  EXPECT_EQ(choice.codec.bitround, 5);
  for (const codec_trial& trial : choice.trials) EXPECT_EQ(trial.codec.bitround, 5);
  EXPECT_EQ(choice.sample_bytes, 40'000u);
}

TEST_F(CodecChoice, OfNoElementsTriesNothing) {
  const codec_choice choice = choose_codec(expr(1), chunked(dtype::int16, {0, 5}));
  EXPECT_TRUE(choice.trials.empty());
  EXPECT_EQ(choice.codec, codec_spec{});
}

TEST_F(CodecChoice, RefusesWhatNoArrayCanHave) {
  using test::code_of;
  const auto code = [](const array_spec& spec) {
    return code_of([&] { choose_codec(expr(1), spec); });
  };
  array_spec rounded = chunked(dtype::int16, {4});
  rounded.codec.bitround = 3;
  EXPECT_EQ(code(rounded), errc::invalid_argument);
  array_spec empty = chunked(dtype::float32, {0});
  empty.codec.bitround = 99;
  EXPECT_EQ(code(empty), errc::invalid_argument);
  EXPECT_EQ(code(chunked(dtype::int16, {4}, dims{2, 2})), errc::invalid_argument);
  const index_t huge = index_t{1} << 31;
  EXPECT_EQ(code(chunked(dtype::uint8, {huge}, dims{huge})), errc::invalid_argument);
  EXPECT_EQ(code(chunked(dtype::int16, {4}, dims{0})), errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              choose_codec(surface<float>(3, 3), chunked(dtype::float32, {4, 4}));
            }),
            errc::invalid_argument);
}

}  // namespace
}  // namespace shale
