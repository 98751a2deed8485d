// Sums of products by subscripts, as NumPy's einsum.
//
//   expr product = einsum("ij,jk->ik", {a, b});       // a matrix product
//   expr traces = einsum("...ii->...", {a});          // of each matrix
//   expr forms = einsum("bi,ij,bj->b", {x, a, x});    // quadratic forms
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Names the axes of each operand by letters. Multiplies the elements that have the same position
/// along axes with the same name, and sums over the names that the result does not have.
///
/// A name that an operand has twice means its diagonal. Without `->`, the result has the names that
/// occur once, in alphabetical order, capitals first. An ellipsis stands for all further axes.
/// Those of several operands are broadcast. If the result is not written, they are its first axes.
/// An axis of length 1 is broadcast against others of its name. Spaces are ignored.
/// Shape    by the names of the result; dtype promoted, also of numbers
/// Cost     one operand: a view or a reduction. Two: a batched `matmul` of their axes merged to
///          rows and columns, which copies an operand whose strides do not allow that; an
///          elementwise product if no axis of both is summed. More: the pair with the smallest
///          product is multiplied first, until one array is left; intermediate products are held in
///          memory
/// Throws   invalid_argument (subscripts that cannot be read, with the position; other ranks;
///          extents that differ; another number of operands than of terms; dtypes that do not
///          promote; float8, if it is multiplied or summed; more than 32 axes in an intermediate
///          product), out_of_memory
expr einsum(std::string_view subscripts, std::span<const expr> operands);
inline expr einsum(std::string_view subscripts, std::initializer_list<expr> operands) {
  return einsum(subscripts, std::span<const expr>(operands.begin(), operands.size()));
}

}  // namespace shale
