// Checks everything that a generation refers to, and that its space map accounts for every byte of
// the file exactly once.
//
//   verifier work(view);
//   work.check_metadata(on_task);      // pages, descriptors, indexes, the space partition
//   for each task, on any thread:  work.check(task, buffer)
//   verify_report sum = work.finish();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/bytes/types.hpp"
#include "format/generations/generation_view.hpp"
#include "shale/error.hpp"

namespace shale::format {

/// A piece of data to be read and compared with its checksum.
struct verify_task {
  std::string array;
  std::uint64_t number = 0;    ///< of the chunk, or of the dense segment
  bool is_segment = false;     ///< dense segment, else chunk
  std::vector<extent> pieces;  ///< one for a chunk; a segment may lie in several extents
  std::uint64_t checksum = 0;
};

struct verify_finding {
  errc code = errc::corrupt;  ///< corrupt or io
  std::string text;           ///< the damage and its place
};

struct verify_report {
  std::uint64_t generation = 0;
  std::uint64_t pages = 0;  ///< tree pages and overflow extents
  std::uint64_t arrays = 0;
  std::uint64_t chunks = 0;
  std::uint64_t data_bytes = 0;   ///< stored bytes of chunks and dense arrays
  std::uint64_t live_bytes = 0;   ///< fixed pages included: live + freed + free = file_bytes
  std::uint64_t freed_bytes = 0;  ///< used only by older generations, which may still have readers
  std::uint64_t free_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::vector<verify_finding> findings;
};

/// One walk through one generation.
/// Threads  `check` from any thread; the rest one at a time
class verifier {
 public:
  explicit verifier(generation_view view);
  verifier(verifier&&) noexcept;
  verifier& operator=(verifier&&) noexcept;
  ~verifier();

  /// Reads all metadata. Damage becomes a finding, not an exception; everything below a damaged
  /// page is skipped and named. `on_task` is called for every chunk and dense segment, in order.
  /// Cost     O(metadata), plus memory for 16 bytes an extent
  void check_metadata(const std::function<void(verify_task&&)>& on_task);

  /// Reads one task's bytes through `buffer`, which it resizes to 1 MiB, and compares their
  /// checksum.
  std::optional<verify_finding> check(const verify_task& task,
                                      std::vector<std::byte>& buffer) const;

  /// Adds a finding of `check` to the report.
  void add(verify_finding&& finding);

  verify_report finish();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Runs the whole check on the calling thread.
verify_report verify(const generation_view& view);

}  // namespace shale::format
