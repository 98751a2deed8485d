// Defines the table of the kernels of `correlate` and `convolve` for one instruction set. Its
// family obeys the rules of table.hpp. It is a table of its own, because its kernels take no
// operands of a plan: no tape calls them.
#pragma once

#include "ops/kernels/dispatch/table.hpp"
#include "ops/kernels/operations/window_sum.hpp"

namespace shale::ops::kernels {

struct window_table {
  window_kernel sums[dtype_limit];  ///< by dtype of the sums; null if there is none

  constexpr void set(dtype type, window_kernel run) noexcept { sums[static_cast<int>(type)] = run; }
};

namespace baseline {
void fill_windows(window_table& table);
}
namespace avx2 {
void fill_windows(window_table& table);
}
namespace avx512 {
void fill_windows(window_table& table);
}

}  // namespace shale::ops::kernels
