// Records which calls the running thread takes part in: calls that it made, and calls that it
// helps. A function that waits for a call to end checks first that its thread is not inside that
// call: the wait would never end.
#pragma once

namespace shale::parallel {

/// Marks the thread as inside the call `call`, from construction to destruction. Threads that work
/// on loops which this thread starts are marked too.
/// Threads  an object belongs to the thread that made it; objects of one thread are destroyed in
///          reverse order
class call_scope {
 public:
  explicit call_scope(const void* call) noexcept : call_(call), outer_(innermost_) {
    innermost_ = this;
  }
  ~call_scope() { innermost_ = outer_; }
  call_scope(const call_scope&) = delete;
  call_scope& operator=(const call_scope&) = delete;

  static bool inside(const void* call) noexcept {
    for (const call_scope* at = innermost_; at != nullptr; at = at->outer_)
      if (at->call_ == call) return true;
    return false;
  }

  static const call_scope* innermost() noexcept { return innermost_; }

  /// Marks a worker's thread, for the lifetime of this object, as inside the calls of the loop's
  /// caller.
  class inherited {
   public:
    explicit inherited(const call_scope* from) noexcept : before_(innermost_) { innermost_ = from; }
    ~inherited() { innermost_ = before_; }
    inherited(const inherited&) = delete;
    inherited& operator=(const inherited&) = delete;

   private:
    const call_scope* before_;
  };

 private:
  static inline thread_local const call_scope* innermost_ = nullptr;

  const void* call_;
  const call_scope* outer_;
};

}  // namespace shale::parallel
