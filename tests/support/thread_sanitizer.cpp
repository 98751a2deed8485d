// Suppressions and options for ThreadSanitizer, in builds that use it; empty in others.
#if defined(__SANITIZE_THREAD__)

extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_options();

// A process with several threads sleeps before it ends, to find races with its end: for a second
// by default, which is a third of the time of all tests.
extern "C" const char* __tsan_default_options() { return "atexit_sleep_ms=20"; }

// oneTBB's library is not instrumented. Its threads use atomics, which the detector does not see,
// to decide which of them frees the process's affinity mask, so two calls into the C library look
// like a race. This suppression ignores memory accesses of such calls, but no access of our kernels
// below oneTBB's frames: ThreadSanitizer.SeesRacesBetweenTiles proves it.
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libtbb.so"; }

#endif
