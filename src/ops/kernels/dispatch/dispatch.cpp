#include "ops/kernels/dispatch/dispatch.hpp"

#ifdef SHALE_WIDE_KERNELS
#include <cpuid.h>
#endif
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "shale/error.hpp"

namespace shale::ops {

namespace {

constexpr isa all_isas[] = {isa::baseline, isa::avx2, isa::avx512};

// Tables are indexed by the file codes of dtypes.
template <class... Types>
constexpr bool fit_in_tables(type_list<Types...>) {
  return ((static_cast<int>(dtype_of<Types>()) < kernels::dtype_limit) && ...);
}
static_assert(fit_in_tables(all_types{}));

// Tables are filled from the baseline upwards: an instruction set without a family of its own keeps
// the kernels of the one below.
kernels::kernel_table make_table(isa set) {
  kernels::kernel_table table{};
  kernels::baseline::fill_arithmetic(table);
  kernels::baseline::fill_float_arithmetic(table);
  kernels::baseline::fill_comparison(table);
  kernels::baseline::fill_elementary(table);
  kernels::baseline::fill_complex_elementary(table);
  kernels::baseline::fill_casts(table);
  kernels::baseline::fill_sums(table);
  kernels::baseline::fill_extrema(table);
  kernels::baseline::fill_arg_extrema(table);
  kernels::baseline::fill_moments(table);
  kernels::baseline::fill_random(table);
  kernels::baseline::fill_scans(table);
#ifdef SHALE_WIDE_KERNELS
  if (set >= isa::avx2) {
    kernels::avx2::fill_arithmetic(table);
    kernels::avx2::fill_float_arithmetic(table);
    kernels::avx2::fill_comparison(table);
    kernels::avx2::fill_elementary(table);
    kernels::avx2::fill_small_floats(table);
    kernels::avx2::fill_casts(table);
    kernels::avx2::fill_sums(table);
    kernels::avx2::fill_extrema(table);
    kernels::avx2::fill_arg_extrema(table);
    kernels::avx2::fill_moments(table);
    kernels::avx2::fill_random(table);
    kernels::avx2::fill_scans(table);
  }
  if (set >= isa::avx512) {
    kernels::avx512::fill_arithmetic(table);
    kernels::avx512::fill_float_arithmetic(table);
    kernels::avx512::fill_comparison(table);
    kernels::avx512::fill_elementary(table);
    kernels::avx512::fill_small_floats(table);
    kernels::avx512::fill_casts(table);
    kernels::avx512::fill_sums(table);
    kernels::avx512::fill_extrema(table);
    kernels::avx512::fill_arg_extrema(table);
    kernels::avx512::fill_moments(table);
    kernels::avx512::fill_random(table);
    kernels::avx512::fill_scans(table);
    // Products of bytes keep the AVX2 kernels: the AVX-512 ones take 1.6 times as long (measured).
    const kernels::kernel_table& narrower = kernels_for(isa::avx2);
    for (const dtype type : {dtype::int8, dtype::uint8})
      for (const operation op : {operation::multiply, operation::square})
        table.set(op, type, narrower.operations[static_cast<int>(op)][static_cast<int>(type)]);
  }
#else
  static_cast<void>(set);
#endif
  return table;
}

kernels::window_table make_window_table(isa set) {
  kernels::window_table table{};
#ifdef SHALE_WIDE_KERNELS
  if (set == isa::avx2) kernels::avx2::fill_windows(table);
  if (set == isa::avx512) kernels::avx512::fill_windows(table);
#endif
  if (set == isa::baseline) kernels::baseline::fill_windows(table);
  return table;
}

isa best_isa() noexcept {
  isa best = isa::baseline;
  for (const isa set : all_isas)
    if (supports(set)) best = set;
  return best;
}

// The choice never throws. If SHALE_ISA cannot be used, `refused` is set and `check_isa` reports
// it.
struct choice {
  isa set;
  bool refused;
};

const choice& chosen() noexcept {
  static const choice made = []() noexcept -> choice {
    try {
      return {choose_isa(std::getenv("SHALE_ISA")), false};
    } catch (...) {
      return {best_isa(), true};
    }
  }();
  return made;
}

const kernels::kernel_table& active() noexcept {
  static const kernels::kernel_table& table = kernels_for(active_isa());
  return table;
}

const kernels::window_table& active_windows() noexcept {
  static const kernels::window_table& table = window_kernels_for(active_isa());
  return table;
}

template <class Enumeration>
int number(Enumeration value) noexcept {
  return static_cast<int>(value);
}

#ifdef SHALE_WIDE_KERNELS
// Not every compiler's __builtin_cpu_supports knows this name.
bool has_f16c() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

}  // namespace

std::string_view name(isa set) noexcept {
  switch (set) {
    case isa::avx2:
      return "avx2";
    case isa::avx512:
      return "avx512";
    default:
      return "baseline";
  }
}

bool supports(isa set) noexcept {
  if (set == isa::baseline) return true;
#ifdef SHALE_WIDE_KERNELS
  // These builtins ask the CPU, and the operating system, which must save the wide registers.
  // SLEEF's AVX2 functions need FMA; the kernels of this library never fuse operations.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  if (set == isa::avx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

const kernels::kernel_table& kernels_for(isa set) noexcept {
  static const kernels::kernel_table baseline = make_table(isa::baseline);
  if (set == isa::baseline) return baseline;
  static const kernels::kernel_table avx2 = make_table(isa::avx2);
  if (set == isa::avx2) return avx2;
  static const kernels::kernel_table avx512 = make_table(isa::avx512);
  return avx512;
}

const kernels::window_table& window_kernels_for(isa set) noexcept {
  static const kernels::window_table baseline = make_window_table(isa::baseline);
  if (set == isa::baseline) return baseline;
  static const kernels::window_table avx2 = make_window_table(isa::avx2);
  if (set == isa::avx2) return avx2;
  static const kernels::window_table avx512 = make_window_table(isa::avx512);
  return avx512;
}

isa choose_isa(const char* wanted) {
  if (wanted == nullptr || *wanted == '\0') return best_isa();
  std::string known, usable;
  for (const isa set : all_isas) {
    const std::string text(name(set));
    if (supports(set)) usable += (usable.empty() ? "" : ", ") + text;
    known += (known.empty() ? "" : ", ") + text;
    if (text != wanted) continue;
    if (supports(set)) return set;
    throw error(errc::unsupported, "SHALE_ISA asks for kernels that cannot run here",
                {fmt::format("wanted {}, usable on this CPU: {}", text, usable),
                 "unset SHALE_ISA to take the best of them"});
  }
  throw error(errc::invalid_argument, "SHALE_ISA is not the name of an instruction set",
              {"got \"" + std::string(wanted) + "\", wanted one of " + known,
               "unset SHALE_ISA to take the best that this CPU runs"});
}

void check_isa() {
  if (chosen().refused) choose_isa(std::getenv("SHALE_ISA"));
}

isa active_isa() noexcept { return chosen().set; }

kernel find_kernel(operation op, dtype type) noexcept {
  return active().operations[number(op)][number(type)];
}

kernel find_kernel(product_sum kind, dtype type) noexcept {
  return active().product_sums[number(kind)][number(type)];
}

kernel find_cast(dtype from, dtype to) noexcept { return active().casts[number(from)][number(to)]; }

const reducer* find_reducer(reduction kind, dtype type) noexcept {
  const reducer& found = active().reducers[number(kind)][number(type)];
  return found.accumulate != nullptr ? &found : nullptr;
}

const random_kernel& find_random_kernel(distribution kind, dtype type) noexcept {
  return active().random[number(kind)][number(type)];
}

window_kernel find_window_kernel(dtype type) noexcept {
  return active_windows().sums[number(type)];
}

const scanner* find_scanner(scan kind, dtype type) noexcept {
  const scanner& found = active().scanners[number(kind)][number(type)];
  return found.scan != nullptr ? &found : nullptr;
}

}  // namespace shale::ops
