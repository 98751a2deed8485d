// Checks everything that a generation refers to, and that its space map accounts for every byte of
// the file exactly once.
//
//   verifier work(view);
//   work.check_metadata(on_task);      // pages, descriptors, indexes, the space partition
//   for each task, on any thread:  work.check(task, buffer)
//   verification result = work.finish();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/bytes/types.hpp"
#include "format/generations/generation_view.hpp"
#include "shale/verification.hpp"

namespace shale::format {

/// A piece of data to be read and compared with its checksum.
struct verify_task {
  std::string array;
  std::uint64_t number = 0;    ///< of the chunk, or of the dense segment
  bool is_segment = false;     ///< dense segment, else chunk
  std::vector<extent> pieces;  ///< one for a chunk; a segment may lie in several extents
  std::uint64_t checksum = 0;
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
  /// All tasks together read no more bytes than the generation has, whatever the file says.
  /// Cost     O(metadata), plus memory for 16 bytes an extent
  void check_metadata(const std::function<void(verify_task&&)>& on_task);

  /// Reads one task's bytes through `buffer`, which it resizes to 1 MiB, and compares their
  /// checksum.
  std::optional<finding> check(const verify_task& task, std::vector<std::byte>& buffer) const;

  /// Adds a finding of `check` to the result.
  void add(finding&& found);

  verification finish();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Runs the whole check on the calling thread.
verification verify(const generation_view& view);

}  // namespace shale::format
