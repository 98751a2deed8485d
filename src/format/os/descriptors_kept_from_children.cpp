#include "format/os/descriptors_kept_from_children.hpp"

#include <unistd.h>

#include <mutex>
#include <type_traits>

#include "storage/system/fork_handlers.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::format {
namespace {

// The mutex needs no destructor: static objects may release descriptors while the process ends.
constinit shale::detail::fork_safe_mutex listing;
static_assert(std::is_trivially_destructible_v<shale::detail::fork_safe_mutex>);

kept_from_children* first = nullptr;
std::int64_t forks = 0;

}  // namespace

struct child_handlers {
  static void count() { ++forks; }

  // Calls nothing but close: a lock that another thread held at the fork is never released here.
  static void start() {
    for (kept_from_children* kept = first; kept != nullptr; kept = kept->next_) {
      if (*kept->descriptor_ >= 0) ::close(*kept->descriptor_);
      *kept->descriptor_ = -1;
    }
  }

  // No thread is inside `listing` during the fork, so the child's copy of the list is whole.
  static std::int64_t install() noexcept {
    static constexpr shale::detail::fork_handlers handlers{&count, nullptr, &start};
    return -on_fork(shale::detail::forking_part::descriptors, handlers);
  }
};

std::int64_t forks_begun() noexcept {
  static const std::int64_t installed = child_handlers::install();
  if (installed < 0) return installed;
  const std::lock_guard lock(listing);
  return forks;
}

// Installs the handlers at program start, so that no thread forks while another one installs them.
[[maybe_unused]] static const std::int64_t installed_at_load = forks_begun();

bool kept_from_children::start(std::int64_t before) noexcept {
  const std::lock_guard lock(listing);
  if (forks != before) return false;
  next_ = first;
  if (first != nullptr) first->previous_ = this;
  first = this;
  listed_ = true;
  return true;
}

kept_from_children::~kept_from_children() {
  if (!listed_) return;
  const std::lock_guard lock(listing);
  (previous_ != nullptr ? previous_->next_ : first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}

}  // namespace shale::format
