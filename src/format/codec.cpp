#include "format/codec.hpp"

#include <fmt/format.h>
#include <zstd.h>

#include <cstring>
#include <new>

#include "format/bytes.hpp"
#include "format/shuffle.hpp"
#include "shale/error.hpp"

namespace shale::format {
namespace {

constexpr std::int32_t zstd_level_min = -100;
constexpr std::int32_t zstd_level_max = 22;

// Bytes that only grow, aligned for vector loads.
class buffer {
 public:
  bytes_span of(std::size_t bytes) {
    if (bytes > capacity_) {
      release();
      data_ = static_cast<std::byte*>(::operator new(bytes, alignment, std::nothrow));
      if (data_ == nullptr)
        throw error(errc::out_of_memory, "no memory for coding a chunk",
                    {fmt::format("wanted {} bytes", bytes)});
      capacity_ = bytes;
    }
    return {data_, bytes};
  }

  void release() noexcept {
    ::operator delete(data_, alignment);
    data_ = nullptr;
    capacity_ = 0;
  }

  buffer() = default;
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;
  ~buffer() { release(); }

 private:
  static constexpr std::align_val_t alignment{64};
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

struct free_compressor {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};
struct free_decompressor {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

template <class Context>
Context* require(Context* context) {
  if (context == nullptr) throw error(errc::out_of_memory, "no memory for a zstd context");
  return context;
}

// The mantissa bits of a real number of the type, and its exponent's; 0 where bitround is
// undefined.
struct float_bits {
  int mantissa = 0;
  int exponent = 0;
};

float_bits bits_of(dtype type) noexcept {
  switch (type) {
    case dtype::float16:
      return {10, 5};
    case dtype::bfloat16:
      return {7, 8};
    case dtype::float32:
    case dtype::complex64:
      return {23, 8};
    case dtype::float64:
    case dtype::complex128:
      return {52, 11};
    default:
      return {};
  }
}

// Rounds to nearest, ties to even, on the bit pattern: a carry out of the mantissa raises the
// exponent, which is right, up to infinity. NaNs keep their payload.
template <class Word>
void round_bits(bytes_view from, bytes_span to, const float_bits& bits, int keep) noexcept {
  const int drop = bits.mantissa - keep;
  const Word low = static_cast<Word>((Word{1} << drop) - 1);
  const Word half = static_cast<Word>(Word{1} << (drop - 1));
  const Word mantissa = static_cast<Word>((Word{1} << bits.mantissa) - 1);
  const Word exponent = static_cast<Word>(((Word{1} << bits.exponent) - 1) << bits.mantissa);
  for (std::size_t i = 0; i < from.size(); i += sizeof(Word)) {
    const Word value = load<Word>(from.data() + i);
    const bool is_nan = (value & exponent) == exponent && (value & mantissa) != 0;
    const Word odd = static_cast<Word>((value >> drop) & 1);
    const Word rounded =
        static_cast<Word>(static_cast<Word>(value + odd + half - 1) & static_cast<Word>(~low));
    store(to.data() + i, is_nan ? value : rounded);
  }
}

// From the end to the front, so that `from` may be `to`.
template <class Word>
void differences(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  if (count == 0) return;
  for (std::size_t i = count - 1; i > 0; --i)
    store(to + i * sizeof(Word), static_cast<Word>(load<Word>(from + i * sizeof(Word)) -
                                                   load<Word>(from + (i - 1) * sizeof(Word))));
  store(to, load<Word>(from));
}

template <class Word>
void sums(std::byte* at, std::size_t count) noexcept {
  Word sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum = static_cast<Word>(sum + load<Word>(at + i * sizeof(Word)));
    store(at + i * sizeof(Word), sum);
  }
}

// Calls `function` with a zero of the unsigned type that is that wide.
template <class Function>
void with_word(std::size_t bytes, Function&& function) {
  switch (bytes) {
    case 1:
      return function(std::uint8_t{0});
    case 2:
      return function(std::uint16_t{0});
    case 4:
      return function(std::uint32_t{0});
    default:
      return function(std::uint64_t{0});
  }
}

bool is_integer(dtype type) noexcept {
  return kind(type) == dtype_kind::signed_integer || kind(type) == dtype_kind::unsigned_integer;
}

[[noreturn]] void refuse(const std::string& why) {
  throw error(errc::invalid_argument, "not a codec pipeline", {why});
}

[[noreturn]] void throw_corrupt_chunk(const std::string& why) {
  throw error(errc::corrupt, "a chunk does not decode", {why});
}

}  // namespace

struct codec_workspace::state {
  buffer staging;
  buffer first;
  buffer second;
  buffer packed;
  std::unique_ptr<ZSTD_CCtx, free_compressor> compressor;
  std::unique_ptr<ZSTD_DCtx, free_decompressor> decompressor;
};

codec_workspace::codec_workspace() noexcept = default;
codec_workspace::~codec_workspace() = default;

codec_workspace& codec_workspace::of_this_thread() {
  thread_local codec_workspace workspace;
  return workspace;
}

codec_workspace::state& codec_workspace::own() {
  if (!state_) state_ = std::make_unique<state>();
  return *state_;
}

bytes_span codec_workspace::staging(std::size_t bytes) { return own().staging.of(bytes); }

codec::codec(std::vector<codec_stage> stages, shale::dtype type)
    : stages_(std::move(stages)), item_bytes_(shale::item_bytes(type)), type_(type) {
  int previous = 0;
  bool shuffles = false;
  for (const codec_stage& stage : stages_) {
    const int kind = static_cast<int>(stage.kind);
    if (kind <= previous) refuse(fmt::format("stage {} after stage {}", kind, previous));
    previous = kind;
    const bool takes_parameter =
        stage.kind == stage_kind::bitround || stage.kind == stage_kind::zstd;
    if (!takes_parameter && stage.parameter != 0)
      refuse(fmt::format("stage {} takes no parameter, got {}", kind, stage.parameter));
    switch (stage.kind) {
      case stage_kind::bitround:
        if (bits_of(type).mantissa == 0)
          refuse(fmt::format("bitround on {}: it needs a floating type of 16 bits or more",
                             shale::name(type)));
        if (stage.parameter < 0 || stage.parameter > bits_of(type).mantissa)
          refuse(fmt::format("bitround keeps 0 to {} bits of {}, got {}", bits_of(type).mantissa,
                             shale::name(type), stage.parameter));
        break;
      case stage_kind::delta:
        if (!is_integer(type))
          refuse(fmt::format("delta on {}: it needs an integer type", shale::name(type)));
        break;
      case stage_kind::byte_shuffle:
      case stage_kind::bit_shuffle:
        if (shuffles) refuse("more than one shuffle");
        shuffles = true;
        break;
      case stage_kind::zstd:
        if (stage.parameter < zstd_level_min || stage.parameter > zstd_level_max)
          refuse(fmt::format("zstd levels are {} to {}, got {}", zstd_level_min, zstd_level_max,
                             stage.parameter));
        break;
      default:
        refuse(fmt::format("unknown stage {}", kind));
    }
  }
}

encoded_chunk codec::encode(bytes_view chunk, codec_workspace& workspace) const {
  codec_workspace::state& buffers = workspace.own();
  bytes_view elements = chunk;  // what a raw chunk holds
  bytes_view packed = chunk;    // what the stages so far have made of it
  for (const codec_stage& stage : stages_) {
    switch (stage.kind) {
      case stage_kind::bitround: {
        const float_bits bits = bits_of(type_);
        if (stage.parameter == bits.mantissa) break;
        const bytes_span to = buffers.first.of(chunk.size());
        const std::size_t part = static_cast<std::size_t>(1 + bits.exponent + bits.mantissa) / 8;
        with_word(part, [&](auto zero) {
          if constexpr (sizeof zero > 1)
            round_bits<decltype(zero)>(packed, to, bits, stage.parameter);
        });
        elements = packed = to;
        break;
      }
      case stage_kind::delta: {
        const bytes_span to = buffers.first.of(chunk.size());
        with_word(item_bytes_, [&](auto zero) {
          differences<decltype(zero)>(packed.data(), to.data(), packed.size() / item_bytes_);
        });
        packed = to;
        break;
      }
      case stage_kind::byte_shuffle: {
        const bytes_span to = buffers.second.of(chunk.size());
        shuffle_bytes(packed, item_bytes_, to);
        packed = to;
        break;
      }
      case stage_kind::bit_shuffle: {
        const bytes_span to = buffers.second.of(chunk.size());
        shuffle_bits(packed, item_bytes_, buffers.packed.of(chunk.size()), to);
        packed = to;
        break;
      }
      case stage_kind::zstd: {
        if (!buffers.compressor) buffers.compressor.reset(require(ZSTD_createCCtx()));
        // One byte less than the chunk: what does not fit is better stored raw (codec.2).
        const bytes_span to = buffers.packed.of(chunk.size());
        const std::size_t written =
            chunk.empty() ? 1
                          : ZSTD_compressCCtx(buffers.compressor.get(), to.data(), to.size() - 1,
                                              packed.data(), packed.size(), stage.parameter);
        if (ZSTD_isError(written) || written >= chunk.size()) break;
        return {to.first(written), 0};
      }
    }
  }
  return {elements, chunk_flag_raw};
}

void codec::decode(bytes_view stored, std::uint32_t flags, bytes_span chunk,
                   codec_workspace& workspace) const {
  if ((flags & ~chunk_flag_raw) != 0)
    throw_corrupt_chunk(
        fmt::format("its flags are {:#x}, of which this build knows {:#x}", flags, chunk_flag_raw));
  if ((flags & chunk_flag_raw) != 0) {
    if (stored.size() != chunk.size())
      throw_corrupt_chunk(
          fmt::format("stored raw: wanted {} bytes, got {}", chunk.size(), stored.size()));
    if (!chunk.empty()) std::memcpy(chunk.data(), stored.data(), chunk.size());
    return;
  }
  if (stages_.empty() || stages_.back().kind != stage_kind::zstd)
    throw_corrupt_chunk("not raw, but the pipeline has no compressing stage");

  codec_workspace::state& buffers = workspace.own();
  const auto stage_is = [this](stage_kind kind) {
    for (const codec_stage& stage : stages_)
      if (stage.kind == kind) return true;
    return false;
  };
  const bool by_bytes = stage_is(stage_kind::byte_shuffle) && item_bytes_ > 1;
  const bool by_bits = stage_is(stage_kind::bit_shuffle);
  if (!buffers.decompressor) buffers.decompressor.reset(require(ZSTD_createDCtx()));
  const bytes_span unpacked = by_bytes || by_bits ? buffers.first.of(chunk.size()) : chunk;
  const std::size_t frame = ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  if (ZSTD_isError(frame) || frame != stored.size())
    throw_corrupt_chunk("its stored bytes are not one zstd frame");
  const std::size_t got = ZSTD_decompressDCtx(buffers.decompressor.get(), unpacked.data(),
                                              unpacked.size(), stored.data(), stored.size());
  if (ZSTD_isError(got)) throw_corrupt_chunk(fmt::format("zstd: {}", ZSTD_getErrorName(got)));
  if (got != chunk.size())
    throw_corrupt_chunk(fmt::format("wanted {} bytes, its frame holds {}", chunk.size(), got));
  if (by_bytes) unshuffle_bytes(unpacked, item_bytes_, chunk);
  if (by_bits) unshuffle_bits(unpacked, item_bytes_, buffers.second.of(chunk.size()), chunk);
  if (stage_is(stage_kind::delta))
    with_word(item_bytes_,
              [&](auto zero) { sums<decltype(zero)>(chunk.data(), chunk.size() / item_bytes_); });
}

}  // namespace shale::format
