// Kernels that compute float16 and bfloat16 without intermediate results in memory: each vector is
// widened to float32, computed, rounded, and stored. Results have the bits of three passes. They
// exist where the processor has vectors for them; elsewhere expressions have the three passes.
#include "ops/kernels/elementary/float_functions.hpp"
#include "ops/kernels/elementwise/loops.hpp"
#include "ops/kernels/elementwise/small_float_vectors.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {

#if defined(SHALE_X86_KERNELS) && defined(SHALE_SMALL_FLOAT_VECTORS)

namespace {

// The last elements, followed by copies of the first of them, which cause no slow special case.
template <class Small>
struct padded {
  padded(const Small* from, index_t count) {
    for (index_t i = 0; i < smalls_at_once; ++i) element[i] = from[i < count ? i : 0];
  }
  Small element[smalls_at_once];
};

template <class Small, class Function>
void unary_smalls(std::byte* const* data, index_t count) {
  auto* out = reinterpret_cast<Small*>(data[0]);
  const auto* a = reinterpret_cast<const Small*>(data[1]);
  index_t i = 0;
  for (; i + smalls_at_once <= count; i += smalls_at_once)
    narrow_vector(Function{}(widened_vector(a + i)), out + i);
  if (i == count) return;
  padded<Small> last(a + i, count - i);
  narrow_vector(Function{}(widened_vector(last.element)), last.element);
  __builtin_memcpy(out + i, last.element, static_cast<std::size_t>(count - i) * sizeof(Small));
}

template <class Small, class Function>
void binary_smalls(std::byte* const* data, index_t count) {
  auto* out = reinterpret_cast<Small*>(data[0]);
  const auto* a = reinterpret_cast<const Small*>(data[1]);
  const auto* b = reinterpret_cast<const Small*>(data[2]);
  index_t i = 0;
  for (; i + smalls_at_once <= count; i += smalls_at_once)
    narrow_vector(Function{}(widened_vector(a + i), widened_vector(b + i)), out + i);
  if (i == count) return;
  padded<Small> last_a(a + i, count - i);
  const padded<Small> last_b(b + i, count - i);
  narrow_vector(Function{}(widened_vector(last_a.element), widened_vector(last_b.element)),
                last_a.element);
  __builtin_memcpy(out + i, last_a.element, static_cast<std::size_t>(count - i) * sizeof(Small));
}

template <class Small, class Function>
void set_unary(kernel_table& table, operation op, Function) {
  table.set(op, type_of<Small>, &run<&unary_smalls<Small, Function>, sizeof(Small), sizeof(Small)>);
}

template <class Small, class Function>
void set_binary(kernel_table& table, operation op, Function) {
  table.set(op, type_of<Small>,
            &run<&binary_smalls<Small, Function>, sizeof(Small), sizeof(Small), sizeof(Small)>);
}

template <class Small>
void fill(kernel_table& table) {
  using V = float_vector;
  set_binary<Small>(table, operation::add, [](V a, V b) { return a + b; });
  set_binary<Small>(table, operation::subtract, [](V a, V b) { return a - b; });
  set_binary<Small>(table, operation::multiply, [](V a, V b) { return a * b; });
  set_binary<Small>(table, operation::divide, [](V a, V b) { return a / b; });
  set_unary<Small>(table, operation::exponential, [](V a) { return exponential(a); });
  set_unary<Small>(table, operation::hyperbolic_tangent, [](V a) { return hyperbolic_tangent(a); });
}

}  // namespace

void fill_small_floats(kernel_table& table) {
  fill<half>(table);
  fill<brain>(table);
}

#else

void fill_small_floats(kernel_table&) {}

#endif

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
