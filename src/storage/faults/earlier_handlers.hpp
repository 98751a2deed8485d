// Remembers the handlers of SIGBUS that were installed before the guard's, and passes them the
// faults that are not the guard's (guard.4 in fault_guard.hpp).
#pragma once

#include <signal.h>

namespace shale::detail {

using signal_handler = void (*)(int number, siginfo_t* info, void* context);

/// Installs the handler of SIGBUS, or puts it in front again if the host program has installed
/// another one since; the handler that was in front becomes an earlier one.
/// Threads  one at a time
void install_in_front(signal_handler handler) noexcept;

/// Calls the handler that was installed before ours. Without one, the process ends by the signal as
/// it would have without this library. Called by our handler only, with its arguments; takes no
/// lock and allocates nothing (guard.1).
void pass_on(int number, siginfo_t* info, void* context) noexcept;

}  // namespace shale::detail
