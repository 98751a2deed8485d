#include "shale/windows.hpp"

#include <memory>
#include <string>
#include <utility>

#include "core/allocating.hpp"
#include "core/enumerator.hpp"
#include "core/widened.hpp"
#include "ops/graph/node_access.hpp"
#include "ops/graph/views.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

// The positions of the kernel along one axis: their number, and how far the kernel reaches beyond
// the start of `a` at the first of them.
struct kernel_positions {
  index_t before;
  index_t count;
};

// Throws   invalid_argument (more positions than an axis can have)
kernel_positions positions_along(index_t extent, index_t taps, window_mode mode) {
  switch (mode) {
    case window_mode::valid:
      return {0, extent - taps + 1};
    case window_mode::same:
      return {taps / 2, extent};
    default:
      break;
  }
  const auto count = checked_add(extent, taps - 1);
  if (!count)
    throw error(errc::invalid_argument, "windows have too many positions",
                {"along one axis, the operand has " + std::to_string(extent) +
                 " elements, the kernel " + std::to_string(taps)});
  return {taps - 1, *count};
}

// If the kernel is longer than `a`, and both have one axis, NumPy exchanges the operands. It then
// reverses the result of a correlation. That gives the positions at which `a` lies inside the
// kernel. In mode `same`, an even number of elements has no middle; which of the two elements next
// to it is taken depends on whether the result was reversed.
kernel_positions positions_of_shorter(index_t extent, index_t taps, window_mode mode,
                                      bool reversed) {
  switch (mode) {
    case window_mode::valid:
      return {taps - extent, taps - extent + 1};
    case window_mode::same:
      return {taps - 1 - (reversed ? extent / 2 : (extent - 1) / 2), taps};
    default:
      return positions_along(extent, taps, mode);
  }
}

[[noreturn]] void throw_long_kernel(const expr& a, const expr& kernel, index_t axis) {
  throw error(errc::invalid_argument, "no position of the kernel lies inside the operand",
              {"along axis " + std::to_string(axis) + ", the kernel has " +
                   std::to_string(kernel.shape(axis)) + " elements, the operand " +
                   std::to_string(a.shape(axis)),
               "got shapes " + to_string(a.shape()) + " and " + to_string(kernel.shape()) +
                   "; mode same or full takes them"});
}

void check_operands(const expr& a, const expr& kernel, const char* function) {
  const std::string got =
      "got shapes " + to_string(a.shape()) + " and " + to_string(kernel.shape());
  if (a.rank() == 0 || kernel.rank() != a.rank())
    throw error(errc::invalid_argument,
                std::string(function) + " needs a kernel with as many axes as the operand",
                {got + "; both need at least one axis"});
  if (a.size() == 0 || kernel.size() == 0)
    throw error(errc::invalid_argument, std::string(function) + " needs operands with elements",
                {got});
}

// The sums by Fourier transforms of blocks of the input, in complex128.
expr transformed(const node_ref& input, const node_ref& kernel, const dims& before,
                 const dims& shape) {
  const node_ref weights =
      make_contiguous(make_cast(make_cast(kernel, input->type), dtype::complex128));
  auto from =
      std::make_shared<const detail::stage>(detail::stage{.input = make_operand_of_parts(input),
                                                          .factor = weights,
                                                          .before = before,
                                                          .shape = shape,
                                                          .type = input->type});
  return expr_of(make_node(input->type, shape, detail::staged_leaf{std::move(from)}));
}

expr windows(const expr& a, const expr& kernel, window_mode mode, window_method method,
             bool reversed) {
  dims shape, before;
  for (index_t axis = 0; axis < a.rank(); ++axis) {
    const index_t extent = a.shape(axis), taps = kernel.shape(axis);
    if (mode == window_mode::valid && taps > extent && a.rank() > 1)
      throw_long_kernel(a, kernel, axis);
    const kernel_positions along = a.rank() == 1 && taps > extent
                                       ? positions_of_shorter(extent, taps, mode, reversed)
                                       : positions_along(extent, taps, mode);
    shape.push_back(along.count);
    before.push_back(along.before);
  }
  element_count(shape);  // throws if there are too many
  const dtype type = promote(a.dtype(), kernel.dtype());
  const dtype sums = detail::widened(type);
  if (!computes(type))
    throw error(errc::invalid_argument, "windows of " + std::string(name(type)) + " have no sums",
                {"this dtype only stores and converts: cast it to float32 first"});
  if (method == window_method::fft && is_inexact(type))
    return transformed(make_cast(node_of(a), type), node_of(kernel), before, shape);
  // If the sums are wider than the result, the input is rounded to the dtype of the result first.
  // The generator alone would convert it straight to the dtype of the sums.
  const node_ref input = sums == type ? node_of(a) : make_cast(node_of(a), type);
  const node_ref weights = make_cast(make_cast(node_of(kernel), type), sums);
  return expr_of(make_node(type, shape,
                           detail::window_leaf{make_staged(input), make_contiguous(weights), before,
                                               axis_map::identity(shape)}));
}

void require_choices(window_mode mode, window_method method) {
  detail::require_enumerator(mode, window_mode::full, "window_mode");
  detail::require_enumerator(method, window_method::fft, "window_method");
}

}  // namespace

expr correlate(const expr& a, const expr& kernel, window_mode mode, window_method method) {
  require_choices(mode, method);
  return allocating([&] {
    check_operands(a, kernel, "correlate");
    const bool is_complex = kind(kernel.dtype()) == dtype_kind::complex;
    return windows(a, is_complex ? conj(kernel) : kernel, mode, method, true);
  });
}

expr convolve(const expr& a, const expr& kernel, window_mode mode, window_method method) {
  require_choices(mode, method);
  return allocating([&] {
    check_operands(a, kernel, "convolve");
    return windows(a, kernel.flip(), mode, method, false);
  });
}

}  // namespace shale
