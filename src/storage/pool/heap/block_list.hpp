// The blocks of a heap in a list, mapping by mapping; in a mapping, in order of their addresses.
#pragma once

#include "storage/pool/heap/block.hpp"

namespace shale::detail {

class block_list {
 public:
  pool_block* first() const noexcept { return first_; }
  pool_block* last() const noexcept { return last_; }

  /// Inserts a block after `before`; as the first one if `before` is null.
  void insert_after(pool_block* before, pool_block& fresh) noexcept {
    fresh.before = before;
    fresh.after = before != nullptr ? before->after : first_;
    (before != nullptr ? before->after : first_) = &fresh;
    (fresh.after != nullptr ? fresh.after->before : last_) = &fresh;
  }

  void erase(pool_block& gone) noexcept {
    (gone.before != nullptr ? gone.before->after : first_) = gone.after;
    (gone.after != nullptr ? gone.after->before : last_) = gone.before;
  }

 private:
  pool_block* first_ = nullptr;
  pool_block* last_ = nullptr;
};

}  // namespace shale::detail
