#include "array/transaction/changes/transaction_end.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "array/transaction/changes/commit_checksums.hpp"
#include "parallel/executor/call_scope.hpp"
#include "shale/error.hpp"

namespace shale::arrays {

// ---- operations that run ----------------------------------------------------------------------

// change.6. `advice` goes into the message.
void transaction_end::require_outside_of_writes(const char* advice) const {
  if (parallel::call_scope::inside(&owner_))
    throw error(errc::invalid_argument, "a write of this transaction is not finished",
                {fmt::format("file {}, generation {}", owner_.path(), owner_.generation), advice});
}

void transaction_end::close(operation_gate& gate) noexcept {
  const auto state = owner_.locks.lock_own_state();
  gate.close();
}

// change.2: lets no operation begin, and waits for those that have begun. A running write fails at
// its next chunk, so it ends early.
void transaction_end::end_operations() noexcept {
  running_operations& operations = owner_.operations;
  close(operations.writes());
  close(operations.chunks());
  operations.writes().wait_for_visits();
  operations.chunks().wait_for_visits();
}

// ---- commit -----------------------------------------------------------------------------------

// Makes the mappings read-only, and computes the checksums of what was written.
void transaction_end::finish_mappings() {
  written_arrays& written = owner_.written;
  // This check comes first: bytes that the system has dropped must not be checksummed.
  owner_.inner->check_written();
  written.check_mappings();
  written.make_read_only();          // change.3
  for (const auto& entry : written)  // clang 14 captures no binding
    if (entry.second->record.is_dense())
      with_context([&] { return fmt::format("checksum '{}'", entry.first); },
                   [&] { store_checksums(owner_, *entry.second); });
}

void transaction_end::publish() {
  finish_mappings();
  owner_.pipeline->drain();  // one thread publishes at a time
  written_arrays& written = owner_.written;
  const auto state = owner_.locks.lock_own_state();
  owner_.inner->commit({.after_sync = [&] { written.check_mappings(); },
                        .before_release =
                            [&](format::commit_outcome outcome) {
                              if (outcome == format::commit_outcome::durable) keep_mappings();
                              written.detach_mappings();
                            }});
}

// If a tensor of the caller shows a mapping, the mapping must pin the generation. That is possible
// only after the generation is published, so this call waits then. Other mappings end at once, in
// `end` (pipeline.6): nobody shows them, and `finish_mappings` has checked them for lost bytes.
// From then on only the file can lose bytes, and publishing checks its length.
std::shared_ptr<commit_state> transaction_end::publish_later() {
  if (owner_.written.any_held_by_others()) {
    auto ended = std::make_shared<commit_state>(owner_.generation);
    publish();
    ended->succeed();
    return ended;
  }
  finish_mappings();
  const auto state = owner_.locks.lock_own_state();
  return owner_.pipeline->hand_over(*owner_.inner);
}

// Waits for the writes that have begun, and ends the transaction by `last_step`.
template <class LastStep>
void transaction_end::end_by(LastStep&& last_step) {
  require_outside_of_writes(
      "commit was called from inside it, and would wait for itself: commit after it");
  auto changes = owner_.locks.lock_changes();
  owner_.require_active();
  close(owner_.operations.writes());
  changes.unlock();                              // change.6
  owner_.operations.writes().wait_for_visits();  // running writes store the rest of their chunks
  end_operations();  // single chunk operations may still run outside writes
  changes.lock();
  with_context([&] { return "change " + owner_.path(); },
               [&] {
                 try {
                   owner_.require_not_aborted();
                   last_step();
                 } catch (...) {
                   end();
                   throw;
                 }
                 end();
               });
}

std::uint64_t transaction_end::commit() {
  end_by([&] { publish(); });
  return owner_.generation;
}

std::shared_ptr<commit_state> transaction_end::commit_async() {
  std::shared_ptr<commit_state> state;
  end_by([&] { state = publish_later(); });
  return state;
}

// change.4, once the generation is durable. A tensor of the caller may still show a mapping of this
// transaction. The mapping stays and pins the generation. If that fails, `detach_mappings` cuts the
// mapping off from the file.
void transaction_end::keep_mappings() noexcept {
  std::optional<format::generation_view> newest;
  for (const auto& [name, array] : owner_.written) {
    if (!array->is_held_by_others()) {
      array->bytes = storage();
      continue;
    }
    try {
      if (!newest) newest = owner_.readers->latest();
      // The name may lead to another file by now.
      if (newest->file() == owner_.inner->file() && newest->generation() == owner_.generation)
        array->keep_mapping(*newest);
    } catch (...) {
      // No pin could be taken. The commit is durable, but these tensors are detached.
    }
  }
}

// ---- replace_by -------------------------------------------------------------------------------

void transaction_end::replace_by(const std::string& other) {
  require_outside_of_writes("replace_by was called from inside it, and would wait for itself");
  auto changes = owner_.locks.lock_changes();
  owner_.require_active();
  if (other.empty())
    throw error(errc::invalid_argument, "the path of the other container is empty");
  // A relative path begins in the present working directory, which may differ from the one in which
  // the container was opened.
  std::error_code unknown;
  const std::string there = std::filesystem::absolute(other, unknown).string();
  if (unknown)
    throw error::from_errno(code_for_errno(unknown.value()),
                            "the working directory cannot be found", unknown.value(),
                            {"file " + other});
  close(owner_.operations.writes());
  changes.unlock();  // change.6
  end_operations();
  changes.lock();
  try {
    owner_.require_not_aborted();
    owner_.pipeline->drain();  // what was committed before stays with the old file
    const auto state = owner_.locks.lock_own_state();
    owner_.written.detach_mappings();  // whether it succeeds or fails, the transaction ends
    owner_.inner->replace_by(there);
  } catch (...) {
    end();
    throw;
  }
  end();
}

// ---- abort ------------------------------------------------------------------------------------

void transaction_end::abort() noexcept {
  if (!owner_.locks.are_of_this_process()) {  // the parent goes on with it
    // Nothing destroys this object in the child: the tiles and the transaction own each other, and
    // only `end` separates them. So its pin ends here.
    owner_.base.let_go_in_child();
    return;
  }
  running_operations& operations = owner_.operations;
  if (parallel::call_scope::inside(&owner_)) {
    operations.ask_for_abort();
    close(operations.writes());
    close(operations.chunks());
    return;
  }
  auto changes = owner_.locks.lock_own_changes();
  if (!goes_on()) return;
  operations.ask_for_abort();
  close(operations.writes());
  changes.unlock();  // change.6
  end_operations();
  changes.lock();
  end();
}

bool transaction_end::goes_on() const noexcept {
  const auto state = owner_.locks.lock_own_state();
  return owner_.inner.has_value();
}

// Detaches the mappings before it releases the writer lock, because another writer may then use
// their space.
void transaction_end::end() noexcept {
  const auto state = owner_.locks.lock_own_state();
  owner_.written.detach_mappings();
  owner_.written.clear();
  owner_.base.let_go();  // nothing reads the base generation any more
  auto& inner = owner_.inner;
  if (!inner) return;
  if (inner->active()) inner->abort();
  inner.reset();
  owner_.pipeline->ended();
}

}  // namespace shale::arrays
