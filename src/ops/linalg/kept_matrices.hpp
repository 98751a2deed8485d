// Keeps many matrices of one size: in memory, or in a file without a name if they take more than an
// eighth of the budget.
#pragma once

#include <cstddef>
#include <optional>

#include "shale/executor.hpp"
#include "shale/index.hpp"
#include "shale/storage.hpp"
#include "storage/mapped/scratch_file.hpp"

namespace shale::ops {

class kept_matrices {
 public:
  /// Room for `count` matrices of `matrix_bytes` each.
  /// Throws   out_of_memory; as scratch_file if they do not stay in memory
  /// Lifetime the pool of `on` outlives this object
  kept_matrices(std::size_t matrix_bytes, index_t count, executor& on);

  /// Stores a matrix, or reads one that was stored.
  /// Throws   io, out_of_space (files only)
  /// Threads  several at once, with different matrices; several may read one
  void write(index_t number, const std::byte* from);
  void read(index_t number, std::byte* to) const;

 private:
  std::size_t offset_of(index_t number) const noexcept {
    return static_cast<std::size_t>(number) * matrix_bytes_;
  }

  const std::size_t matrix_bytes_;
  storage memory_;  // none if there is a file
  std::optional<shale::detail::scratch_file> file_;
};

}  // namespace shale::ops
