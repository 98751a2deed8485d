// Destroys objects that belong to one thread when the thread ends, but later than a thread_local
// object would be destroyed.
//
// A thread_local object with a destructor would be destroyed too early. Thread_local objects of the
// host program that were made before it, static objects and atexit handlers are destroyed or run
// later, and may still use the library. The destructor of a pthread key runs after those of the
// thread_local objects, and does not run at all in the thread that ends the process.
//
// Invariants
//   thread.1  an object that was left to a thread lives until the destructors of the thread's
//             thread_local objects have run; in the thread that ends the process, it is never
//             destroyed
#pragma once

namespace shale::detail {

/// Something that belongs to one thread.
class thread_owned {
 public:
  thread_owned() noexcept = default;
  thread_owned(const thread_owned&) = delete;
  thread_owned& operator=(const thread_owned&) = delete;
  virtual ~thread_owned() = default;

  /// Passes the object to the calling thread, which deletes it when it ends. Objects that were
  /// passed later are deleted first. A destructor may pass another object to the thread.
  /// Returns  false, and changes nothing, if the system has no memory to store it. (Registering the
  ///          destructor of a thread_local object would end the process in that case.)
  bool leave_to_thread() noexcept;

 private:
  friend struct thread_end;

  thread_owned* next_ = nullptr;
};

}  // namespace shale::detail
