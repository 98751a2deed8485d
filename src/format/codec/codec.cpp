#include "format/codec/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "format/codec/bitround.hpp"
#include "format/codec/compressors.hpp"
#include "format/codec/corrupt_chunk.hpp"
#include "format/codec/delta.hpp"
#include "format/codec/shuffle.hpp"
#include "shale/error.hpp"
#include "storage/system/thread_end.hpp"

namespace shale::format {
namespace {

// A buffer that grows and never shrinks, aligned for vector loads.
class buffer {
 public:
  bytes_span sized(std::size_t bytes) {
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

[[noreturn]] void refuse(const std::string& reason) {
  throw error(errc::invalid_argument, "not a codec pipeline", {reason});
}

void require_bitround(const codec_stage& stage, dtype type) {
  const int bits = mantissa_bits(type);
  if (bits == 0)
    refuse(fmt::format("bitround on {}: it needs a floating type of 16 bits or more",
                       shale::name(type)));
  if (stage.parameter < 0 || stage.parameter > bits)
    refuse(fmt::format("bitround keeps 0 to {} bits of {}, got {}", bits, shale::name(type),
                       stage.parameter));
}

}  // namespace

struct codec_workspace::state {
  buffer staging;
  buffer first;
  buffer second;
  buffer packed;
  compressors packers;
};

codec_workspace::codec_workspace() noexcept = default;
codec_workspace::~codec_workspace() = default;

namespace {

constinit thread_local codec_workspace* workspace_of_thread = nullptr;

struct owned_workspace final : shale::detail::thread_owned {
  ~owned_workspace() override { workspace_of_thread = nullptr; }

  codec_workspace workspace;
};

}  // namespace

codec_workspace& codec_workspace::of_this_thread() {
  if (workspace_of_thread == nullptr) {
    auto made = std::make_unique<owned_workspace>();
    made->leave_to_thread();  // if this fails, the workspace is never freed
    workspace_of_thread = &made.release()->workspace;
  }
  return *workspace_of_thread;
}

codec_workspace::state& codec_workspace::own() {
  if (!state_) state_ = std::make_unique<state>();
  return *state_;
}

bytes_span codec_workspace::staging(std::size_t bytes) { return own().staging.sized(bytes); }

codec::codec(std::vector<codec_stage> stages, shale::dtype type)
    : stages_(std::move(stages)), item_bytes_(shale::item_bytes(type)), type_(type) {
  const stage_facts* previous = nullptr;
  bool shuffles = false, compresses = false;
  for (const codec_stage& stage : stages_) {
    const int kind = static_cast<int>(stage.kind);
    const stage_facts* const facts = find_stage(kind);
    if (facts == nullptr) refuse(fmt::format("unknown stage {}", kind));
    if (previous != nullptr && facts->kind <= previous->kind)
      refuse(fmt::format("{} cannot come after {}", facts->name, previous->name));
    previous = facts;
    if (!facts->takes_parameter() && stage.parameter != 0)
      refuse(fmt::format("{} takes no parameter, got {}", facts->name, stage.parameter));
    if (facts->is_shuffle && std::exchange(shuffles, true)) refuse("more than one shuffle");
    if (facts->compresses()) {
      if (std::exchange(compresses, true)) refuse("more than one compressor");
      if (stage.parameter < facts->parameter_min || stage.parameter > facts->parameter_max)
        refuse(fmt::format("levels of {} are {} to {}, got {}", facts->name, facts->parameter_min,
                           facts->parameter_max, stage.parameter));
    }
    if (stage.kind == stage_kind::bitround) require_bitround(stage, type);
    if (stage.kind == stage_kind::delta && !is_integer(type))
      refuse(fmt::format("delta on {}: it needs an integer type", shale::name(type)));
  }
}

// Bitround is the first stage, if there is one.
bytes_view codec::rounded(bytes_view elements, codec_workspace& workspace) const {
  if (stages_.empty() || stages_[0].kind != stage_kind::bitround ||
      stages_[0].parameter == mantissa_bits(type_))
    return elements;
  const bytes_span to = workspace.own().first.sized(elements.size());
  round_mantissas(elements, to, type_, stages_[0].parameter);
  return to;
}

encoded_chunk codec::encode(bytes_view chunk, codec_workspace& workspace) const {
  codec_workspace::state& buffers = workspace.own();
  bytes_view elements = chunk;  // the bytes to store if the chunk stays raw
  bytes_view packed = chunk;    // the output of the stages so far
  for (const codec_stage& stage : stages_) {
    switch (stage.kind) {
      case stage_kind::bitround:
        elements = packed = rounded(chunk, workspace);
        break;
      case stage_kind::delta: {
        const bytes_span to = buffers.first.sized(chunk.size());
        take_differences(packed, item_bytes_, to);
        packed = to;
        break;
      }
      case stage_kind::byte_shuffle: {
        const bytes_span to = buffers.second.sized(chunk.size());
        shuffle_bytes(packed, item_bytes_, to);
        packed = to;
        break;
      }
      case stage_kind::bit_shuffle: {
        const bytes_span to = buffers.second.sized(chunk.size());
        shuffle_bits(packed, item_bytes_, buffers.packed.sized(chunk.size()), to);
        packed = to;
        break;
      }
      case stage_kind::zstd:
      case stage_kind::lz4: {
        // A chunk that does not become shorter is stored raw (codec.2).
        if (chunk.empty()) break;
        const bytes_span to = buffers.packed.sized(compressors::room(stage, chunk.size()));
        const std::size_t written = buffers.packers.pack(stage, packed, to);
        if (written != 0) return {to.first(written), 0};
        break;
      }
    }
  }
  return {elements, chunk_flag_raw};
}

void codec::require_form(std::size_t stored_bytes, std::uint32_t flags,
                         std::size_t chunk_bytes) const {
  if ((flags & ~chunk_flag_raw) != 0)
    throw_corrupt_chunk(
        fmt::format("its flags are {:#x}, this build knows only {:#x}", flags, chunk_flag_raw));
  if ((flags & chunk_flag_raw) != 0) {
    if (stored_bytes != chunk_bytes)
      throw_corrupt_chunk(
          fmt::format("stored raw: wanted {} bytes, got {}", chunk_bytes, stored_bytes));
  } else if (stages_.empty() || !find_stage(static_cast<int>(stages_.back().kind))->compresses()) {
    throw_corrupt_chunk("not raw, but the pipeline has no compressing stage");
  }
}

void codec::decode(bytes_view stored, std::uint32_t flags, bytes_span chunk,
                   codec_workspace& workspace) const {
  require_form(stored.size(), flags, chunk.size());
  if ((flags & chunk_flag_raw) != 0) {
    if (!chunk.empty()) std::memcpy(chunk.data(), stored.data(), chunk.size());
    return;
  }

  codec_workspace::state& buffers = workspace.own();
  const auto stage_is = [this](stage_kind kind) {
    for (const codec_stage& stage : stages_)
      if (stage.kind == kind) return true;
    return false;
  };
  const bool by_bytes = stage_is(stage_kind::byte_shuffle) && item_bytes_ > 1;
  const bool by_bits = stage_is(stage_kind::bit_shuffle);
  const bytes_span unpacked = by_bytes || by_bits ? buffers.first.sized(chunk.size()) : chunk;
  buffers.packers.unpack(stages_.back().kind, stored, unpacked);
  if (by_bytes) unshuffle_bytes(unpacked, item_bytes_, chunk);
  if (by_bits) unshuffle_bits(unpacked, item_bytes_, buffers.second.sized(chunk.size()), chunk);
  if (stage_is(stage_kind::delta)) sum_differences(chunk, item_bytes_);
}

}  // namespace shale::format
