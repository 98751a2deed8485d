// What coding the chunks of an array costs without an array around it.
#pragma once

#include <string>
#include <vector>

#include "container/data_sets.hpp"
#include "support/bare_loops.hpp"
#include "support/plain_codec.hpp"

namespace shale::bench {

/// Seconds of coding all chunks of a data set on as many threads as Shale has, scaled from those of
/// up to 256 chunks, which are spread over the array and lie in memory one after the other.
class coding_limits {
 public:
  coding_limits(const container_settings& chosen, const data_set& data, const array& stored);

  /// Shale alone: `tile_source::store` into a container in memory, without a commit, and
  /// `tile_source::load` of chunks in the page cache into a tensor of each thread.
  double encode_alone();
  double decode_alone();

  /// A plain shuffle and zstd, of the same chunks.
  double encode_plainly();
  double decode_plainly();

 private:
  template <class Task>
  double seconds_of_all(const Task& task);

  const data_set& data_;
  const std::string path_;
  thread_crew crew_;
  array stored_;
  std::vector<dims> places_;
  std::vector<tensor> chunks_;
  std::vector<std::vector<std::byte>> bytes_;
  double part_ = 1;                  ///< of all chunks
  std::vector<plain_codec> codecs_;  ///< one for each thread, as the next
  std::vector<tensor> decoded_;
};

}  // namespace shale::bench
