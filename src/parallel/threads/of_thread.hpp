// Gives each thread an object of its own, which lives as long as the thread.
#pragma once

#include <memory>
#include <new>

#include "storage/system/thread_end.hpp"

namespace shale::parallel {

/// The calling thread's object of type T. It is made when the thread first asks for it.
template <class T>
class of_thread {
 public:
  /// Returns  null if there is no memory for the object or if the thread is ending
  static T* find() noexcept { return object_ != nullptr || thread_ends_ ? object_ : make(); }

 private:
  class owned final : public detail::thread_owned {
   public:
    ~owned() override {
      if (object_ != &object) return;  // it was not left to the thread
      object_ = nullptr;
      thread_ends_ = true;
    }
    T object;
  };

  [[gnu::noinline]] static T* make() noexcept {
    std::unique_ptr<owned> made(new (std::nothrow) owned);
    if (made && made->leave_to_thread()) object_ = &made.release()->object;
    return object_;
  }

  // Both are trivially destructible, so that calls can be made while the thread ends.
  static inline constinit thread_local T* object_ = nullptr;
  static inline constinit thread_local bool thread_ends_ = false;
};

}  // namespace shale::parallel
