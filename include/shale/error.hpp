// The exception type of the library. Its message says what went wrong and where, what was wanted
// and what was found, and what to do. Callers on the way up add frames that say what they were
// doing.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace [[gnu::visibility("default")]] shale {

/// The kind of a failure. Programs branch on it, never on the text of a message.
enum class errc {
  invalid_argument = 1,  ///< the call itself is wrong: shape, axis, dtype, option
  not_found,             ///< no such file, array, attribute, archive member or shared segment
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

/// A failure that Shale reports.
/// Cost     copying shares the text and never throws
/// Threads  a value: two threads must not change the same object
class error : public std::runtime_error {
 public:
  /// `message` is one line without a full stop at its end. `details` are further lines: the place,
  /// the values that were found and wanted, and advice.
  /// Throws   std::bad_alloc
  error(errc code, std::string_view message, std::initializer_list<std::string> details = {});

  /// An error for a failed system call: the text of `os_errno` follows the message.
  /// Throws   std::bad_alloc
  static error from_errno(errc code, std::string_view message, int os_errno,
                          std::initializer_list<std::string> details = {});

  // Copies share the text. Declaring them suppresses moves, which would leave an error without its
  // text.
  error(const error&) noexcept = default;
  error& operator=(const error&) noexcept = default;

  /// The kind of the failure.
  errc code() const noexcept;

  /// The `errno` of the failure, or 0.
  int os_errno() const noexcept;

  /// The whole text: "outer frame: inner frame: message [code]", then each detail on an indented
  /// line of its own. The pointer is valid as long as this object is not changed or destroyed.
  const char* what() const noexcept override;

  /// The message alone, without frames, code and details.
  std::string_view message() const noexcept;

  /// Puts a frame ("open container") in front of the first line.
  /// Throws   nothing: without memory for a longer text, the error keeps its present one
  error& add_context(std::string_view frame);

  /// Adds a detail line at the end. Throws nothing.
  error& add_detail(std::string_view line);

  /// Replaces each `from` in frames, message and details by `to`, for example if a file gets
  /// another name before the text is read. Does nothing if `from` is empty.
  /// Throws   nothing
  error& replace_in_text(std::string_view from, std::string_view to);

 private:
  struct state;
  std::shared_ptr<state> state_;  // never changed, so that copies keep their text
};

/// The code for the `errno` of a failed system call on files or memory: ENOENT -> not_found,
/// EACCES / EPERM / EROFS -> access_denied, EEXIST -> already_exists, ENOSPC / EDQUOT /
/// EFBIG -> out_of_space, ENOMEM -> out_of_memory, EAGAIN / EBUSY -> busy, EINVAL / EISDIR /
/// ENAMETOOLONG -> invalid_argument, any other -> io.
errc code_for_errno(int os_errno) noexcept;

namespace detail {

/// Throws an error that was made at program start, because its text needs memory.
[[noreturn]] void throw_out_of_memory();

/// Throws invalid_argument: a function is null or empty.
[[noreturn]] void throw_not_callable();

/// Throws   invalid_argument for a null function pointer and for an empty function object, such as
///          an empty std::function
template <class Function>
void require_callable(const Function& function) {
  if constexpr (std::is_pointer_v<Function> || std::is_constructible_v<Function, std::nullptr_t>)
    if constexpr (requires { bool(function == nullptr); })
      if (function == nullptr) throw_not_callable();
}

}  // namespace detail

/// Returns `body()`. If an `error` leaves it, `frame` becomes the outermost frame of that error.
/// `frame` is a string, or a callable that returns one and is called only on failure.
/// Throws   invalid_argument (`body` is a null pointer or an empty function object), and whatever
///          `body` throws. If `frame` throws anything but std::bad_alloc, that replaces the error
template <class Frame, class Body>
decltype(auto) with_context(Frame&& frame, Body&& body) {
  try {
    detail::require_callable(body);
    return body();
  } catch (error& failure) {
    if constexpr (requires { std::string_view(frame); })
      failure.add_context(std::string_view(frame));
    else try {
        failure.add_context(frame());
      } catch (const std::bad_alloc&) {
      }
    throw;
  }
}

}  // namespace shale
