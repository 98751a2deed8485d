#include "parallel/worker_team.hpp"

#include <tbb/parallel_for.h>

namespace shale::parallel {

void run_workers(tbb::task_arena& arena, int workers, void (*body)(void*, int), void* context) {
  arena.execute([&] {
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(
          0, workers, [body, context](int worker) { body(context, worker); },
          tbb::simple_partitioner());
    });
  });
}

}  // namespace shale::parallel
