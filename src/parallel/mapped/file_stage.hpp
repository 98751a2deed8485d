// Moves parts of a mapped tensor by the file's descriptor instead of its pages. A fault would read
// the neighbours of a page, too (up to 8 MiB on some machines), and a store makes a whole large page
// of the page cache dirty. The pieces of a part lie in a stage, one after the other.
#pragma once

#include <cstddef>
#include <optional>

#include "shale/memory_pool.hpp"
#include "shale/tensor.hpp"

namespace shale::parallel {

/// Threads  one at a time
class file_stage {
 public:
  /// The pieces of a part have at most so many bytes.
  file_stage(std::size_t bytes_max, memory_pool& pool) noexcept
      : bytes_max_(bytes_max), pool_(pool) {}

  /// Copies a part, which has elements and no broadcast axes, into `into`. Returns false if the
  /// bytes cannot be read in this way.
  bool read(const tensor& part, const tensor& into);

  /// Replaces the elements of a part. Returns false if its pieces are shorter than a page and less
  /// than a page apart, or cannot be written in this way; then some may have been written.
  bool write(const tensor& part, const tensor& from);

 private:
  tensor staged(const tensor& part, index_t gap_bytes);

  const std::size_t bytes_max_;
  memory_pool& pool_;
  std::optional<tensor> room_;
};

}  // namespace shale::parallel
