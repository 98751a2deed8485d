// Makes the n-th call of a program go wrong: a call of the C library to the operating system, or
// one of operator new. Works in programs that link failing_calls.cpp, with the options that
// failing_calls.cmake adds, and counts the calls of Shale's own objects in all threads.
#pragma once

#include <cstdint>
#include <string>

namespace shale::test {

enum class failing : std::uint8_t {
  nothing,     ///< only counts
  once,        ///< one call answers with the error number
  ever_after,  ///< so does every later one
  partially,   ///< pread and pwrite move half of what they were asked for; others do as `nothing`
  by_death,    ///< SIGKILL instead of the call
  allocation   ///< one operator new throws
};

/// From here on the call number `at` (from 0) goes wrong.
void fail_calls(failing how, std::uint64_t at, int error_number = 0);

/// No call goes wrong any more.
/// Returns  calls since fail_calls: of the system, or of operator new
std::uint64_t stop_failing();

/// The call that went wrong since fail_calls; "" if none did.
std::string failed_call();

/// Runs something in front of every call of that name; nullptr: no longer.
using call_hook = void (*)(const char* name);
void run_before_calls(call_hook hook);

/// Whether the file system knows files without a name; else they are made under temporary ones.
void let_files_be_unnamed(bool allowed);

/// Every call of that name answers with the error number, as where the system does not know it;
/// nullptr: none any more.
void refuse_calls(const char* name, int error_number = 0);

}  // namespace shale::test
