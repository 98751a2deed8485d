// Loops over plain arrays on several threads, with nothing around them: what the memory of this
// machine does at most. Work on tensors is compared with the loop that moves the same bytes.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace shale::bench {

/// How a loop stores: through the cache, or past it with non-temporal stores.
enum class stores { ordinary, nontemporal };

/// Threads that wait for work, so that a loop does not pay for starting them.
class thread_crew {
 public:
  explicit thread_crew(int threads);
  ~thread_crew();
  thread_crew(const thread_crew&) = delete;
  thread_crew& operator=(const thread_crew&) = delete;

  int threads() const noexcept { return threads_; }

  /// Calls `part(begin, end)` for equal parts of [0, count) on all threads, and waits for them. The
  /// parts begin at multiples of 1,024.
  void run(std::size_t count, const std::function<void(std::size_t, std::size_t)>& part);

  /// Calls `task(worker, k)` for each k below `count`, and waits for all. Workers are counted from
  /// 0; one that is free takes the next k. Tasks throw nothing.
  void run_each(std::size_t count, const std::function<void(int, std::size_t)>& task);

 private:
  struct state;
  void work(int worker);
  void on_all(const std::function<void(int)>& part);

  const int threads_;
  state* const state_;
};

/// out[i] = a mixture of in[...][i]; nothing is read if `in` is empty.
void bare_map(thread_crew& crew, stores how, std::span<float> out,
              std::span<const std::span<const float>> in);

/// Reads all elements; returns a number that depends on them.
float bare_read(thread_crew& crew, std::span<const float> in);

/// One thread's plain loops over arrays in the cache, which the compiler vectorises.
void bare_add(std::span<float> out, std::span<const float> a, std::span<const float> b);
double bare_sum(std::span<const float> in);  ///< in double precision, as Shale sums

}  // namespace shale::bench
