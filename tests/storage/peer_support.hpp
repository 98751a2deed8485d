// What the helper processes of this floor's tests share: bytes to know again, and what a failure
// has to say and to leave behind.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <string>

#include "shale/mapped_file.hpp"
#include "storage/fault_guard.hpp"
#include "support/failures.hpp"
#include "support/helper_process.hpp"
#include "support/process_footprint.hpp"

namespace shale::test {

inline constexpr std::size_t page = 4096;

inline unsigned char value_at(std::size_t at) {
  return static_cast<unsigned char>(at * 131 + at / page);
}

inline unsigned char load(const storage& from, std::size_t at) {
  return static_cast<unsigned char>(*const_cast<const volatile std::byte*>(from.data() + at));
}

inline void put(storage& to, std::size_t at, unsigned char value) {
  *const_cast<volatile std::byte*>(to.data() + at) = static_cast<std::byte>(value);
}

/// Gives every byte from `first` on a value that says where it is.
inline void fill(storage& to, std::size_t first = 0) {
  for (std::size_t i = first; i < to.size_bytes(); ++i)
    to.data()[i] = static_cast<std::byte>(value_at(i));
}

/// How many bytes from the start on are those of `fill`.
inline std::size_t filled_bytes(const storage& in) {
  std::size_t at = 0;
  while (at < in.size_bytes() && load(in, at) == value_at(at)) ++at;
  return at;
}

inline std::size_t size_of(const std::string& path) {
  struct stat about {};
  require(::stat(path.c_str(), &about) == 0, path + " exists");
  return static_cast<std::size_t>(about.st_size);
}

inline bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

inline std::string place(const std::string& path, std::size_t at) {
  return "file " + path + ", byte " + std::to_string(at);
}

/// Requires that `body` fails with `code`, and says `where`.
inline void require_failure(const std::function<void()>& body, errc code, const std::string& where,
                            const std::string& what, call_site at = call_site::current()) {
  const std::string text = text_of(body);
  require(!text.empty(), what + " fails", at);
  require(text.find(std::string("[") + std::string(name(code)) + "]") != std::string::npos &&
              text.find(where) != std::string::npos,
          what + " says " + std::string(name(code)) + " and " + where + "; got " + text, at);
}

/// Runs `body` once for what is made once, and then again to see whether it leaves anything behind.
inline void require_no_leak(const std::function<void()>& body) {
  body();
  const auto before = process_footprint::now();
  const auto guarded = detail::guarded_ranges();
  for (int i = 0; i < 2; ++i) body();
  const auto after = process_footprint::now();
  require(before == after, "nothing leaks: " + to_string(before) + ", then " + to_string(after));
  require_equal(detail::guarded_ranges(), guarded, "guarded ranges");
}

/// A storage on another disk, which nothing may touch.
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
