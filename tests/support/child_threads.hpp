// Keeps forked children from starting threads where ThreadSanitizer does not support it.
#pragma once

#include "storage/pool/pools/housekeeper.hpp"

namespace shale::test {

/// Called first in a forked child. A child starts a housekeeper of its own when one of its pools
/// gets idle memory; whether it does depends on what the parent's threads had cached when they were
/// forked. ThreadSanitizer supports no new thread in a child of several threads. In its build this
/// marks the housekeeper as awake, so that none is started. In other builds it does nothing.
inline void start_no_housekeeper() noexcept {
#if defined(__SANITIZE_THREAD__)
  detail::housekeeper_awake = true;
#endif
}

/// Whether a forked child of a process with several threads may start threads.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool children_start_threads = false;
#else
inline constexpr bool children_start_threads = true;
#endif

}  // namespace shale::test
