// Finds elements by their rank among elements that do not fit in memory, in passes over all of
// them.
//
// Invariants
//   search.1  a pass counts elements by the next 16 bits of their keys. It counts only those whose
//             leading bits are those of an element of a wanted rank. If there are many different
//             such leading bits, it counts by 8 bits
//   search.2  keys are gathered and sorted only if few enough are left; otherwise another pass
//             counts further bits, until no bit is left
//   search.3  if a pass meets another number of keys than was counted, the operand is refused
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// Calls its argument for parts of the elements, in any order: contiguous tensors of one dtype.
using part_loop = std::function<void(const std::function<void(const tensor& part)>&)>;

/// Elements that were found by their rank.
struct searched_ranks {
  tensor elements;              // [number of ranks]. A NaN is the canonical one, and a zero is +0
  std::vector<index_t> before;  // by rank: the number of elements that are smaller (sorting.hpp)
};

/// The elements with the given ranks among `count` elements, counted from 0. `for_each_part` goes
/// over all elements once in each call. At most `gathered_max` keys are held.
/// Cost     one pass for types of at most 2 bytes, and two for others, unless very many elements
///          share their leading 16 bits with a wanted one. Then more bits are counted: at most
///          seven passes. Each thread holds 512 KiB of counts, and in such passes up to eight times
///          that, or 2 KiB for each of more than eight wanted sequences of leading bits
/// Throws   std::bad_alloc, cancelled, io (the elements change between passes), exceptions of
///          `for_each_part`
searched_ranks search_ranks(dtype type, index_t count, const std::vector<index_t>& ranks,
                            index_t gathered_max, const part_loop& for_each_part, executor& on);

/// Numbers the elements of `part` that are equal to `element` in the order of sorting.hpp, from 0
/// on. Copies the element with the number `number` to `to`.
/// Returns  its index; if there are only n < `number` + 1 such elements, -1 - n
index_t find_equal(const tensor& part, const tensor& element, index_t number, std::byte* to);

}  // namespace shale::ops
