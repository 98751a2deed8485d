// The one place where work is handed to oneTBB's threads.
#pragma once

#include <tbb/task_arena.h>

namespace shale::parallel {

/// Calls `body(context, worker)` for every worker in [0, workers), each once, on threads of the
/// arena and the caller's own; returns when all have. `body` must not throw. A thread that waits
/// here never picks up an outer call's work, whose scratch memory it may already use.
///
/// Built without ThreadSanitizer even where all else is built with it: oneTBB comes without
/// instrumentation, and what its headers would add of it looks like races. Callers order what they
/// share with their workers by atomics of their own.
void run_workers(tbb::task_arena& arena, int workers, void (*body)(void*, int), void* context);

}  // namespace shale::parallel
