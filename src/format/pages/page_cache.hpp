// Keeps pages of one file in memory: pages that were read and verified, and pages that this process
// wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>

#include "format/bytes/types.hpp"
#include "format/pages/page.hpp"
#include "format/pages/root_page.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::format {

/// Finds pages by their references. A reference holds the page's checksum, so it names one content
/// for ever: cached pages never become stale.
/// Threads  safe
class page_cache {
 public:
  /// Null if the page is not in the cache.
  std::shared_ptr<const page> find(const page_ref& ref);

  /// Adds a sound tree page. Evicts the least recently used page if the cache is full.
  void insert(const page_ref& ref, std::shared_ptr<const page> verified);

  /// The same for root pages. Only the last one that was inserted is kept, as its fields.
  std::optional<root_fields> find_root(std::uint64_t generation, const page_ref& ref);
  void insert_root(std::uint64_t generation, const page_ref& ref, const root_fields& verified);

 private:
  static constexpr std::size_t pages_max = 2048;  // 8 MiB

  struct entry {
    page_ref ref;
    std::shared_ptr<const page> content;
  };
  struct root_entry {
    std::uint64_t generation = 0;
    page_ref ref;
    root_fields fields;
  };
  struct hash {
    std::size_t operator()(const page_ref& ref) const noexcept {
      return static_cast<std::size_t>(ref.checksum.low ^ ref.offset);
    }
  };

  shale::detail::fork_safe_mutex mutex_;
  std::list<entry> recent_;  // most recently used first
  std::unordered_map<page_ref, std::list<entry>::iterator, hash> by_ref_;
  std::optional<root_entry> root_;
};

}  // namespace shale::format
