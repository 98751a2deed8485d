#include "format/codec/codec.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "format/codec/shuffle.hpp"
#include "shale/error.hpp"
#include "shale/small_floats.hpp"

namespace shale::format {
namespace {

using bytes = std::vector<std::byte>;

constexpr codec_stage zstd1{stage_kind::zstd, 1};
constexpr codec_stage lz4_1{stage_kind::lz4, 1};
constexpr codec_stage by_bytes{stage_kind::byte_shuffle, 0};
constexpr codec_stage by_bits{stage_kind::bit_shuffle, 0};
constexpr codec_stage delta{stage_kind::delta, 0};

bytes random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  bytes made(count);
  for (auto& value : made) value = static_cast<std::byte>(random());
  return made;
}

// Compressible elements: a slowly rising ramp of the given width, with a little noise.
bytes ramp(std::size_t elements, std::size_t width, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  bytes made(elements * width);
  std::uint64_t value = seed;
  for (std::size_t i = 0; i < elements; ++i) {
    value += random() % 5;
    for (std::size_t k = 0; k < width; ++k)
      made[i * width + k] = k < 8 ? static_cast<std::byte>(value >> (8 * k)) : std::byte{0};
  }
  return made;
}

bytes round_trip(const codec& coder, const bytes& chunk) {
  codec_workspace workspace;
  const encoded_chunk encoded = coder.encode(chunk, workspace);
  EXPECT_LE(encoded.stored.size(), chunk.size());  // codec.2
  const bytes stored(encoded.stored.begin(), encoded.stored.end());
  bytes back(chunk.size(), std::byte{0xee});
  coder.decode(stored, encoded.flags, back, workspace);
  return back;
}

// ---- the orders of bytes and bits, element by element ------------------------------------------

bytes naive_byte_shuffle(const bytes& source, std::size_t width) {
  const std::size_t count = source.size() / width;
  bytes to(source.size());
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < width; ++k) to[k * count + i] = source[i * width + k];
  return to;
}

bytes naive_bit_shuffle(const bytes& source, std::size_t width) {
  const std::size_t count = source.size() / width / 8 * 8;
  bytes to(source.size());
  std::copy(source.begin() + static_cast<std::ptrdiff_t>(count * width), source.end(),
            to.begin() + static_cast<std::ptrdiff_t>(count * width));
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t bit = 0; bit < 8 * width; ++bit)
      if ((source[i * width + bit / 8] & std::byte(1u << bit % 8)) != std::byte{0})
        to[bit * count / 8 + i / 8] |= std::byte(1u << i % 8);
  return to;
}

TEST(Shuffle, OrdersBytesAndBitsAsTheFormatSays) {
  for (const std::size_t width : {1, 2, 4, 8, 16}) {
    for (std::size_t count = 0; count < 200; count += count < 40 ? 1 : 13) {
      const bytes source = random_bytes(count * width, count + width);
      bytes to(source.size());
      bytes scratch(source.size());
      bytes back(source.size());
      shuffle_bytes(source, width, to);
      ASSERT_EQ(to, naive_byte_shuffle(source, width)) << width << " x " << count;
      unshuffle_bytes(to, width, back);
      ASSERT_EQ(back, source);
      shuffle_bits(source, width, scratch, to);
      ASSERT_EQ(to, naive_bit_shuffle(source, width)) << width << " x " << count;
      unshuffle_bits(to, width, scratch, back);
      ASSERT_EQ(back, source);
    }
  }
}

// ---- pipelines ---------------------------------------------------------------------------------

RC_GTEST_PROP(Codec, DecodesWhatItEncoded, ()) {
  const auto type =
      *rc::gen::element(dtype::boolean, dtype::int8, dtype::uint16, dtype::int32, dtype::uint64,
                        dtype::float16, dtype::bfloat16, dtype::float32, dtype::float64,
                        dtype::complex64, dtype::complex128, dtype::float8_e5m2);
  const bool integer = type >= dtype::int8 && type <= dtype::uint64;
  std::vector<codec_stage> stages;
  if (integer && *rc::gen::arbitrary<bool>()) stages.push_back(delta);
  const int shuffle = *rc::gen::inRange(0, 3);
  if (shuffle == 1) stages.push_back(by_bytes);
  if (shuffle == 2) stages.push_back(by_bits);
  const int compressor = *rc::gen::inRange(0, 4);
  if (compressor == 1) stages.push_back({stage_kind::lz4, *rc::gen::element(-100, -5, 1, 3, 12)});
  if (compressor > 1) stages.push_back({stage_kind::zstd, *rc::gen::element(-5, 1, 3, 9)});
  const auto elements = *rc::gen::inRange<std::size_t>(1, 3000);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const std::size_t width = item_bytes(type);
  const bytes chunk = *rc::gen::arbitrary<bool>() ? ramp(elements, width, seed)
                                                  : random_bytes(elements * width, seed);
  RC_ASSERT(round_trip(codec(stages, type), chunk) == chunk);
}

TEST(Codec, StoresRubbishRaw) {  // codec.2
  codec_workspace workspace;
  const std::vector<codec_stage> compressing{
      zstd1, lz4_1, {stage_kind::lz4, 9}, {stage_kind::lz4, 10}, {stage_kind::lz4, 12}};
  for (const codec_stage& last : compressing) {
    const codec coder({by_bytes, last}, dtype::float32);
    for (const std::size_t size : {4u, 100u, 4096u, 100'000u}) {
      const bytes chunk = random_bytes(size, 1);
      const encoded_chunk encoded = coder.encode(chunk, workspace);
      EXPECT_EQ(encoded.flags, chunk_flag_raw) << last.parameter;
      EXPECT_EQ(bytes(encoded.stored.begin(), encoded.stored.end()), chunk) << last.parameter;
    }
  }
}

TEST(Codec, CompressesSmoothDataBetterShuffled) {
  const bytes chunk = ramp(1 << 16, 4, 1);
  codec_workspace workspace;
  const auto stored = [&](std::vector<codec_stage> stages) {
    return codec(std::move(stages), dtype::int32).encode(chunk, workspace).stored.size();
  };
  EXPECT_LT(stored({by_bytes, zstd1}), stored({zstd1}));
  EXPECT_LT(stored({delta, by_bytes, zstd1}), stored({by_bytes, zstd1}));
}

TEST(Codec, StoresOneStandardFrame) {
  const bytes chunk = ramp(1000, 4, 1);
  codec_workspace workspace;
  const encoded_chunk encoded = codec({zstd1}, dtype::int32).encode(chunk, workspace);
  ASSERT_EQ(encoded.flags, 0u);
  bytes back(chunk.size());
  EXPECT_EQ(ZSTD_decompress(back.data(), back.size(), encoded.stored.data(), encoded.stored.size()),
            chunk.size());
  EXPECT_EQ(back, chunk);
}

// Decodes an lz4 block as its public description says: sequences of literals and of copies.
bytes naive_lz4(const bytes& block) {
  bytes decoded;
  std::size_t at = 0;
  const auto next = [&] { return std::to_integer<std::size_t>(block.at(at++)); };
  const auto length = [&](std::size_t field) {
    std::size_t sum = field;
    if (field == 15)
      for (std::size_t more = 255; more == 255; sum += more) more = next();
    return sum;
  };
  while (at < block.size()) {
    const std::size_t token = next();
    for (std::size_t left = length(token >> 4); left > 0; --left) decoded.push_back(block.at(at++));
    if (at == block.size()) break;  // the last sequence has no copy
    const std::size_t low = next(), distance = low + 256 * next();
    for (std::size_t left = 4 + length(token & 15); left > 0; --left)
      decoded.push_back(decoded.at(decoded.size() - distance));
  }
  return decoded;
}

TEST(Codec, StoresOneLz4BlockWithoutAFrame) {
  codec_workspace workspace;
  for (const int level : {-100, -1, 0, 1, 2, 3, 9, 12}) {
    const codec coder({by_bytes, {stage_kind::lz4, level}}, dtype::int32);
    for (const bytes& chunk : {ramp(1000, 4, 1), ramp(70'000, 4, 2), bytes(100'000)}) {
      const encoded_chunk encoded = coder.encode(chunk, workspace);
      ASSERT_EQ(encoded.flags, 0u) << level;
      EXPECT_EQ(naive_lz4({encoded.stored.begin(), encoded.stored.end()}),
                naive_byte_shuffle(chunk, 4))
          << level;
    }
  }
}

TEST(Codec, HigherLevelsOfLz4PackMore) {
  const bytes chunk = ramp(1 << 16, 4, 1);
  codec_workspace workspace;
  const auto stored = [&](int level) {
    const codec coder({by_bytes, {stage_kind::lz4, level}}, dtype::int32);
    return coder.encode(chunk, workspace).stored.size();
  };
  EXPECT_LT(stored(1), stored(-100));
  EXPECT_LT(stored(12), stored(1));
}

TEST(Codec, NeverStoresLessThanTheFormatAllows) {
  // Equal bytes pack best. A stored chunk that claims more than these is refused as corrupt.
  codec_workspace workspace;
  for (const stage_facts& facts : all_stages) {
    if (!facts.compresses()) continue;
    for (const std::size_t size : {100u, 100'000u, 10'000'000u}) {
      const codec coder({{facts.kind, facts.parameter_max}}, dtype::int8);
      const encoded_chunk encoded = coder.encode(bytes(size), workspace);
      EXPECT_GE(encoded.stored.size() * facts.ratio_max, size) << facts.name;
    }
  }
}

TEST(Codec, DeltaIsTheDifferenceToTheElementBefore) {
  const std::int32_t values[] = {5, 7, 4, std::numeric_limits<std::int32_t>::min(), 1};
  bytes chunk(sizeof values);
  std::memcpy(chunk.data(), values, sizeof values);
  // The test decompresses the stored bytes itself, to see the result of the stages before.
  bytes long_chunk;
  for (int i = 0; i < 100; ++i) long_chunk.insert(long_chunk.end(), chunk.begin(), chunk.end());
  codec_workspace workspace;
  const encoded_chunk encoded = codec({delta, zstd1}, dtype::int32).encode(long_chunk, workspace);
  ASSERT_EQ(encoded.flags, 0u);
  std::vector<std::uint32_t> differences(long_chunk.size() / 4);
  ZSTD_decompress(differences.data(), long_chunk.size(), encoded.stored.data(),
                  encoded.stored.size());
  std::uint32_t before = 0;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    const auto value = static_cast<std::uint32_t>(values[i % 5]);
    EXPECT_EQ(differences[i], value - before);
    before = value;
  }
}

// ---- without memory ----------------------------------------------------------------------------

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need address space

// The stack cannot grow either once there is no address space.
[[gnu::noinline]] void reserve_stack() {
  volatile char pages[1 << 19];
  for (std::size_t i = 0; i < sizeof pages; i += 1024) pages[i] = 0;
}

void take_blocks() {
  for (std::size_t size = 1 << 20; size >= 2048; size /= 2) {
    for (int failures = 0; failures < 64;) {  // a failing call looks into some of the arenas only
      void* const volatile taken = std::malloc(size);
      if (taken == nullptr) ++failures;
    }
  }
}

// From now on no block of 2 KiB or more can be had, but the small ones that an error needs can.
void leave_little_memory() {
  reserve_stack();
  std::vector<void*> small;
  for (std::size_t size = 16; size <= 1024; size += 16)
    for (int i = 0; i < 4; ++i) small.push_back(std::malloc(size));
  rlimit space{};
  ::getrlimit(RLIMIT_AS, &space);
  space.rlim_cur = 1;
  ::setrlimit(RLIMIT_AS, &space);
  take_blocks();
  for (void* const block : small) std::free(block);
  take_blocks();  // small blocks that lay side by side have become larger ones
}

enum class ending : std::uint8_t { returns, lacks_memory, is_another_error };

// How a call ends in a forked child that has little memory left. Only an error of the compressor
// itself counts as missing memory: those of Shale's own buffers name no library.
ending without_memory(const std::string& library, const std::function<void()>& call) {
  const pid_t child = ::fork();
  if (child == 0) {
    leave_little_memory();
    ending seen = ending::returns;
    try {
      call();
    } catch (const error& failure) {
      const bool is_told = failure.code() == errc::out_of_memory &&
                           std::strstr(failure.what(), library.c_str()) != nullptr;
      seen = is_told ? ending::lacks_memory : ending::is_another_error;
    } catch (...) {
      seen = ending::is_another_error;
    }
    ::_exit(static_cast<int>(seen));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? static_cast<ending>(WEXITSTATUS(status)) : ending::is_another_error;
}

class CodecWithoutMemory : public testing::Test {
 protected:
  // The workspace already has the buffers that encoding needs, but no context of zstd and no large
  // one of lz4.
  CodecWithoutMemory() {
    lz4_fast.encode(chunk, workspace);
    codec({{stage_kind::lz4, 12}}, dtype::int32).encode(chunk, larger);
  }

  const bytes chunk = ramp(1 << 16, 4, 1);
  const codec lz4_fast{{lz4_1}, dtype::int32};
  codec_workspace workspace;
  codec_workspace larger;  // has the context of lz4 too
};

TEST_F(CodecWithoutMemory, ZstdSaysSoWhereItNeedsAContext) {
  const codec coder({zstd1}, dtype::int32);
  EXPECT_EQ(without_memory("zstd", [&] { coder.encode(chunk, workspace); }), ending::lacks_memory);
}

TEST_F(CodecWithoutMemory, ZstdSaysSoWhereItsContextHasToGrow) {
  codec({zstd1}, dtype::int32).encode(ramp(10, 4, 1), workspace);
  const codec coder({{stage_kind::zstd, 19}}, dtype::int32);
  EXPECT_EQ(without_memory("zstd", [&] { coder.encode(chunk, workspace); }), ending::lacks_memory);
}

TEST_F(CodecWithoutMemory, ZstdDecodesNothingAndBlamesNoByte) {
  const codec coder({zstd1}, dtype::int32);
  codec_workspace packing;
  const encoded_chunk encoded = coder.encode(chunk, packing);
  ASSERT_EQ(encoded.flags, 0u);
  bytes back(chunk.size());
  EXPECT_EQ(without_memory("zstd", [&] { coder.decode(encoded.stored, 0, back, workspace); }),
            ending::lacks_memory);

  // A frame of zstd 0.7 with one block of 8 bytes as they are. The library takes memory for such a
  // frame, if it reads it at all.
  const std::string text(
      "\x27\xb5\x2f\xfd\x20\x08\x40\x00\x08"
      "abcdefgh"
      "\xc0\x00\x00",
      20);
  const bytes_view frame = std::as_bytes(std::span(text));
  const std::span eight = std::span(back).first(8);
  if (ZSTD_isError(ZSTD_decompress(eight.data(), 8, frame.data(), frame.size()))) return;
  coder.decode(frame, 0, eight, workspace);
  EXPECT_EQ(std::memcmp(eight.data(), "abcdefgh", 8), 0);
  EXPECT_EQ(without_memory("zstd", [&] { coder.decode(frame, 0, eight, workspace); }),
            ending::lacks_memory);
}

TEST_F(CodecWithoutMemory, Lz4SaysSoWhereItNeedsAContext) {
  const codec coder({{stage_kind::lz4, 3}}, dtype::int32);
  EXPECT_EQ(without_memory("lz4", [&] { coder.encode(chunk, workspace); }), ending::lacks_memory);
}

TEST_F(CodecWithoutMemory, Lz4SaysSoWhereItTakesMemoryInEachCall) {
  const bytes rubbish = random_bytes(chunk.size(), 1);
  for (const int level : {10, 11, 12}) {
    const codec coder({{stage_kind::lz4, level}}, dtype::int32);
    for (const bytes& values : {chunk, rubbish})
      EXPECT_EQ(without_memory("lz4", [&] { coder.encode(values, larger); }), ending::lacks_memory)
          << level;
  }
}

// So what fails above fails for want of memory.
TEST_F(CodecWithoutMemory, EncodesWhereThereIsAContext) {
  const codec thorough({{stage_kind::lz4, 9}}, dtype::int32);
  EXPECT_EQ(without_memory("lz4", [&] { lz4_fast.encode(chunk, workspace); }), ending::returns);
  EXPECT_EQ(without_memory("lz4", [&] { thorough.encode(chunk, larger); }), ending::returns);
}

#endif

// ---- bitround ----------------------------------------------------------------------------------

// The nearest float with that many mantissa bits, by arithmetic on the value.
float rounded_by_arithmetic(float value, int keep) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent;
  const double fraction = std::frexp(static_cast<double>(value), &exponent);  // [0.5, 1)
  const double scale = std::ldexp(1.0, keep + 1);
  return static_cast<float>(std::ldexp(std::nearbyint(fraction * scale) / scale, exponent));
}

TEST(Codec, BitroundRoundsToTheNearestEven) {
  std::mt19937 random(3);
  std::vector<float> values{0.0f,
                            -0.0f,
                            1.0f,
                            1.5f,
                            3.14159f,
                            1e30f,
                            -1e-30f,
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()};
  for (int i = 0; i < 2000; ++i)
    values.push_back(std::ldexp(static_cast<float>(random() % 200'000) - 100'000.0f,
                                static_cast<int>(random() % 60) - 30));
  bytes chunk(values.size() * 4);
  std::memcpy(chunk.data(), values.data(), chunk.size());
  for (const int keep : {0, 1, 7, 12, 22, 23}) {
    const bytes back =
        round_trip(codec({{stage_kind::bitround, keep}, zstd1}, dtype::float32), chunk);
    for (std::size_t i = 0; i < values.size(); ++i) {
      float got;
      std::memcpy(&got, back.data() + 4 * i, 4);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(got),
                std::bit_cast<std::uint32_t>(rounded_by_arithmetic(values[i], keep)))
          << values[i] << " to " << keep << " bits";
    }
  }
}

TEST(Codec, BitroundKeepsNanPayloadsAndIsDoneOnce) {
  const std::uint64_t patterns[] = {0x7ff8000000000001, 0xfff0000000000001, 0x3ff0000000000001,
                                    0x7fefffffffffffff};
  bytes chunk(sizeof patterns);
  std::memcpy(chunk.data(), patterns, sizeof patterns);
  const codec coder({{stage_kind::bitround, 10}}, dtype::float64);
  const bytes once = round_trip(coder, chunk);
  EXPECT_EQ(round_trip(coder, once), once);  // codec.1
  std::uint64_t got[4];
  std::memcpy(got, once.data(), sizeof got);
  EXPECT_EQ(got[0], patterns[0]);
  EXPECT_EQ(got[1], patterns[1]);
  EXPECT_EQ(got[2], 0x3ff0000000000000u);
  EXPECT_EQ(got[3], 0x7ff0000000000000u);  // the largest finite number rounds to infinity
}

// Compares with all 16-bit numbers: no kept number is nearer, and of two equally near ones the even
// one is chosen.
TEST(Codec, BitroundOfShortFloatsIsTheNearestOfAll) {
  const auto check = [](dtype type, int mantissa, auto value_of) {
    bytes chunk(2 * 65536);
    for (unsigned i = 0; i < 65536; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      std::memcpy(chunk.data() + 2 * i, &bits, 2);
    }
    for (const int keep : {0, 3, mantissa - 1, mantissa}) {
      const bytes back = round_trip(codec({{stage_kind::bitround, keep}, zstd1}, type), chunk);
      const int drop = mantissa - keep;
      for (unsigned i = 0; i < 65536; ++i) {
        std::uint16_t got;
        std::memcpy(&got, back.data() + 2 * i, 2);
        const auto given = static_cast<std::uint16_t>(i);
        if (std::isnan(value_of(given))) {
          ASSERT_EQ(got, given);
          continue;
        }
        const unsigned below = i >> drop << drop, above = below + (1u << drop);
        const unsigned rest = i - below, half = (1u << drop) / 2;
        const bool up = rest > half || (drop > 0 && rest == half && (below >> drop) % 2 == 1);
        ASSERT_EQ(got, up ? above : below) << value_of(given) << " to " << keep << " bits";
        ASSERT_EQ(std::signbit(value_of(got)), std::signbit(value_of(given)));
      }
    }
  };
  check(dtype::float16, 10,
        [](std::uint16_t bits) { return static_cast<float>(float16::from_bits(bits)); });
  check(dtype::bfloat16, 7, [](std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  });
}

TEST(Codec, BitroundTakesBothPartsOfComplexNumbers) {
  const std::complex<float> value(1.0f + 0x1p-20f, 2.0f + 0x1p-20f);
  bytes chunk(8);
  std::memcpy(chunk.data(), &value, 8);
  const bytes back = round_trip(codec({{stage_kind::bitround, 4}}, dtype::complex64), chunk);
  std::complex<float> got;
  std::memcpy(&got, back.data(), 8);
  EXPECT_EQ(got, std::complex<float>(1.0f, 2.0f));
}

// ---- what is refused ---------------------------------------------------------------------------

TEST(Codec, RefusesPipelinesThatMeanNothing) {
  const auto refuses = [](std::vector<codec_stage> stages, dtype type) {
    try {
      const codec made(std::move(stages), type);
      return false;
    } catch (const error& failure) {
      return failure.code() == errc::invalid_argument;
    }
  };
  EXPECT_FALSE(refuses({}, dtype::int32));
  EXPECT_FALSE(refuses({delta, by_bits, zstd1}, dtype::int32));
  EXPECT_TRUE(refuses({zstd1, by_bytes}, dtype::int32));            // order
  EXPECT_TRUE(refuses({zstd1, zstd1}, dtype::int32));               // twice
  EXPECT_TRUE(refuses({by_bytes, by_bits}, dtype::int32));          // two shuffles
  EXPECT_TRUE(refuses({delta}, dtype::float32));                    // not an integer
  EXPECT_TRUE(refuses({{stage_kind::bitround, 4}}, dtype::int32));  // not a float
  EXPECT_TRUE(refuses({{stage_kind::bitround, 4}}, dtype::float8_e5m2));
  EXPECT_TRUE(refuses({{stage_kind::bitround, 24}}, dtype::float32));
  EXPECT_TRUE(refuses({{stage_kind::bitround, -1}}, dtype::float32));
  EXPECT_TRUE(refuses({{stage_kind::zstd, 23}}, dtype::int32));
  EXPECT_TRUE(refuses({{stage_kind::lz4, 13}}, dtype::int32));
  EXPECT_TRUE(refuses({{stage_kind::lz4, -101}}, dtype::int32));
  EXPECT_FALSE(refuses({by_bytes, lz4_1}, dtype::int32));
  EXPECT_TRUE(refuses({zstd1, lz4_1}, dtype::int32));  // two compressors
  EXPECT_TRUE(refuses({{stage_kind::byte_shuffle, 1}}, dtype::int32));
  EXPECT_TRUE(refuses({{static_cast<stage_kind>(9), 0}}, dtype::int32));
}

class StoredChunk : public testing::TestWithParam<stage_kind> {
 protected:
  errc decode(const bytes& stored, std::uint32_t flags) {
    bytes into(chunk.size() + 64, std::byte{0xab});
    errc code{};
    try {
      coder.decode(stored, flags, std::span(into).first(chunk.size()), workspace);
    } catch (const error& failure) {
      code = failure.code();
    }
    // codec.3: no byte beyond the chunk is written.
    EXPECT_TRUE(std::all_of(into.begin() + static_cast<std::ptrdiff_t>(chunk.size()), into.end(),
                            [](std::byte b) { return b == std::byte{0xab}; }));
    return code;
  }

  bytes encode(const bytes& content) {
    const encoded_chunk made = coder.encode(content, workspace);
    return {made.stored.begin(), made.stored.end()};
  }

  const bytes chunk = ramp(2000, 4, 5);
  const codec coder{{by_bytes, {GetParam(), 1}}, dtype::int32};
  codec_workspace workspace;
};

INSTANTIATE_TEST_SUITE_P(Codec, StoredChunk, testing::Values(stage_kind::zstd, stage_kind::lz4),
                         [](const auto& each) {
                           return std::string(find_stage(static_cast<int>(each.param))->name);
                         });

TEST_P(StoredChunk, DecodesWhenSound) { EXPECT_EQ(decode(encode(chunk), 0), errc{}); }

TEST_P(StoredChunk, OfAnotherSizeIsCorrupt) {  // compressors.1
  EXPECT_EQ(decode(encode(ramp(2001, 4, 5)), 0), errc::corrupt);
  EXPECT_EQ(decode(encode(ramp(1999, 4, 5)), 0), errc::corrupt);
  EXPECT_EQ(decode(encode(bytes(100'000'000)), 0), errc::corrupt);  // a small bomb
  EXPECT_EQ(decode(bytes(chunk.size() - 1), chunk_flag_raw), errc::corrupt);
  EXPECT_EQ(decode(bytes(chunk.size() + 1), chunk_flag_raw), errc::corrupt);
  EXPECT_EQ(decode({}, 0), errc::corrupt);
  EXPECT_EQ(decode({}, chunk_flag_raw), errc::corrupt);
}

TEST_P(StoredChunk, WithMoreThanOneFrameOrBlockIsCorrupt) {
  bytes two = encode(chunk);
  const bytes empty = encode(chunk);
  two.insert(two.end(), empty.begin(), empty.end());
  EXPECT_EQ(decode(two, 0), errc::corrupt);
}

TEST_P(StoredChunk, WithUnknownFlagsIsCorrupt) {
  EXPECT_EQ(decode(encode(chunk), 2), errc::corrupt);
}

TEST_P(StoredChunk, OfAPipelineThatDoesNotCompressIsRawOrCorrupt) {
  bytes into(chunk.size());
  const codec raw({by_bytes}, dtype::int32);
  EXPECT_EQ(raw.encode(chunk, workspace).flags, chunk_flag_raw);
  EXPECT_THROW(raw.decode(chunk, 0, into, workspace), error);
}

TEST_P(StoredChunk, DamagedAnywhereNeverHarms) {
  const bytes stored = encode(chunk);
  std::mt19937_64 random(4);
  for (int round = 0; round < 3000; ++round) {
    bytes damaged = stored;
    for (int hits = 0; hits < 3; ++hits)
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    damaged.resize(random() % (damaged.size() + 1));
    const errc code = decode(
        damaged, 0);  // wrong values are possible here; the checksum of the stored bytes finds them
    ASSERT_TRUE(code == errc{} || code == errc::corrupt);
  }
}

}  // namespace
}  // namespace shale::format
