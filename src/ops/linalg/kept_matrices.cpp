#include "ops/linalg/kept_matrices.hpp"

#include <cstdint>
#include <cstring>

#include "core/saturating.hpp"

namespace shale::ops {

kept_matrices::kept_matrices(std::size_t matrix_bytes, index_t count, executor& on)
    : matrix_bytes_(matrix_bytes) {
  const std::uint64_t bytes =
      shale::detail::saturating_mul(matrix_bytes, static_cast<std::uint64_t>(count));
  if (bytes > on.memory_bytes() / 8) file_.emplace(bytes);
  else memory_ = storage::allocate(static_cast<std::size_t>(bytes), &on.pool());
}

void kept_matrices::write(index_t number, const std::byte* from) {
  if (file_) file_->write({from, matrix_bytes_}, offset_of(number));
  else std::memcpy(memory_.data() + offset_of(number), from, matrix_bytes_);
}

void kept_matrices::read(index_t number, std::byte* to) const {
  if (!file_) {
    std::memcpy(to, memory_.data() + offset_of(number), matrix_bytes_);
    return;
  }
  file_->check();  // nobody else asks whether the bytes that were written are still there
  file_->read({to, matrix_bytes_}, offset_of(number));
}

}  // namespace shale::ops
