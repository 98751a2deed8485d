#include "parallel/threads/arena_tasks.hpp"

#include "core/address_sanitizer.hpp"

#ifdef SHALE_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

namespace shale::parallel {

namespace {

// The process may end before a task has begun. Until the task begins, the only pointer to its
// context lies in oneTBB's own memory, which LeakSanitizer does not search.
void expect_unfinished([[maybe_unused]] const void* context) noexcept {
#ifdef SHALE_ADDRESS_SANITIZER
  __lsan_ignore_object(context);
#endif
}

}  // namespace

void start(tbb::task_arena& arena) { arena.initialize(); }

void leak(tbb::task_arena* arena) noexcept { expect_unfinished(arena); }

void enqueue(tbb::task_arena& arena, void (*body)(void*), void* context) {
  expect_unfinished(context);
  arena.enqueue([body, context] { tbb::this_task_arena::isolate([&] { body(context); }); });
}

}  // namespace shale::parallel
