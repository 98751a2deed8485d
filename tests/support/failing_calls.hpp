// Makes the n-th call of a program fail: a system call through the C library, or a call of operator
// new. It works in programs that link failing_calls.cpp with the options that failing_calls.cmake
// adds, and counts the calls of Shale's own object files in all threads.
#pragma once

#include <cstdint>
#include <string>

namespace shale::test {

enum class failing : std::uint8_t {
  nothing,     ///< only counts calls
  once,        ///< one call returns the error
  ever_after,  ///< that call and every later one return the error
  partially,   ///< pread and pwrite transfer half of the bytes; other calls are not changed
  by_death,    ///< SIGKILL instead of the call
  allocation   ///< one operator new throws
};

/// Makes call number `call` (counted from 0) fail from now on.
void fail_calls(failing how, std::uint64_t call, int error_number = 0);

/// No further call fails.
/// Returns  the number of calls since fail_calls: system calls, or calls of operator new
std::uint64_t stop_failing();

/// The name of the call that failed since fail_calls; "" if none did.
std::string failed_call();

/// Runs a function before every call of that name; nullptr ends this.
using call_hook = void (*)(const char* name);
void run_before_calls(call_hook hook);

/// Whether the file system supports files without a name; otherwise files are made under temporary
/// names.
void let_files_be_unnamed(bool allowed);

/// Whether fstatvfs says that the file system keeps all of its free blocks for some users, as ext4
/// does after `tune2fs -r`. It does not say for whom.
void keep_free_blocks(bool kept);

/// Files in that folder, which must have no links in its path, seem to lie on a network file system;
/// "" ends this. Not while other threads make calls.
void imitate_network_files(const std::string& folder);

/// Every call of that name returns the error, as on a system that does not support it; nullptr ends
/// this.
void refuse_calls(const char* name, int error_number = 0);

}  // namespace shale::test
