#include "shale/error.hpp"

#include <cerrno>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

namespace shale {

std::string_view name(errc code) noexcept {
  switch (code) {
    case errc::invalid_argument:
      return "invalid_argument";
    case errc::not_found:
      return "not_found";
    case errc::already_exists:
      return "already_exists";
    case errc::access_denied:
      return "access_denied";
    case errc::out_of_memory:
      return "out_of_memory";
    case errc::out_of_space:
      return "out_of_space";
    case errc::io:
      return "io";
    case errc::corrupt:
      return "corrupt";
    case errc::unsupported:
      return "unsupported";
    case errc::busy:
      return "busy";
    case errc::cancelled:
      return "cancelled";
  }
  return "unknown";
}

// Shared by all copies of one error. The text is made at construction, so that what() only reads.
struct error::state {
  errc code;
  int os_errno;
  std::string frames;  // "outer: inner: "
  std::string message;
  std::vector<std::string> details;
  std::string text;

  // Names in the text may contain zero bytes, at which what() would end.
  void append(std::string_view piece) {
    for (const char letter : piece) {
      if (letter == '\0') text += "\\0";
      else text += letter;
    }
  }

  void render() {
    text.clear();
    append(frames);
    append(message);
    text += " [" + std::string(name(code)) + "]";
    for (const auto& detail : details) {
      text += "\n  ";
      for (const char letter : detail) {
        append({&letter, 1});
        if (letter == '\n') text += "  ";
      }
    }
  }
};

error::error(errc code, std::string_view message, std::initializer_list<std::string> details)
    : std::runtime_error(std::string(message)),
      state_(std::make_shared<state>(state{code, 0, {}, std::string(message), details, {}})) {
  state_->render();
}

error error::from_errno(errc code, std::string_view message, int os_errno,
                        std::initializer_list<std::string> details) {
  const std::string reason = std::generic_category().message(os_errno);
  error result(code, std::string(message) + ": " + reason, details);
  result.state_->os_errno = os_errno;
  return result;
}

errc error::code() const noexcept { return state_->code; }

int error::os_errno() const noexcept { return state_->os_errno; }

const char* error::what() const noexcept { return state_->text.c_str(); }

std::string_view error::message() const noexcept { return state_->message; }

// If there is no memory for a longer text, the error keeps its present text.
error& error::add_context(std::string_view frame) {
  try {
    auto changed = std::make_shared<state>(*state_);
    changed->frames.insert(0, std::string(frame) + ": ");
    changed->render();
    state_ = std::move(changed);
  } catch (const std::bad_alloc&) {
  }
  return *this;
}

error& error::add_detail(std::string_view line) {
  try {
    auto changed = std::make_shared<state>(*state_);
    changed->details.emplace_back(line);
    changed->render();
    state_ = std::move(changed);
  } catch (const std::bad_alloc&) {
  }
  return *this;
}

error& error::replace_in_text(std::string_view from, std::string_view to) {
  if (from.empty()) return *this;
  const auto replace_in = [&](std::string& text) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  try {
    auto changed = std::make_shared<state>(*state_);
    replace_in(changed->frames);
    replace_in(changed->message);
    for (std::string& detail : changed->details) replace_in(detail);
    changed->render();
    state_ = std::move(changed);
  } catch (const std::bad_alloc&) {
  }
  return *this;
}

namespace {

// Copying this error allocates nothing. It is never destroyed, because destructors of static
// objects may throw it while the process ends.
const error& out_of_memory() {
  static const error& made = *new error(errc::out_of_memory, "the system has no more memory",
                                        {"free some, or run fewer calls at the same time"});
  return made;
}

// This makes the error at program start, while there is memory.
[[maybe_unused]] const error& made_at_load = out_of_memory();

}  // namespace

void detail::throw_out_of_memory() { throw error(out_of_memory()); }

void detail::throw_not_callable() {
  throw error(errc::invalid_argument, "there is no function to call",
              {"got a null pointer or an empty function"});
}

errc code_for_errno(int os_errno) noexcept {
  switch (os_errno) {
    case ENOENT:
      return errc::not_found;
    case EACCES:
    case EPERM:
    case EROFS:
      return errc::access_denied;
    case EEXIST:
      return errc::already_exists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return errc::out_of_space;
    case ENOMEM:
      return errc::out_of_memory;
    case EAGAIN:
    case EBUSY:
      return errc::busy;
    case EINVAL:
    case EISDIR:
    case ENAMETOOLONG:
      return errc::invalid_argument;
    default:
      return errc::io;
  }
}

}  // namespace shale
