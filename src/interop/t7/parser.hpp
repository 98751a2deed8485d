// Reads the tree of a .t7 file, without the elements of its storages.
//
// Invariants
//   torch.1  time and memory are bounded by bytes that the file really has: each step reads at
//            least one byte, and nothing is allocated because of a number that is only declared
//   torch.2  the depth of calls does not grow with the depth of the tree
//   torch.3  every reference leads to an object of its own kind, and every element of a tensor lies
//            in a storage of its dtype, whose elements lie in the file
#pragma once

#include "interop/input_file.hpp"
#include "interop/t7/tree.hpp"

namespace shale::interop::t7 {

/// Throws   as t7_file::open
tree read_tree(const input_file& file);

}  // namespace shale::interop::t7
