// Hands work to oneTBB's threads. No other file does.
#pragma once

#include <tbb/task_arena.h>

namespace shale::parallel {

/// Makes the arena ready for `enqueue`.
/// Throws   the exceptions of oneTBB; the arena must not be used after one
void start(tbb::task_arena& arena);

/// Leaks an arena that must be neither used nor destroyed, and tells LeakSanitizer that this is
/// intended.
void leak(tbb::task_arena* arena) noexcept;

/// Returns at once. A thread of the arena calls `body(context)` as soon as it is free. `body` must
/// not throw. A `body` may wait inside oneTBB, for example in a parallel algorithm that the user's
/// kernel calls. Its thread runs no other `body` during that wait, because the first one may hold
/// locks and scratch memory that the second one needs.
/// Throws   bad_alloc, or runtime_error if a thread cannot be started; it is then unknown whether
///          `body` will be called, and the arena must not be used again
///
/// This file is built without ThreadSanitizer, also in a build with it: the oneTBB library is not
/// instrumented, so the instrumented half in its headers would report false races. Callers order
/// the data that they share with `body` by their own locks and atomics.
void enqueue(tbb::task_arena& arena, void (*body)(void*), void* context);

}  // namespace shale::parallel
