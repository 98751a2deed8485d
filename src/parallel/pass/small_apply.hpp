// Runs `apply` over few elements in memory by a plan that the thread keeps. Making a plan takes
// longer than calling a function for a few elements.
#pragma once

#include <array>
#include <vector>

#include "parallel/kept/kept_table.hpp"
#include "parallel/kept/operand_extent.hpp"
#include "parallel/plan/plan.hpp"
#include "shale/apply_operands.hpp"
#include "shale/executor.hpp"

namespace shale::parallel {

/// The loop of operands with certain layouts; addresses are set for each call.
struct small_loop {
  plan loop_plan;
  region tile;  // the plan's only one
  std::vector<operand_extent> extents;
};

class small_apply {
 public:
  /// Decides whether the operands can be processed by a kept plan: their dtypes are those of the
  /// parameters, they lie in memory, fit in one tile and do not overlap, and the executor has
  /// neither a sink to report to nor checksums to compare.
  /// Cost     for layouts that are kept: about 50 ns, and nothing is allocated
  /// Lifetime the operands must outlive this object
  small_apply(std::span<const detail::apply_operand> operands, executor& on);

  bool applies() const noexcept { return static_cast<bool>(loop_); }

  /// Calls `body(data, strides_bytes, inner, outer)` for each block, as plan::for_each_block, and
  /// counts the call. Needs `applies()`.
  template <class Body>
  void run(Body body) {
    const written_versions versions(*this);
    std::array<std::byte*, apply_operands_max> bases;
    for (std::size_t k = 0; k < used_; ++k) bases[k] = operands_[k].address;
    loop_->loop_plan.for_each_block(
        loop_->tile, std::span<std::byte* const>(bases.data(), used_),
        [&](std::byte* const* data, const index_t* strides, index_t inner, index_t outer, auto&&) {
          body(data, strides, inner, outer);
        });
    count();
  }

 private:
  // Raises the versions of the outputs, even if the body throws.
  class written_versions {
   public:
    explicit written_versions(const small_apply& call) noexcept : call_(call) {}
    ~written_versions() { call_.bump_versions(); }
    written_versions(const written_versions&) = delete;
    written_versions& operator=(const written_versions&) = delete;

   private:
    const small_apply& call_;
  };

  std::span<const placed_operand> operands() const noexcept { return {operands_.data(), used_}; }
  void bump_versions() const noexcept;
  void count() const noexcept;

  executor& on_;
  std::size_t used_;
  std::array<placed_operand, apply_operands_max> operands_;
  kept_table<small_loop>::used loop_;
};

}  // namespace shale::parallel
