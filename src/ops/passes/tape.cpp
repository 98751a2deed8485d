#include "ops/passes/tape.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "ops/passes/block_prefetch.hpp"
#include "ops/passes/nontemporal_run.hpp"
#include "parallel/blocks/block_copy.hpp"

namespace shale::ops {

namespace {

constexpr index_t line_bytes = 64;
constexpr std::size_t scratch_bytes_max = std::size_t{2} << 20;
constexpr index_t block_elements_usual = 2048;  // 16 KiB of doubles: a few registers fit in L1

// Whether the tape copies what one generator makes, and that generator may have rows in memory.
bool may_copy_rows(const tape_parts& parts) {
  if (parts.instructions.size() != 2 || !parts.values.empty()) return false;
  const instruction& made = parts.instructions[0];
  const instruction& copied = parts.instructions[1];
  return made.fill != nullptr && made.fill->may_have_rows() &&
         copied.run == parallel::copy_kernel(copied.out.item_bytes) &&
         copied.in[0].place == reg::location::scratch;
}

// If there are no intermediate results, the plan chooses the size of blocks. Blocks that are copied
// row by row have several rows, so that the next row can be prefetched.
index_t block_elements_of(const tape_parts& parts) {
  if (parts.slots == 0) return index_t{1} << 62;
  if (may_copy_rows(parts)) return 8 * block_elements_usual;
  const auto element_bytes = static_cast<std::size_t>(parts.slots) * parts.slot_item_bytes;
  return std::clamp<index_t>(static_cast<index_t>(scratch_bytes_max / element_bytes), 1,
                             block_elements_usual);
}

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

// Copies contiguous rows past the cache, and prefetches a little ahead if `prefetch` is set. Rows
// in scratch memory need no prefetching, because they are in the cache.
void copy_past_the_cache(std::byte* const* data, const index_t* strides, index_t row_bytes,
                         index_t rows, bool prefetch) {
  constexpr index_t ahead = static_cast<index_t>(parallel::nontemporal_buffer_bytes);
  for (index_t row = 0; row < rows; ++row) {
    const std::byte* const from = data[1] + row * strides[3];
    const std::array next{parallel::needed_soon{from + ahead, line_bytes}};
    parallel::copy_nontemporally(data[0] + row * strides[2], from,
                                 static_cast<std::size_t>(row_bytes),
                                 {next.data(), prefetch ? 1U : 0U});
  }
}

}  // namespace

bool tape::has_usual_blocks(std::size_t steps, std::size_t item_bytes) noexcept {
  return steps * item_bytes * static_cast<std::size_t>(block_elements_usual) <= scratch_bytes_max;
}

tape::tape(tape_parts parts)
    : parts_(std::move(parts)),
      block_elements_(block_elements_of(parts_)),
      leaves_(leaves_of(parts_)),
      may_copy_rows_(may_copy_rows(parts_)) {}

std::size_t tape::scratch_bytes() const noexcept {
  return parts_.slots == 0 ? 0
                           : static_cast<std::size_t>(parts_.slots) * parts_.slot_item_bytes *
                                 static_cast<std::size_t>(block_elements_);
}

bool tape::is_copy() const noexcept {
  if (parts_.instructions.size() != 1) return false;
  const instruction& only = parts_.instructions[0];
  return only.run != nullptr && only.run == parallel::copy_kernel(only.out.item_bytes) &&
         only.out.place == reg::location::operand && only.in[0].place == reg::location::operand;
}

tape::block_values tape::locate(const reg& source, const tape_block& in) const {
  switch (source.place) {
    case reg::location::operand:
      return {in.data[source.index], in.strides_bytes[source.index],
              in.strides_bytes[in.operands + source.index]};
    case reg::location::constant:
      return {
          const_cast<std::byte*>(parts_.constants[static_cast<std::size_t>(source.index)].data()),
          0, 0};
    case reg::location::scratch:
      break;
  }
  const auto item = static_cast<index_t>(source.item_bytes);
  const auto slot_bytes = static_cast<index_t>(parts_.slot_item_bytes) * block_elements_;
  return {in.scratch + source.index * slot_bytes, item, item * in.inner};
}

tape::block_values tape::value(std::size_t number, const tape_block& block) const {
  return locate(parts_.values[number], block);
}

// Copies the rows of a generator directly from their places to the output, if they are long. Then
// nothing goes through scratch memory, and while a row is stored past the cache, the next one is
// prefetched. Returns whether it has copied them.
bool tape::copy_rows(const tape_block& on, const tape_hints& hints) const {
  const block_values out = locate(parts_.instructions[1].out, on);
  const auto item = static_cast<index_t>(parts_.instructions[1].out.item_bytes);
  std::array<const std::byte*, 128> rows;
  if (out.inner_stride != item || on.inner * item < nontemporal_run::row_bytes_min ||
      on.outer > static_cast<index_t>(rows.size()) ||
      !parts_.instructions[0].fill->find_rows(on.start, rows.data(), on.outer))
    return false;
  const auto bytes = static_cast<std::size_t>(on.inner * item);
  for (index_t row = 0; row < on.outer; ++row) {
    std::byte* const to = out.data + row * out.outer_stride;
    const std::byte* const from = rows[static_cast<std::size_t>(row)];
    if (!hints.nontemporal_buffer) {
      std::memcpy(to, from, bytes);
      continue;
    }
    std::array<parallel::needed_soon, 1> next{};
    const bool has_next = row + 1 < on.outer;
    if (has_next) next[0] = {rows[static_cast<std::size_t>(row) + 1], line_bytes};
    parallel::copy_nontemporally(to, from, bytes, {next.data(), has_next ? 1U : 0U});
  }
  return true;
}

// Whether the instruction computes an output that goes through a nontemporal_run.
bool tape::stores_past_the_cache(const instruction& step, const tape_block& on,
                                 const tape_hints& hints) const {
  const auto item = static_cast<index_t>(step.out.item_bytes);
  return hints.nontemporal_buffer != nullptr && step.run != nullptr &&
         step.out.place == reg::location::operand && locate(step.out, on).inner_stride == item &&
         on.inner * item >= nontemporal_run::row_bytes_min &&
         step.run != parallel::copy_kernel(step.out.item_bytes);
}

void tape::run(const tape_block& on, const tape_hints& hints) const {
  const index_t inner = on.inner, outer = on.outer;
  if (may_copy_rows_ && copy_rows(on, hints)) return;
  std::optional<block_prefetch> next;
  if (hints.prefetch && parts_.slots > 0 && outer == 1)
    next.emplace(leaves_, on.data, on.strides_bytes, inner, parts_.instructions.size());
  // If the last instruction stores past the cache, all of the next block is prefetched between its
  // stores, line by line. Otherwise a part of it is prefetched with each instruction.
  const bool prefetches_last = next && stores_past_the_cache(parts_.instructions.back(), on, hints);
  index_t number = 0;
  for (const auto& step : parts_.instructions) {
    if (next && !prefetches_last) next->part(number++);
    const block_values out = locate(step.out, on);
    if (!step.run) {
      step.fill->fill(on.start, out.data, inner, outer);
      continue;
    }
    const int operand_count = step.inputs + 1;
    std::array<std::byte*, 4> pointers;
    std::array<index_t, 8> strides;
    pointers[0] = out.data;
    strides[0] = out.inner_stride;
    strides[static_cast<std::size_t>(operand_count)] = out.outer_stride;
    for (int k = 0; k < step.inputs; ++k) {
      const block_values in = locate(step.in[static_cast<std::size_t>(k)], on);
      pointers[static_cast<std::size_t>(k) + 1] = in.data;
      strides[static_cast<std::size_t>(k) + 1] = in.inner_stride;
      strides[static_cast<std::size_t>(operand_count + k) + 1] = in.outer_stride;
    }
    const auto item = static_cast<index_t>(step.out.item_bytes);
    const bool past_the_cache =
        hints.nontemporal_buffer != nullptr && step.out.place == reg::location::operand;
    if (past_the_cache && step.run == parallel::copy_kernel(step.out.item_bytes) &&
        parallel::is_transposed(strides.data(), step.out.item_bytes))
      parallel::copy_kernel_past_the_cache(step.out.item_bytes)(pointers.data(), strides.data(),
                                                                inner, outer);
    else if (past_the_cache && step.run == parallel::copy_kernel(step.out.item_bytes) &&
             strides[0] == item && strides[1] == item &&
             inner * item >= nontemporal_run::row_bytes_min)
      copy_past_the_cache(pointers.data(), strides.data(), item * inner, outer,
                          step.in[0].place == reg::location::operand);
    else if (past_the_cache && out.inner_stride == item &&
             inner * item >= nontemporal_run::row_bytes_min)
      nontemporal_run(step, pointers.data(), strides.data(), hints.nontemporal_buffer,
                      prefetches_last ? &*next : nullptr)
          .run(inner, outer);
    else step.run(pointers.data(), strides.data(), inner, outer);
  }
}

}  // namespace shale::ops
