// The one exception type. A message says what went wrong, where, what was wanted against what was
// found, and what to do; frames added on the way up say what was being attempted.
#pragma once

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] shale {

/// What kind of failure an `error` reports; callers branch on this, never on the message.
enum class errc {
  invalid_argument = 1,  ///< the call itself is wrong: shape, axis, dtype, option
  not_found,             ///< no such file, array, axis label or shared segment
  already_exists,        ///< exclusive creation met an existing name
  access_denied,         ///< permissions, or a write to something read-only
  out_of_memory,         ///< heap, pool limit, address space or memory budget
  out_of_space,          ///< disk or /dev/shm full
  io,                    ///< the operating system or the device failed
  corrupt,               ///< stored bytes contradict their checksum or their format
  unsupported,           ///< valid, but from a future version or beyond this build
  busy,                  ///< a lock was not free within the time allowed
  cancelled,             ///< the caller asked for the work to stop
};

/// The enumerator's name, as printed in brackets after a message.
std::string_view name(errc code) noexcept;

/// Any failure Shale reports.
/// Threads  copying is cheap and never throws; one object is not to be changed from two threads
class error : public std::runtime_error {
 public:
  /// `message` is one line without a final full stop; `details` are further lines: where, got and
  /// wanted, what to do.
  error(errc code, std::string_view message, std::initializer_list<std::string> details = {});

  /// The same for a failed system call: appends the text of `os_errno` to the message.
  static error from_errno(errc code, std::string_view message, int os_errno,
                          std::initializer_list<std::string> details = {});

  // Copies share the text; declaring them leaves out moves, which would leave an error without any.
  error(const error&) noexcept = default;
  error& operator=(const error&) noexcept = default;

  /// What callers branch on.
  errc code() const noexcept;

  /// The `errno` behind the failure, or 0.
  int os_errno() const noexcept;

  /// The whole text: "outer frame: inner frame: message [code]", then one detail a line, indented.
  const char* what() const noexcept override;

  /// The message alone, without frames, code and details.
  std::string_view message() const noexcept;

  /// Prepends a frame ("open container") to the first line.
  error& add_context(std::string_view frame);

  /// Appends a line below the first.
  error& add_detail(std::string_view line);

 private:
  struct state;
  state& own();  // the state, unshared, so that copies keep their text
  std::shared_ptr<state> state_;
};

/// The code for an `errno` that a file or memory call left behind: ENOENT -> not_found,
/// EACCES / EPERM / EROFS -> access_denied, EEXIST -> already_exists, ENOSPC / EDQUOT /
/// EFBIG -> out_of_space, ENOMEM -> out_of_memory, EAGAIN / EBUSY -> busy, EINVAL ->
/// invalid_argument, anything else -> io.
errc code_for_errno(int os_errno) noexcept;

/// Runs `body`; an `error` that leaves it gets `frame` (a string, or a callable that makes one, so
/// that the text is built only on failure) as its outermost context.
template <class Frame, class Body>
decltype(auto) with_context(Frame&& frame, Body&& body) {
  try {
    return body();
  } catch (error& failure) {
    if constexpr (requires { std::string_view(frame); })
      failure.add_context(std::string_view(frame));
    else failure.add_context(frame());
    throw;
  }
}

}  // namespace shale
