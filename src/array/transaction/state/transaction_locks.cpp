#include "array/transaction/state/transaction_locks.hpp"

#include "shale/error.hpp"

namespace shale::arrays {

std::unique_lock<std::mutex> transaction_locks::lock(std::mutex& mutex) const {
  if (!are_of_this_process())
    throw error(errc::invalid_argument, "the transaction belongs to another process",
                {"this one was forked from it: begin one of its own on file " + path_});
  return std::unique_lock(mutex);
}

}  // namespace shale::arrays
