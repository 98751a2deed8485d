#include "ops/dispatch.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "shale/error.hpp"

namespace shale::ops {

namespace {

constexpr isa all_isas[] = {isa::baseline, isa::avx2, isa::avx512};

// Tables are filled from the baseline upwards: an instruction set without a family of its own keeps
// the kernels of the one below.
kernels::kernel_table make_table(isa which) {
  kernels::kernel_table table{};
  kernels::baseline::fill_arithmetic(table);
  kernels::baseline::fill_comparison(table);
  kernels::baseline::fill_elementary(table);
  kernels::baseline::fill_complex_elementary(table);
  kernels::baseline::fill_casts(table);
  kernels::baseline::fill_sums(table);
  kernels::baseline::fill_extrema(table);
  kernels::baseline::fill_moments(table);
#ifdef SHALE_WIDE_KERNELS
  if (which >= isa::avx2) {
    kernels::avx2::fill_arithmetic(table);
    kernels::avx2::fill_comparison(table);
    kernels::avx2::fill_elementary(table);
    kernels::avx2::fill_casts(table);
    kernels::avx2::fill_sums(table);
    kernels::avx2::fill_extrema(table);
    kernels::avx2::fill_moments(table);
  }
  if (which >= isa::avx512) {
    kernels::avx512::fill_arithmetic(table);
    kernels::avx512::fill_comparison(table);
    kernels::avx512::fill_elementary(table);
    kernels::avx512::fill_casts(table);
    kernels::avx512::fill_sums(table);
    kernels::avx512::fill_extrema(table);
    kernels::avx512::fill_moments(table);
    // Measured: products of bytes take 1.6 times as long, widened to 512 bits, as with AVX2.
    const kernels::kernel_table& narrower = kernels_for(isa::avx2);
    for (const dtype type : {dtype::int8, dtype::uint8})
      for (const operation each : {operation::multiply, operation::square})
        table.set(each, type, narrower.operations[static_cast<int>(each)][static_cast<int>(type)]);
  }
#else
  static_cast<void>(which);
#endif
  return table;
}

isa best_isa() noexcept {
  isa best = isa::baseline;
  for (const isa each : all_isas)
    if (supports(each)) best = each;
  return best;
}

// Never throws: a SHALE_ISA that cannot be met is reported by `check_isa`.
struct choice {
  isa which;
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

template <class Enumeration>
int number(Enumeration value) noexcept {
  return static_cast<int>(value);
}

}  // namespace

std::string_view name(isa which) noexcept {
  switch (which) {
    case isa::avx2:
      return "avx2";
    case isa::avx512:
      return "avx512";
    default:
      return "baseline";
  }
}

bool supports(isa which) noexcept {
  if (which == isa::baseline) return true;
#ifdef SHALE_WIDE_KERNELS
  // These ask the CPU and the operating system, which must save the registers.
  // FMA is for SLEEF's AVX2 functions; kernels of our own never fuse.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (which == isa::avx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

const kernels::kernel_table& kernels_for(isa which) noexcept {
  static const kernels::kernel_table baseline = make_table(isa::baseline);
  if (which == isa::baseline) return baseline;
  static const kernels::kernel_table avx2 = make_table(isa::avx2);
  if (which == isa::avx2) return avx2;
  static const kernels::kernel_table avx512 = make_table(isa::avx512);
  return avx512;
}

isa choose_isa(const char* wanted) {
  if (wanted == nullptr || *wanted == '\0') return best_isa();
  std::string known, usable;
  for (const isa each : all_isas) {
    const std::string text(name(each));
    if (supports(each)) usable += (usable.empty() ? "" : ", ") + text;
    known += (known.empty() ? "" : ", ") + text;
    if (text != wanted) continue;
    if (supports(each)) return each;
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

isa active_isa() noexcept { return chosen().which; }

kernel find_kernel(operation which, dtype type) noexcept {
  return active().operations[number(which)][number(type)];
}

kernel find_cast(dtype from, dtype to) noexcept { return active().casts[number(from)][number(to)]; }

const reducer* find_reducer(reduction which, dtype type) noexcept {
  const reducer& found = active().reducers[number(which)][number(type)];
  return found.accumulate != nullptr ? &found : nullptr;
}

int arity(operation which) noexcept {
  if (which == operation::select) return 3;
  return which < operation::negative ? 2 : 1;
}

dtype result_dtype(operation which, dtype type) noexcept {
  if (which >= operation::equal && which <= operation::greater_equal) return dtype::boolean;
  if (which >= operation::is_nan && which <= operation::logical_not) return dtype::boolean;
  if (which == operation::absolute && type == dtype::complex64) return dtype::float32;
  if (which == operation::absolute && type == dtype::complex128) return dtype::float64;
  return type;
}

}  // namespace shale::ops
