// Functions for the helper processes of the storage tests: recognisable bytes, and requirements on
// failures: the error's text, and that nothing is left behind.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <string>

#include "shale/mapped_file.hpp"
#include "storage/faults/fault_guard.hpp"
#include "support/failures.hpp"
#include "support/helper_process.hpp"
#include "support/process_footprint.hpp"
#include "support/system_page.hpp"

namespace shale::test {

inline const std::size_t page = system_page_bytes();

inline unsigned char value_at(std::size_t offset) {
  return static_cast<unsigned char>(offset * 131 + offset / page);
}

inline unsigned char load(const storage& bytes, std::size_t offset) {
  return static_cast<unsigned char>(*const_cast<const volatile std::byte*>(bytes.data() + offset));
}

inline void put(storage& to, std::size_t offset, unsigned char value) {
  *const_cast<volatile std::byte*>(to.data() + offset) = static_cast<std::byte>(value);
}

/// Sets every byte from `first` on to a value that depends on its position.
inline void fill(storage& to, std::size_t first = 0) {
  for (std::size_t i = first; i < to.size_bytes(); ++i)
    to.data()[i] = static_cast<std::byte>(value_at(i));
}

/// The number of bytes, from the start on, that have the values of `fill`.
inline std::size_t filled_bytes(const storage& in) {
  std::size_t offset = 0;
  while (offset < in.size_bytes() && load(in, offset) == value_at(offset)) ++offset;
  return offset;
}

inline std::size_t size_of(const std::string& path) {
  struct stat about {};
  require(::stat(path.c_str(), &about) == 0, path + " exists");
  return static_cast<std::size_t>(about.st_size);
}

inline bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

inline std::string place(const std::string& path, std::size_t offset) {
  return "file " + path + ", byte " + std::to_string(offset);
}

/// Requires that `body` fails with `code` and that the message contains `path`.
inline void require_failure(const std::function<void()>& body, errc code, const std::string& path,
                            const std::string& operation, call_site caller = call_site::current()) {
  const std::string text = text_of(body);
  require(!text.empty(), operation + " fails", caller);
  require(text.find(std::string("[") + std::string(name(code)) + "]") != std::string::npos &&
              text.find(path) != std::string::npos,
          operation + " says " + std::string(name(code)) + " and " + path + "; got " + text,
          caller);
}

/// Runs `body` once, to create everything that is created only once, and again, to check that it
/// leaves nothing behind.
inline void require_no_leak(const std::function<void()>& body) {
  body();
  const auto before = process_footprint::now();
  const auto guarded = detail::guarded_ranges();
  for (int i = 0; i < 2; ++i) body();
  const auto after = process_footprint::now();
  require(before == after, "nothing leaks: " + to_string(before) + ", then " + to_string(after));
  require_equal(detail::guarded_ranges(), guarded, "guarded ranges");
}

/// A storage on another disk, which must stay unaffected.
class bystander {
 public:
  explicit bystander(const std::string& path) {
    storage made = create_file(path, 64 * page);
    fill(made);
    bytes_ = map_file(path);
  }
  void require_sound() const {
    require(code_of([&] { bytes_.check(); }) == errc{}, "another disk's storage is sound");
    require_equal(filled_bytes(bytes_), bytes_.size_bytes(), "bytes on another disk");
  }

 private:
  storage bytes_;
};

}  // namespace shale::test
