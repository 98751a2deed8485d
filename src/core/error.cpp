#include "shale/error.hpp"

#include <cerrno>
#include <system_error>
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

// Shared by the copies of one error and rendered on every change, so that what() only reads.
struct error::state {
  errc code;
  int os_errno;
  std::string frames;  // "outer: inner: "
  std::string message;
  std::vector<std::string> details;
  std::string text;

  void render() {
    text = frames + message + " [" + std::string(name(code)) + "]";
    for (const auto& detail : details) {
      text += "\n  ";
      for (const char letter : detail) {
        text += letter;
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

error& error::add_context(std::string_view frame) {
  state& mine = own();
  mine.frames.insert(0, std::string(frame) + ": ");
  mine.render();
  return *this;
}

error& error::add_detail(std::string_view line) {
  state& mine = own();
  mine.details.emplace_back(line);
  mine.render();
  return *this;
}

error::state& error::own() {
  if (state_.use_count() > 1) state_ = std::make_shared<state>(*state_);
  return *state_;
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
      return errc::invalid_argument;
    default:
      return errc::io;
  }
}

}  // namespace shale
