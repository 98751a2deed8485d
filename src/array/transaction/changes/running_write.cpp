#include "array/transaction/changes/running_write.hpp"

#include "array/transaction/changes/transaction_end.hpp"

namespace shale::arrays {

running_write::~running_write() {
  scope_.reset();
  visit_.reset();
  if (owner_.operations.abort_asked() && !parallel::call_scope::inside(&owner_))
    transaction_end(owner_).abort();
}

}  // namespace shale::arrays
