// The stored checksums of a dense array of a generation, read once. Segments of mapped arrays are
// compared with them. The process remembers which segments it has compared, so that each is
// compared once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/generations/generation_view.hpp"
#include "storage/blocks/segment_checksums.hpp"
#include "storage/system/long_turn.hpp"

namespace shale::arrays {

/// Cost     the first call of a member reads and verifies all of the array's checksums (8 bytes per
///          segment). `compare` keeps them. `read_sums` keeps them if they take at most
///          `kept_bytes_max`; otherwise each later call reads the checksums that it returns
/// Threads  every member may be called from any thread
class mapped_checksums final : public detail::segment_checksums {
 public:
  mapped_checksums(const format::generation_view& view, const format::array_record& record,
                   std::string label);
  ~mapped_checksums() override;

  void compare(byte_range range) override;

  /// The checksums of `count` segments from `first` on. They are verified when this object reads
  /// them for the first time.
  /// Throws   corrupt, io: then the next call tries again
  std::vector<std::uint64_t> read_sums(std::uint64_t first, std::uint64_t count);

 private:
  static constexpr std::uint64_t kept_bytes_max = std::uint64_t{8} << 20;  // for an array of 1 TiB

  struct loaded_sums;
  const loaded_sums& load();

  const format::generation_view view_;
  const format::array_record record_;
  const std::string label_;
  detail::long_turn loading_;
  std::unique_ptr<const loaded_sums> owned_;
  std::atomic<const loaded_sums*> loaded_ = nullptr;
  std::atomic<bool> verified_ = false;
};

/// The checksums that a mapping of the array in a pinned generation carries; null if the array has
/// none.
std::shared_ptr<mapped_checksums> mapped_checksums_of(const format::generation_view& view,
                                                      const format::array_record& record,
                                                      const std::string& label);

}  // namespace shale::arrays
