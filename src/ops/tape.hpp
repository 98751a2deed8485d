// An expression as a list of kernel calls over the registers of one block.
//
// Invariants
//   tape.1  equal subexpressions are computed once a block
//   tape.2  the instruction that writes an output comes after every read of that output's old bytes
//   tape.3  scratch never exceeds 2 MiB a thread: blocks shrink when registers are many
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "ops/generate.hpp"
#include "ops/graph.hpp"
#include "shale/executor.hpp"

namespace shale::ops {

/// Where an instruction finds an operand.
struct reg {
  enum class where : std::uint8_t {
    operand,   // the plan's operand `index`
    constant,  // the tape's constant `index`
    scratch,   // slot `index` of the worker's scratch, contiguous
  };
  where place;
  int index;
  std::size_t item_bytes;
};

struct instruction {
  kernel run = nullptr;  // null: `fill` makes the block
  const generator* fill = nullptr;
  reg out;
  std::array<reg, 3> in{};
  int inputs = 0;
};

/// A compiled expression. Operands are numbered: outputs first, then leaves.
class tape {
 public:
  /// Elements in the largest block that this tape takes: the plan cuts to it.
  index_t block_elements() const noexcept { return block_elements_; }

  /// Bytes a worker needs for run().
  std::size_t scratch_bytes() const noexcept;

  std::size_t instruction_count() const noexcept { return instructions_.size(); }
  bool generates() const noexcept { return !generators_.empty(); }

  /// The distinct leaves read, in operand order behind the outputs.
  const std::vector<node_ref>& leaves() const noexcept { return leaves_; }

  /// Runs a block. `data` and `strides_bytes` hold `operands` operands as a plan hands them out;
  /// `start` are the block's coordinates (used by generators only).
  void run(std::byte* const* data, const index_t* strides_bytes, int operands, index_t inner,
           index_t outer, const index_t* start, std::byte* scratch) const;

  /// Address and strides in bytes {inner, outer} of a value after run(): for reducers.
  struct block {
    std::byte* data;
    index_t inner_stride;
    index_t outer_stride;
  };
  block value(std::size_t which, std::byte* const* data, const index_t* strides_bytes, int operands,
              index_t inner, std::byte* scratch) const;

 private:
  friend class tape_builder;
  block locate(const reg& at, std::byte* const* data, const index_t* strides_bytes, int operands,
               index_t inner, std::byte* scratch) const;

  std::vector<instruction> instructions_;
  std::vector<std::array<std::byte, 16>> constants_;
  std::vector<std::unique_ptr<generator>> generators_;
  std::vector<node_ref> leaves_;
  std::vector<reg> values_;
  int slots_ = 0;
  std::size_t slot_item_bytes_ = 0;
  index_t block_elements_ = 0;
};

/// The tensors behind staged nodes that were computed already.
using staged_values = std::map<const detail::stage*, tensor>;

/// The tensor behind a tensor leaf or an already computed staged leaf.
tensor tensor_of(const node& leaf, const staged_values& staged);

/// Compiles `outputs`, each to be written in dtype `types[i]` as operand i, and `values`, which
/// stay in registers for reducers. Generators read their inputs behind the plan's back: inputs that
/// overlap one of `written` are copied here.
tape compile(const std::vector<node_ref>& outputs, const std::vector<dtype>& types,
             const std::vector<node_ref>& values, const staged_values& staged,
             const std::vector<tensor>& written, executor& on);

}  // namespace shale::ops
