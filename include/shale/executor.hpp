// The executor: threads, memory budget, pool, cancellation and progress of engine calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace [[gnu::visibility("default")]] shale {

class memory_pool;
namespace detail {
struct executor_access;  // src/parallel/executor/executor_state.hpp
}

/// Receives the progress of engine calls.
class progress_sink {
 public:
  virtual ~progress_sink() = default;

  /// The engine has processed `done_bytes` of the `total_bytes` of a pass over operands; an element
  /// of a pass without operands (`sum(arange(n))`) counts 8 bytes. It calls this about a hundred
  /// times in a pass, with rising numbers. A call that needs several passes (`x - mean(x)`) reports
  /// each from the start, with its own total. Calls never overlap: reports that come while the sink
  /// is busy are dropped, so that no thread waits. At its end, a pass reports the total, unless the
  /// sink is still busy with an earlier report. Calls that are made inside a pass on the same
  /// executor are not reported: by kernels, by tile sources, and by the sink, which may call the
  /// engine. `apply_in_order` reports nothing.
  /// Throws   an exception of the sink ends the reported engine call, which throws it
  virtual void advance(std::uint64_t done_bytes, std::uint64_t total_bytes) = 0;
};

/// Whether engine calls compare dense arrays of containers with their checksums. Chunked arrays are
/// always compared.
enum class checksum_use : std::uint8_t {
  trusted,   ///< the bytes of mapped arrays are used without a check
  compared,  ///< each segment of 1 MiB is compared once, before its first use, while a file is open
};

/// Options of an executor. The defaults suit the machine.
struct executor_options {
  /// Threads that compute for one caller, including its own: 1 to executor::threads_max. 0 means
  /// one for each processor that this process may use.
  int threads = 0;

  /// The most bytes that calls hold at once for windows of mapped files, decoded tiles and scratch
  /// memory. Up to an eighth of it holds decoded chunks from one call to the next (forget_chunks).
  /// It does not limit results, or operands that are held as a whole. One thread may exceed a
  /// budget of a few MiB (docs/caveats.md). A call that streams trims the pool if the pool's idle
  /// memory does not fit into the budget too. 0 means half of the smaller of the machine's
  /// available memory and the cgroup's limit, read at construction; 1 GiB if neither is known.
  std::size_t memory_bytes = 0;

  /// The pool for temporaries and results; null means the default pool. It must outlive the
  /// executor.
  memory_pool* pool = nullptr;

  /// Receives progress; may be null. It must outlive the executor.
  progress_sink* progress = nullptr;

  /// How dense arrays are checked. Comparing makes the first read of an array slower: by 0 to 15 %
  /// from a disk, by 40 to 50 % from the page cache (measured; docs/caveats.md).
  checksum_use checksums = checksum_use::trusted;
};

/// Counters of an executor since its construction, over all calls. A call that ends by an exception
/// has counted all of its bytes, a part of them or none.
struct executor_statistics {
  std::uint64_t passes = 0;  ///< over operands; some calls need several, as `x - mean(x)` does
  /// Pieces of work that threads took. Comparing the checksums of operands does not count.
  std::uint64_t tiles = 0;
  std::uint64_t bytes_read = 0;     ///< operand bytes: elements of tensors, whole tiles of sources
  std::uint64_t bytes_written = 0;  ///< result bytes, counted in the same way
  /// The most bytes that were held at once for temporaries, windows and chunks kept decoded.
  std::uint64_t scratch_bytes_peak = 0;
  std::uint64_t windows = 0;          ///< windows of streamed files
  std::uint64_t windows_dropped = 0;  ///< windows whose pages were released after use
  /// Tiles of mapped operands that were copied to memory: against storage order, or with halos.
  std::uint64_t mapped_tiles = 0;
  std::uint64_t tiles_decoded = 0;      ///< tiles loaded from tile sources
  std::uint64_t stored_bytes_read = 0;  ///< the size of those tiles in their files

  /// Chunks that a call needed and found decoded; they count neither as decoded nor as read.
  std::uint64_t tiles_found = 0;
};

/// A budget of threads and memory. Engine calls use the one that their thread is bound to:
///
///   executor limited({.memory_bytes = std::size_t{1} << 30});
///   const executor::scope within(limited);
///   tensor total = eval(sum(volume));  // by `limited`
///
/// A thread that is bound to none uses `executor::shared()`.
/// Threads  several threads may use an executor at once. Each call is computed by the thread that
///          made it. At most `threads() - 1` helpers, which all calls of the executor share, join
///          when they are free. So a call never waits for a thread that is busy elsewhere, even if
///          kernels wait for locks or call other executors. If c threads call at once, at most
///          c + threads() - 1 threads compute; calls from inside a kernel add none.
///          Operations in memory that take one thread less than about 40 µs wake no helper
/// Cost     construction starts no thread; the first parallel call does
class executor {
 public:
  /// The largest number of threads of an executor.
  static constexpr int threads_max = 1024;

  /// An executor with the given options. For options of 0 it reads the limits of the machine.
  /// Throws   invalid_argument (threads below 0 or above threads_max), out_of_memory
  explicit executor(const executor_options& options = {});
  ~executor();
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  /// The executor of the process, with default options. It is made on first use, never destroyed.
  /// Throws   out_of_memory
  static executor& shared();

  class scope;

  /// The executor of the innermost scope of the calling thread, or else `shared()`. Kernels,
  /// progress sinks and tile sources that the engine calls, on any thread, get the one of the call.
  /// Throws   out_of_memory (as shared, if the thread is bound to none)
  /// Lifetime that of the scope
  static executor& current();

  /// An executor with the same threads, budget, cancellation and counters that takes temporaries
  /// and results from `pool`, as in `const executor::scope within(on.with_pool(pool));`.
  /// Cost     the copy of a shared pointer
  /// Lifetime it may outlive this executor, but not the pool
  executor with_pool(memory_pool& pool) const noexcept;

  /// As `with_pool`, but it takes another use of stored checksums instead of a pool.
  executor with_checksums(checksum_use use) const noexcept;

  /// The numbers that were given, or chosen at construction. There are fewer threads than given
  ///   - if the host program limits the threads of oneTBB;
  ///   - if oneTBB started before the first executor that has more threads than the machine has
  ///     CPUs. oneTBB then runs about 256 threads at most, or a few for each CPU if that is more.
  /// If the system refuses threads at the first parallel call, fewer of them help.
  int threads() const noexcept;
  std::size_t memory_bytes() const noexcept;

  /// The pool for temporaries and results.
  memory_pool& pool() const noexcept;

  checksum_use checksums() const noexcept { return checksums_; }

  /// Gives back the memory of chunks that are kept decoded. Reads of small parts of chunked arrays
  /// keep the chunks that they decode, so that reads of other parts find them. They take at most an
  /// eighth of the budget, no more than running calls leave of it, and at most an eighth of the
  /// default pool's limit, if it has one; the least recently used chunks are evicted first. The
  /// chunks of a container are released with its last handle, and all chunks with the executor. A
  /// kept chunk is the one that the reader's generation stores, whatever was committed since it was
  /// decoded. It was compared with its checksum then, and is not compared again. Its memory is that
  /// of the default pool; if that has no room, the chunk is decoded into the pool of the call, and
  /// not kept.
  /// Threads  any, at any time
  void forget_chunks() noexcept;

  /// The memory that kept chunks take now: the bytes of their elements, and 1 KiB for each chunk.
  std::size_t kept_chunk_bytes() const noexcept;

  /// The counters. Running calls go on meanwhile, so the numbers may be of slightly different
  /// moments.
  executor_statistics statistics() const noexcept;

  /// After `cancel`, every running call on this executor, and every new one until `resume`, throws
  /// `cancelled` at its next tile.
  void cancel() noexcept;
  void resume() noexcept;
  bool cancelled() const noexcept;

 private:
  struct implementation;  // src/parallel/executor/executor_state.hpp
  friend struct detail::executor_access;

  executor(std::shared_ptr<implementation> shared, memory_pool& pool,
           checksum_use checksums) noexcept;

  std::shared_ptr<implementation> implementation_;
  memory_pool* pool_;
  checksum_use checksums_;
};

/// Binds an executor to the calling thread from its construction to its destruction. Scopes nest:
/// the innermost one counts.
/// Cost     the copy of a shared pointer
/// Threads  the thread that made it destroys it, in reverse order. Threads that the caller starts
///          meanwhile are not bound
/// Lifetime keeps the threads, budget and counters of the executor alive, also of a temporary one,
///          but neither its pool nor its progress sink
class [[nodiscard]] executor::scope {
 public:
  explicit scope(const executor& on) noexcept;
  ~scope();
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;

 private:
  executor on_;
  executor* const outer_;
};

}  // namespace shale
