// Under what engine calls run: threads, a memory budget, a pool, cancellation and progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace [[gnu::visibility("default")]] shale {

class memory_pool;

/// Told how far a call has come.
class progress_sink {
 public:
  virtual ~progress_sink() = default;

  /// `done` of `total` bytes of operands have been worked through; never called concurrently, at
  /// most some hundred times a call.
  virtual void advance(std::uint64_t done_bytes, std::uint64_t total_bytes) = 0;
};

/// What an executor is made with; every default asks the machine.
struct executor_options {
  /// Threads that compute; 0: one for each processor this process may use.
  int threads = 0;

  /// What the engine may hold resident for its operands and temporaries, with what lies idle in its
  /// pool; 0: half of the smaller of the machine's available memory and the cgroup's limit, read at
  /// construction.
  std::size_t memory_bytes = 0;

  /// Where temporaries come from; null: the default pool.
  memory_pool* pool = nullptr;

  /// Told of progress; may be null. Must outlive the executor.
  progress_sink* progress = nullptr;
};

/// What the engine did since construction; sums over calls.
struct executor_statistics {
  std::uint64_t calls = 0;
  std::uint64_t tiles = 0;
  std::uint64_t bytes_read = 0;     ///< operand bytes: elements of tensors, whole tiles of sources
  std::uint64_t bytes_written = 0;  ///< result bytes, likewise
  std::uint64_t scratch_bytes_peak = 0;  ///< most temporary bytes held at once
  std::uint64_t windows = 0;             ///< streaming windows visited
  std::uint64_t windows_dropped = 0;     ///< windows whose pages were given back behind the work
  std::uint64_t mapped_tiles = 0;        ///< tiles read of mapped operands, across their grain
  std::uint64_t tiles_decoded = 0;       ///< tiles loaded from tile sources
  std::uint64_t stored_bytes_read = 0;   ///< what those tiles take in their files
};

/// A budget of threads and memory. Calls that are not given one use `executor::shared()`.
/// Threads  calls from several threads share the budget; nested calls (from inside a kernel) run in
///          the same arena and do not oversubscribe
/// Cost     construction starts no thread; the first parallel call does
class executor {
 public:
  /// Reads the machine's limits where `options` leaves them open.
  explicit executor(const executor_options& options = {});
  ~executor();
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  /// The process's executor with default options, made on first use.
  static executor& shared();

  /// The same threads, budget, cancellation and counters with temporaries and results from `pool`:
  /// for single calls, `auto mine = on.with_pool(pool); sum(values, {}, &mine);`. Costs no more
  /// than a shared pointer. May outlive this executor, not the pool.
  executor with_pool(memory_pool& pool) const noexcept;

  /// As given, or as chosen for the machine at construction.
  int threads() const noexcept;
  std::size_t memory_bytes() const noexcept;

  /// Where temporaries come from.
  memory_pool& pool() const noexcept;

  /// Counted without stopping calls that are running: numbers may be of slightly different moments.
  executor_statistics statistics() const noexcept;

  /// Makes every call that is running on this executor, and every later one until `resume`, throw
  /// `cancelled` at its next tile.
  void cancel() noexcept;
  void resume() noexcept;
  bool cancelled() const noexcept;

  /// Private to the engine.
  struct implementation;  // src/parallel/executor_state.hpp
  implementation& state() const noexcept { return *implementation_; }

 private:
  executor(std::shared_ptr<implementation> shared, memory_pool& pool) noexcept;

  std::shared_ptr<implementation> implementation_;
  memory_pool* pool_;
};

}  // namespace shale
