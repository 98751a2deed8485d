// Lets one instruction of a tape store its output past the cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/kernels/strided/run_strided.hpp"
#include "ops/passes/block_prefetch.hpp"
#include "ops/passes/tape.hpp"
#include "parallel/blocks/nontemporal_copy.hpp"

namespace shale::ops {

/// Runs a kernel with contiguous output rows piece by piece. Each piece first goes to `buffer`,
/// which stays in the L1 cache, and from there past the cache to its place. Meanwhile the inputs of
/// the next piece are prefetched.
class nontemporal_run {
 public:
  /// Shorter rows have too few whole cache lines.
  static constexpr index_t row_bytes_min = 2048;

  /// If `next` is not null, all leaves of the next block are prefetched instead of the next piece.
  nontemporal_run(const instruction& step, std::byte* const* data, const index_t* strides,
                  std::byte* buffer, const block_prefetch* next)
      : step_(step), count_(step.inputs + 1), buffer_(buffer), next_(next) {
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
        const index_t room = static_cast<index_t>(parallel::nontemporal_buffer_bytes) - before;
        const index_t piece = std::min({most_, std::max<index_t>(1, room / item), inner - done});
        run_piece(to, row, done, piece);
        done += piece;
      }
    }
  }

 private:
  static constexpr index_t line_bytes = 64;

  static std::size_t at(int k) { return static_cast<std::size_t>(k); }

  // Replaces an input that is a single element by many copies of it. Otherwise kernels would repeat
  // it for every piece.
  void repeat_constant(std::size_t k) {
    if (strides_[k] != 0 || strides_[at(count_) + k] != 0) return;
    const auto item = static_cast<index_t>(step_.in[k - 1].item_bytes);
    const index_t elements = static_cast<index_t>(parallel::nontemporal_buffer_bytes) / item;
    most_ = std::min(most_, elements);
    std::byte* const repeated = repeated_[k - 1].data();
    kernels::pack(repeated, data_[k], item, 0, 0, elements, 1);
    data_[k] = repeated;
    strides_[k] = item;
    is_repeated_[k - 1] = true;
  }

  void run_piece(std::byte* to, index_t row, index_t done, index_t count) {
    std::array<std::byte*, 4> pointers{buffer_};
    std::array<parallel::needed_soon, block_prefetch::leaves_max> needed{};
    std::size_t inputs = next_ ? next_->describe(needed, done, strides_[0]) : 0;
    for (std::size_t k = 1; k < at(count_); ++k) {
      if (is_repeated_[k - 1]) {
        pointers[k] = data_[k];
        continue;
      }
      pointers[k] = data_[k] + row * strides_[at(count_) + k] + done * strides_[k];
      if (!next_ && step_.in[k - 1].place == reg::location::operand && strides_[k] > 0)
        needed[inputs++] = {pointers[k] + count * strides_[k],
                            std::min(line_bytes * strides_[k] / strides_[0], 4 * line_bytes)};
    }
    step_.run(pointers.data(), strides_.data(), count, 1);
    parallel::copy_nontemporally(to, buffer_, static_cast<std::size_t>(count * strides_[0]),
                                 {needed.data(), inputs});
  }

  const instruction& step_;
  const int count_;  // of the inputs and the output
  std::byte* const buffer_;
  const block_prefetch* const next_;
  std::array<std::byte*, 4> data_{};
  std::array<index_t, 8> strides_{};
  std::array<bool, 3> is_repeated_{};
  index_t most_ = index_t{1} << 62;  // limit for the elements of a piece
  alignas(64) std::array<std::array<std::byte, parallel::nontemporal_buffer_bytes>, 3> repeated_;
};

}  // namespace shale::ops
