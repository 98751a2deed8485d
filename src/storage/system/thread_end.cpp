#include "storage/system/thread_end.hpp"

#include <pthread.h>

#include <atomic>
#include <utility>

#include "core/address_sanitizer.hpp"

#ifdef SHALE_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

namespace shale::detail {

struct thread_end {
  // The key's value in a thread is the first of a list.
  static void remove_all(void* first) noexcept {
    for (auto* object = static_cast<thread_owned*>(first); object != nullptr;)
      delete std::exchange(object, object->next_);
  }

  // Made when the library is loaded, so that no child is forked while another thread makes it.
  struct made_key {
    pthread_key_t key{};
    bool usable = ::pthread_key_create(&key, remove_all) == 0;
  };
  static made_key& made() noexcept {
    static made_key only;
    return only;
  }

  // A library that is unloaded takes `remove_all` with it.
  [[gnu::destructor]] static void unload() noexcept {
    if (std::exchange(made().usable, false)) ::pthread_key_delete(made().key);
  }
};

namespace {
[[maybe_unused]] const thread_end::made_key& made_at_load = thread_end::made();
}  // namespace

bool thread_owned::leave_to_thread() noexcept {
  const thread_end::made_key& made = thread_end::made();
  if (!made.usable) return false;
  next_ = static_cast<thread_owned*>(::pthread_getspecific(made.key));
  if (::pthread_setspecific(made.key, this) != 0) return false;
#ifdef SHALE_ADDRESS_SANITIZER
  // Only the thread points to the object. LeakSanitizer may look while the thread is ending, when
  // it no longer searches the thread's memory.
  __lsan_ignore_object(this);
#endif
  return true;
}

}  // namespace shale::detail
