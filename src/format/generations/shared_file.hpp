// One opened container file, as its generations and its writer share it: the description that bytes
// are read and written through, the verified pages that were read from it, and the pins on its
// generations. Every user keeps it open, even after another file has taken its name.
#pragma once

#include <memory>
#include <string>

#include "format/bytes/range_set.hpp"
#include "format/bytes/types.hpp"
#include "format/generations/durable_slots.hpp"
#include "format/os/bound_path.hpp"
#include "format/os/file_system.hpp"
#include "format/os/pins.hpp"
#include "format/pages/page_cache.hpp"
#include "format/pages/page_reader.hpp"
#include "format/space/remembered_space.hpp"
#include "storage/files/write_back_record.hpp"

namespace shale::format {

struct shared_file {
  explicit shared_file(bound_path bound) : place(std::move(bound)), path(place.shown()) {}

  /// A reader for the pages of a generation whose file ends at `end_of_file`. It must not outlive
  /// this object.
  page_reader reader(std::uint64_t end_of_file) noexcept {
    return page_reader(*data, path, pages, end_of_file);
  }

  const bound_path place;
  const std::string path;           // as it was given, for messages
  std::unique_ptr<open_file> data;  // never holds a lock, because mappings keep descriptions alive
  file_identity identity;
  uuid id;
  page_cache pages;
  const std::shared_ptr<pin_set> pins = std::make_shared<pin_set>();

  /// What the last writer of this object knows.
  durable_slots durable;
  remembered_space unused;

  /// Where no page is left that a failed writer may have left in the cache. The writer that holds
  /// the lock has removed them; each writer starts with an empty set.
  range_set cleaned;

  /// Set if the file was opened for writing. It has failed once a write or a sync has failed.
  std::shared_ptr<shale::detail::write_back_record> write_back;
};

/// Opens the file that the name leads to, and checks its header.
/// Throws   not_found, access_denied, corrupt, unsupported, io
std::shared_ptr<shared_file> open_shared_file(const bound_path& place, open_access access);

}  // namespace shale::format
