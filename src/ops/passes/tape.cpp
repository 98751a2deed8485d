#include "ops/passes/tape.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "ops/kernels/strided.hpp"
#include "parallel/stores/stream_bytes.hpp"

namespace shale::ops {

namespace {

constexpr std::size_t scratch_bytes_max = std::size_t{2} << 20;
constexpr index_t block_elements_usual = 2048;  // 16 KiB of doubles: a few registers fit in L1

// Without intermediate results the plan chooses the size of blocks.
index_t block_elements_of(const tape_parts& parts) {
  if (parts.slots == 0) return index_t{1} << 62;
  const auto element_bytes = static_cast<std::size_t>(parts.slots) * parts.slot_item_bytes;
  return std::clamp<index_t>(static_cast<index_t>(scratch_bytes_max / element_bytes), 1,
                             block_elements_usual);
}

// Shorter rows have too few whole cache lines.
constexpr index_t streamed_row_bytes_min = 2048;

constexpr index_t line_bytes = 64;

// Runs a kernel with contiguous output rows piece by piece: each piece goes to `buffer`, which
// stays in the L1 cache, and from there past the cache to its place. Meanwhile the inputs of the
// next piece are prefetched.
class streaming_run {
 public:
  streaming_run(const instruction& step, std::byte* const* data, const index_t* strides,
                std::byte* buffer)
      : step_(step), count_(step.inputs + 1), buffer_(buffer) {
    std::copy_n(data, count_, data_.begin());
    std::copy_n(strides, 2 * count_, strides_.begin());
    for (int k = 1; k < count_; ++k) repeat_constant(at(k));
  }

  void run(index_t inner, index_t outer) {
    const index_t item = strides_[0];
    for (index_t row = 0; row < outer; ++row) {
      for (index_t done = 0; done < inner;) {
        std::byte* const to = data_[0] + row * strides_[at(count_)] + done * item;
        // Pieces end where a cache line ends, so that no line is stored in two parts.
        const auto before = static_cast<index_t>(reinterpret_cast<std::uintptr_t>(to) % line_bytes);
        const index_t room = static_cast<index_t>(parallel::stream_buffer_bytes) - before;
        const index_t piece = std::min({most_, std::max<index_t>(1, room / item), inner - done});
        run_piece(to, row, done, piece);
        done += piece;
      }
    }
  }

 private:
  static std::size_t at(int k) { return static_cast<std::size_t>(k); }

  // Repeats an input that is one element, so that kernels need not do it for every piece.
  void repeat_constant(std::size_t k) {
    if (strides_[k] != 0 || strides_[at(count_) + k] != 0) return;
    const auto item = static_cast<index_t>(step_.in[k - 1].item_bytes);
    const index_t elements = static_cast<index_t>(parallel::stream_buffer_bytes) / item;
    most_ = std::min(most_, elements);
    std::byte* const repeated = repeated_[k - 1].data();
    kernels::pack(repeated, data_[k], item, 0, 0, elements, 1);
    data_[k] = repeated;
    strides_[k] = item;
    is_repeated_[k - 1] = true;
  }

  void run_piece(std::byte* to, index_t row, index_t done, index_t count) {
    std::array<std::byte*, 4> pointers{buffer_};
    std::array<parallel::needed_soon, 3> needed{};
    std::size_t inputs = 0;
    for (std::size_t k = 1; k < at(count_); ++k) {
      if (is_repeated_[k - 1]) {
        pointers[k] = data_[k];
        continue;
      }
      pointers[k] = data_[k] + row * strides_[at(count_) + k] + done * strides_[k];
      if (step_.in[k - 1].place == reg::location::operand && strides_[k] > 0)
        needed[inputs++] = {pointers[k] + count * strides_[k],
                            std::min(line_bytes * strides_[k] / strides_[0], 4 * line_bytes)};
    }
    step_.run(pointers.data(), strides_.data(), count, 1);
    parallel::stream_bytes(to, buffer_, static_cast<std::size_t>(count * strides_[0]),
                           {needed.data(), inputs});
  }

  const instruction& step_;
  const int count_;  // operands with the output
  std::byte* const buffer_;
  std::array<std::byte*, 4> data_{};
  std::array<index_t, 8> strides_{};
  std::array<bool, 3> is_repeated_{};
  index_t most_ = index_t{1} << 62;  // elements of a piece
  alignas(64) std::array<std::array<std::byte, parallel::stream_buffer_bytes>, 3> repeated_;
};

// Prefetches the elements of the next block, a part with each instruction. Between the instructions
// that read the block's leaves, a tape works in the cache and the memory would be idle.
class block_prefetch {
 public:
  block_prefetch(const std::vector<int>& leaves, std::byte* const* data, const index_t* strides,
                 index_t inner, std::size_t parts)
      : parts_(static_cast<index_t>(parts)) {
    for (const int leaf : leaves) {
      const index_t stride = strides[leaf];
      if (count_ == next_.size() || stride <= 0 || stride > line_bytes) continue;
      next_[count_++] = {data[leaf] + inner * stride, inner * stride};
    }
  }

  void part(index_t number) const {
    for (std::size_t k = 0; k < count_; ++k) {
      const index_t end = next_[k].bytes * (number + 1) / parts_;
      for (index_t at = next_[k].bytes * number / parts_; at < end; at += line_bytes)
        __builtin_prefetch(next_[k].address + at, 0, 2);
    }
  }

 private:
  struct range {
    const std::byte* address;
    index_t bytes;
  };
  std::array<range, 8> next_{};
  std::size_t count_ = 0;
  const index_t parts_;
};

// The operands that instructions read, each once.
std::vector<int> leaves_of(const tape_parts& parts) {
  std::vector<int> leaves;
  for (const instruction& step : parts.instructions)
    for (int k = 0; k < step.inputs; ++k) {
      const reg& in = step.in[static_cast<std::size_t>(k)];
      if (in.place == reg::location::operand &&
          std::find(leaves.begin(), leaves.end(), in.index) == leaves.end())
        leaves.push_back(in.index);
    }
  return leaves;
}

}  // namespace

tape::tape(tape_parts parts)
    : parts_(std::move(parts)),
      block_elements_(block_elements_of(parts_)),
      leaves_(leaves_of(parts_)) {}

std::size_t tape::scratch_bytes() const noexcept {
  return parts_.slots == 0 ? 0
                           : static_cast<std::size_t>(parts_.slots) * parts_.slot_item_bytes *
                                 static_cast<std::size_t>(block_elements_);
}

tape::block tape::locate(const reg& source, std::byte* const* data, const index_t* strides_bytes,
                         int operands, index_t inner, std::byte* scratch) const {
  switch (source.place) {
    case reg::location::operand:
      return {data[source.index], strides_bytes[source.index],
              strides_bytes[operands + source.index]};
    case reg::location::constant:
      return {
          const_cast<std::byte*>(parts_.constants[static_cast<std::size_t>(source.index)].data()),
          0, 0};
    case reg::location::scratch:
      break;
  }
  const auto item = static_cast<index_t>(source.item_bytes);
  const auto slot_bytes = static_cast<index_t>(parts_.slot_item_bytes) * block_elements_;
  return {scratch + source.index * slot_bytes, item, item * inner};
}

tape::block tape::value(std::size_t number, std::byte* const* data, const index_t* strides_bytes,
                        int operands, index_t inner, std::byte* scratch) const {
  return locate(parts_.values[number], data, strides_bytes, operands, inner, scratch);
}

void tape::run(std::byte* const* data, const index_t* strides_bytes, int operands, index_t inner,
               index_t outer, const index_t* start, std::byte* scratch,
               const tape_hints& hints) const {
  std::optional<block_prefetch> next;
  if (hints.prefetch && parts_.slots > 0 && outer == 1)
    next.emplace(leaves_, data, strides_bytes, inner, parts_.instructions.size());
  index_t number = 0;
  for (const auto& step : parts_.instructions) {
    if (next) next->part(number++);
    const block out = locate(step.out, data, strides_bytes, operands, inner, scratch);
    if (!step.run) {
      step.fill->fill(start, out.data, inner, outer);
      continue;
    }
    const int operand_count = step.inputs + 1;
    std::array<std::byte*, 4> pointers{out.data};
    std::array<index_t, 8> strides{};
    strides[0] = out.inner_stride;
    strides[static_cast<std::size_t>(operand_count)] = out.outer_stride;
    for (int k = 0; k < step.inputs; ++k) {
      const block in = locate(step.in[static_cast<std::size_t>(k)], data, strides_bytes, operands,
                              inner, scratch);
      pointers[static_cast<std::size_t>(k) + 1] = in.data;
      strides[static_cast<std::size_t>(k) + 1] = in.inner_stride;
      strides[static_cast<std::size_t>(operand_count + k) + 1] = in.outer_stride;
    }
    const auto item = static_cast<index_t>(step.out.item_bytes);
    if (hints.stream_buffer != nullptr && step.out.place == reg::location::operand &&
        out.inner_stride == item && inner * item >= streamed_row_bytes_min)
      streaming_run(step, pointers.data(), strides.data(), hints.stream_buffer).run(inner, outer);
    else step.run(pointers.data(), strides.data(), inner, outer);
  }
}

}  // namespace shale::ops
