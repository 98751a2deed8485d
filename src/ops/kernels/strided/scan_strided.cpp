#include "ops/kernels/strided/scan_strided.hpp"

#include <algorithm>
#include <utility>

#include "ops/kernels/strided/run_strided.hpp"

namespace shale::ops::kernels {

namespace {

constexpr index_t widest_value = 16;
constexpr index_t widest_running = 32;

/// A run of fewer values costs more to start and end than to scan.
constexpr index_t short_run = 8;

// Memory for values and results that are not contiguous, and the choice between it and the
// operand's own memory.
class packed_row {
 public:
  packed_row(const scan_shape& scan, const scanned_axis& along)
      : scan_(scan),
        along_(along),
        packs_(along.value_stride != scan.value_bytes),
        unpacks_(along.result_stride != scan.result_bytes) {}

  /// Calls `body(values, results)` with contiguous memory for `count` elements.
  template <class Body>
  void with(const std::byte* values, std::byte* results, index_t count, Body body) {
    if (packs_ && count > 1) {
      pack(values_, values, scan_.value_bytes, along_.value_stride, 0, count, 1);
      values = values_;
    }
    const bool scatters = unpacks_ && count > 1;
    body(values, scatters ? results_ : results);
    if (scatters) unpack(results, results_, scan_.result_bytes, along_.result_stride, 0, count, 1);
  }

 private:
  const scan_shape& scan_;
  const scanned_axis& along_;
  const bool packs_;
  const bool unpacks_;
  alignas(64) std::byte values_[scan_run_elements * widest_value];
  alignas(64) std::byte results_[scan_run_elements * widest_value];
};

// Scans along the inner axis, one row after the other.
void scan_rows(const scan_shape& scan, const scanned_block& block, const scanned_axis& inner,
               const scanned_axis& outer) {
  packed_row packed(scan, inner);
  for (index_t row = 0; row < outer.extent; ++row) {
    std::byte* const state = block.states + row * outer.state_stride;
    const std::byte* const values = block.values + row * outer.value_stride;
    std::byte* const results = block.results + row * outer.result_stride;
    for (index_t first = 0; first < inner.extent; first += scan_run_elements) {
      const index_t count = std::min(scan_run_elements, inner.extent - first);
      packed.with(values + first * inner.value_stride, results + first * inner.result_stride, count,
                  [&](const std::byte* from, std::byte* to) { scan.run(state, from, to, count); });
    }
  }
}

// Scans along the outer axis, with the columns along the inner axis side by side. If the outer axis
// is not scanned either, each of its rows has states of its own.
void scan_columns(const scan_shape& scan, const scanned_block& block, const scanned_axis& inner,
                  const scanned_axis& outer) {
  alignas(64) std::byte columns[scan_run_elements * widest_running];
  packed_row packed(scan, inner);
  for (index_t first = 0; first < inner.extent; first += scan_run_elements) {
    const index_t count = std::min(scan_run_elements, inner.extent - first);
    std::byte* const states = block.states + first * inner.state_stride;
    for (index_t row = 0; row < outer.extent; ++row) {
      std::byte* const here = states + row * outer.state_stride;
      if (row == 0 || outer.state_stride != 0) scan.begin(columns, here, inner.state_stride, count);
      packed.with(
          block.values + first * inner.value_stride + row * outer.value_stride,
          block.results + first * inner.result_stride + row * outer.result_stride, count,
          [&](const std::byte* from, std::byte* to) { scan.row(columns, from, to, count); });
      if (row + 1 == outer.extent || outer.state_stride != 0)
        scan.end(columns, here, inner.state_stride, count);
    }
  }
}

}  // namespace

void scan_strided(const scan_shape& scan, const scanned_block& block) {
  scanned_axis inner = block.inner;
  scanned_axis outer = block.outer;
  // An axis of one element counts as scanned, because its stride is never used.
  if (inner.extent == 1) inner.state_stride = 0;
  if (outer.extent == 1) outer.state_stride = 0;
  if (inner.extent == 1) std::swap(inner, outer);
  // A few long columns are faster as runs along the outer axis, and many short rows are faster as
  // columns side by side. Both are the same block with its axes swapped.
  const bool inner_scanned = inner.state_stride == 0;
  const bool outer_scanned = outer.state_stride == 0;
  if (inner_scanned != outer_scanned && inner.extent < short_run && outer.extent >= short_run)
    std::swap(inner, outer);

  if (inner.state_stride == 0) scan_rows(scan, block, inner, outer);
  else scan_columns(scan, block, inner, outer);
}

}  // namespace shale::ops::kernels
