#include "array/elements/verification.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "format/container/verify.hpp"
#include "parallel/executor/tile_loop.hpp"

namespace shale::arrays {

namespace {

// The number of tasks that the threads get at once. It gives enough work between two barriers and
// bounds the list of tasks.
constexpr std::size_t batch_tasks = 1024;

// Collects tasks and checks them a batch at a time; findings keep the order of the tasks.
class parallel_check {
 public:
  parallel_check(format::verifier& work, executor& on)
      : work_(work), on_(on), buffers_(static_cast<std::size_t>(on.threads())) {}

  void add(format::verify_task&& task) {
    tasks_.push_back(std::move(task));
    if (tasks_.size() >= batch_tasks) run();
  }

  void run() {
    std::vector<std::optional<finding>> found(tasks_.size());
    parallel::parallel_for_tiles(
        on_, static_cast<index_t>(tasks_.size()), [&](index_t number, int worker) {
          const auto index = static_cast<std::size_t>(number);
          found[index] = work_.check(tasks_[index], buffers_[static_cast<std::size_t>(worker)]);
        });
    for (auto& damage : found)
      if (damage) findings_.push_back(std::move(*damage));
    tasks_.clear();
  }

  std::vector<finding> take() { return std::move(findings_); }

 private:
  format::verifier& work_;
  executor& on_;
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<format::verify_task> tasks_;
  std::vector<finding> findings_;
};

}  // namespace

verification verify(const format::generation_view& view, executor& on) {
  format::verifier work(view);
  parallel_check data(work, on);
  work.check_metadata([&](format::verify_task&& task) { data.add(std::move(task)); });
  data.run();
  for (auto& found : data.take()) work.add(std::move(found));
  return work.finish();
}

}  // namespace shale::arrays
