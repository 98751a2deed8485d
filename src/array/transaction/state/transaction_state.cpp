#include "array/transaction/state/transaction_state.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/printable.hpp"
#include "shale/error.hpp"

namespace shale::arrays {

transaction_state::transaction_state(std::shared_ptr<reader_file> opened,
                                     std::shared_ptr<commit_pipeline> granting,
                                     format::transaction begun, format::generation_view pinned)
    : readers(std::move(opened)),
      pipeline(std::move(granting)),
      generation(begun.generation()),
      locks(readers->path()),
      inner(std::move(begun)),
      base(std::move(pinned)) {}

std::string transaction_state::label(std::string_view name) const {
  return fmt::format("{} in {}", detail::in_quotes(name), path());
}

void transaction_state::require_open(const operation_gate& gate) const {
  if (gate.closed())
    throw error(errc::invalid_argument, "the transaction has ended",
                {fmt::format("file {}, generation {}", path(), generation),
                 "begin another one to change more"});
}

// Another thread may have aborted, and ended, the transaction while this one waited for writes.
void transaction_state::require_not_aborted() const {
  if (operations.abort_asked())
    throw error(errc::invalid_argument, "the transaction was aborted during a write",
                {fmt::format("file {}, generation {}", path(), generation)});
}

void transaction_state::refuse_commit() noexcept {
  if (!locks.are_of_this_process()) return;
  const auto state = locks.lock_own_state();
  if (inner) inner->refuse_commit();
}

}  // namespace shale::arrays
