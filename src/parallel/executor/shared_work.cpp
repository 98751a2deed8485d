#include "parallel/executor/shared_work.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace shale::parallel {

// The message is written without the C library's streams, whose buffers may hold what the parent
// will write.
void foreign_call::end_child() noexcept {
  constexpr std::string_view text =
      "shale: a forked child returned into a call that it shared with threads of its parent; it "
      "must end inside the function that forked, by exec or _exit\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

}  // namespace shale::parallel
