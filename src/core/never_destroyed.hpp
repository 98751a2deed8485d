// Holds an object that is never destroyed. The host program's static objects and atexit handlers
// may use it until the process ends: they may run after the destructors of static objects that were
// made later.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace shale::detail {

/// Holds a T in place, so that making it takes no heap memory.
template <class T>
class never_destroyed {
 public:
  template <class... Arguments>
  explicit never_destroyed(Arguments&&... arguments) {
    ::new (static_cast<void*>(bytes_)) T(std::forward<Arguments>(arguments)...);
  }
  never_destroyed(const never_destroyed&) = delete;
  never_destroyed& operator=(const never_destroyed&) = delete;

  T& get() noexcept { return *std::launder(reinterpret_cast<T*>(bytes_)); }

 private:
  alignas(T) std::byte bytes_[sizeof(T)];
};

}  // namespace shale::detail
