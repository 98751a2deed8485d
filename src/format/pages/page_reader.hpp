// Reads metadata of one generation from its file, and verifies it: the root page, tree pages, long
// values, and other bytes that have a checksum of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/bytes/types.hpp"
#include "format/os/file_system.hpp"
#include "format/pages/page_cache.hpp"
#include "format/pages/root_page.hpp"
#include "format/pages/superblock.hpp"
#include "format/pages/tree.hpp"

namespace shale::format {

/// Threads  safe, except `extend`
/// Lifetime `file`, `path` and `cache` must outlive it
class page_reader final : public page_source {
 public:
  /// References must lead to bytes before `end_of_file`, where the generation's file ends. `path`
  /// is for messages.
  page_reader(open_file& file, const std::string& path, page_cache& cache,
              std::uint64_t end_of_file) noexcept
      : file_(&file), path_(&path), cache_(&cache), end_of_file_(end_of_file) {}

  std::shared_ptr<const page> load_page(const page_ref& ref) override;
  std::vector<std::byte> load_overflow(const overflow_ref& ref) override;
  [[noreturn]] void fail(const page_ref& ref, const std::string& problem) override;

  /// The root page that a superblock refers to. Throws corrupt, io.
  root_fields load_root(const superblock& fields);

  /// The bytes, if their checksum is right. `part` names them in messages. Throws corrupt, io.
  std::vector<std::byte> load_verified(const extent& range, const checksum128& checksum,
                                       const char* part);

  /// Reads the bytes in pieces of bounded size, because their number comes from the file. The
  /// checksum is compared after the last piece: if it is wrong, the caller must not use anything
  /// that `body` has computed. Throws corrupt, io.
  void scan(const extent& range, const checksum128& checksum, const char* part,
            const std::function<void(bytes_view piece)>& body);

  /// A writer has written this page there: it need not be read and verified later.
  void keep_written(const page_ref& ref, const page& written);

  std::uint64_t end_of_file() const noexcept { return end_of_file_; }

  /// Moves the end of the file. A transaction calls it, because it reads back long values that it
  /// has written after the end of its base generation. Not safe beside other calls.
  void extend(std::uint64_t end_of_file) noexcept { end_of_file_ = end_of_file; }

 private:
  void read_verified(const extent& range, const checksum128& checksum, const char* part,
                     bytes_span into);
  void require_checksum(const extent& range, const checksum128& stored, const checksum128& computed,
                        const char* part) const;
  void require_inside(const extent& range, std::uint64_t alignment, const char* part) const;

  open_file* file_;
  const std::string* path_;
  page_cache* cache_;
  std::uint64_t end_of_file_;
};

}  // namespace shale::format
