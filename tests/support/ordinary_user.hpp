// Lets tests that run as root act as a user without root's rights.
#pragma once

#include <unistd.h>

#include <stdexcept>

namespace shale::test {

/// Gives up root's rights while it lives; does nothing for other users.
class ordinary_user {
 public:
  ordinary_user() {
    constexpr uid_t nobody = 65534;
    if (was_root_ && ::seteuid(nobody) != 0) throw std::runtime_error("root cannot be given up");
  }
  ~ordinary_user() {
    if (was_root_) (void)!::seteuid(0);
  }
  ordinary_user(const ordinary_user&) = delete;
  ordinary_user& operator=(const ordinary_user&) = delete;

 private:
  bool was_root_ = ::geteuid() == 0;
};

}  // namespace shale::test
