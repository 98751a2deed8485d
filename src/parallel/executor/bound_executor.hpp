// Knows the executor of the running thread. A thread is bound by an `executor::scope` of its own,
// or because it helps a call whose thread is bound.
#pragma once

namespace shale {
class executor;
}

namespace shale::parallel {

/// The calling thread's executor; null if it is bound to none.
inline executor*& bound_executor() noexcept {
  static thread_local executor* bound = nullptr;
  return bound;
}

/// Binds a helper's thread, for the lifetime of this object, to the executor of the loop's caller.
class inherited_executor {
 public:
  explicit inherited_executor(executor* from) noexcept : before_(bound_executor()) {
    bound_executor() = from;
  }
  ~inherited_executor() { bound_executor() = before_; }
  inherited_executor(const inherited_executor&) = delete;
  inherited_executor& operator=(const inherited_executor&) = delete;

 private:
  executor* const before_;
};

}  // namespace shale::parallel
