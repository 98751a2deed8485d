// What ThreadSanitizer is told before `main`, in builds that have it; nothing in others.
#if defined(__SANITIZE_THREAD__)

extern "C" const char* __tsan_default_suppressions();

// oneTBB's library is not instrumented: its threads agree, by atomics that the detector does not
// see, on which of them frees the process's affinity mask, and two calls into the C library look
// like a race. This leaves out what such calls read and write, and nothing that a kernel of ours
// does below oneTBB's frames: ThreadSanitizer.SeesRacesBetweenTiles proves it.
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libtbb.so"; }

#endif
