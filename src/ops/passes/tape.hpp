// Runs a compiled expression: a list of kernel calls, the *tape*, over the registers of one block.
//
// Evaluating `sqrt(a * a + b * b)` operation by operation would move every intermediate result
// through main memory. Instead the index space is cut into small blocks, and the whole tape runs on
// one block before the next. An intermediate result then is a *register*: a slot of scratch memory
// for one block, which stays in the L1 or L2 cache. Slots are reused as soon as their value was
// read for the last time.
//
// Invariants
//   tape.1  equal subexpressions are computed once per block
//   tape.2  the instruction that writes an output comes after every read of that output's old bytes
//   tape.3  scratch memory is at most 2 MiB for each thread: blocks are smaller if there are many
//           slots
//   tape.4  a product that only one sum or difference reads has no slot: one kernel computes both
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "ops/kernels/operations/operations.hpp"
#include "parallel/pass/copy.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// A register: the place where an instruction finds an operand.
struct reg {
  enum class location : std::uint8_t {
    operand,   // the plan's operand `index`
    constant,  // the tape's constant `index`
    scratch,   // slot `index` of the worker's scratch memory, contiguous
  };
  location place;
  int index;
  std::size_t item_bytes;
};

/// Fills blocks of a leaf whose elements are computed from their coordinates. `start` is the index
/// of the block's first element in the leaf's shape. `inner` counts along the last axis, `outer`
/// along the one before.
/// Threads  fill may be called from several threads at once
class leaf_generator {
 public:
  virtual ~leaf_generator() = default;
  virtual void fill(const index_t* start, std::byte* out, index_t inner, index_t outer) const = 0;

  /// False if `find_rows` always returns false; it is not called then.
  virtual bool may_have_rows() const noexcept { return false; }

  /// Finds where the rows of a block begin in memory, and stores these `outer` addresses in `rows`.
  /// Returns false if the elements of a row do not lie one after the other.
  virtual bool find_rows(const index_t* /*start*/, const std::byte** /*rows*/,
                         index_t /*outer*/) const {
    return false;
  }
};

struct instruction {
  kernel run = nullptr;  // if null, `fill` makes the block
  const leaf_generator* fill = nullptr;
  reg out;
  std::array<reg, 3> in{};
  int inputs = 0;
};

/// The parts of a tape.
struct tape_parts {
  std::vector<instruction> instructions = {};
  std::vector<std::array<std::byte, 16>> constants = {};
  std::vector<tensor> gathered = {};
  std::vector<std::unique_ptr<leaf_generator>> generators = {};
  std::vector<reg> values = {};  // the values that reducers read
  index_t additions = 0;         // of all instructions but generators
  int slots = 0;
  std::size_t slot_item_bytes = 0;
  std::unique_ptr<parallel::input_copies> copies = {};  // of `gathered`; null if there are none
};

/// A block of the plan, and the memory that a tape works in.
struct tape_block {
  /// The plan's operands, as in `parallel::kernel`: first the strides of all of them along a row,
  /// then the strides between rows.
  std::byte* const* data = nullptr;
  const index_t* strides_bytes = nullptr;
  int operands = 0;

  index_t inner = 0;  ///< elements of a row
  index_t outer = 0;  ///< rows

  /// For generators: the block's index in the pass's index space. May be null without them.
  const index_t* start = nullptr;

  /// `tape::scratch_bytes` bytes of the calling worker.
  std::byte* scratch = nullptr;
};

/// Hints that may make a tape faster if no cache holds its operands. Results do not depend on them.
struct tape_hints {
  /// If not null: outputs with contiguous rows are stored past the cache, through this buffer of
  /// parallel::nontemporal_buffer_bytes.
  std::byte* nontemporal_buffer = nullptr;

  /// Whether the leaves of the next block are prefetched.
  bool prefetch = false;
};

/// A compiled expression. Operands are numbered: outputs first, then leaves.
class tape {
 public:
  explicit tape(tape_parts parts);

  /// The most elements of a block. The plan cuts blocks to this size.
  index_t block_elements() const noexcept { return block_elements_; }

  /// Whether every tape of this size has blocks of the usual size (tape.3): a tape that has at most
  /// `steps` steps, each of which computes values of at most `item_bytes` bytes, even if all of
  /// these values are alive at once.
  static bool has_usual_blocks(std::size_t steps, std::size_t item_bytes) noexcept;

  /// The bytes of scratch memory that a worker needs for run().
  std::size_t scratch_bytes() const noexcept;

  /// The tensors that generators read in place. They are not operands of the plan.
  const std::vector<tensor>& gathered() const noexcept { return parts_.gathered; }

  using constant = std::array<std::byte, 16>;
  const std::vector<constant>& constants() const noexcept { return parts_.constants; }

  /// Replaces a constant by another one of the same dtype. No thread may be inside `run`.
  void set_constant(std::size_t number, const constant& bytes) noexcept {
    parts_.constants[number] = bytes;
  }

  /// Whether the tape only copies an operand. Then its kernel takes blocks of any size.
  bool is_copy() const noexcept;

  std::size_t instruction_count() const noexcept { return parts_.instructions.size(); }
  /// How long the instructions take for an element, in additions. Generators are not counted.
  index_t additions() const noexcept { return parts_.additions; }

  bool generates() const noexcept { return !parts_.generators.empty(); }

  /// Runs the tape on a block of the plan.
  void run(const tape_block& on, const tape_hints& hints = {}) const;

  /// The values of a register in a block. Strides are in bytes.
  struct block_values {
    std::byte* data;
    index_t inner_stride;
    index_t outer_stride;
  };
  /// Returns the value `number` for reducers, after run() on the same block.
  block_values value(std::size_t number, const tape_block& block) const;

  /// Whether the tape computes the value. Otherwise the value is an operand or a constant, and
  /// `value` returns it without a call of `run`.
  bool computes(std::size_t number) const noexcept {
    return parts_.values[number].place == reg::location::scratch;
  }

 private:
  block_values locate(const reg& source, const tape_block& in) const;
  bool copy_rows(const tape_block& on, const tape_hints& hints) const;
  bool stores_past_the_cache(const instruction& step, const tape_block& on,
                             const tape_hints& hints) const;

  tape_parts parts_;
  index_t block_elements_;
  std::vector<int> leaves_;  // the operands that are read
  bool may_copy_rows_;
};

}  // namespace shale::ops
