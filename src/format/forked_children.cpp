#include "format/forked_children.hpp"

#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <type_traits>

namespace shale::format {
namespace {

// Usable to the end: what static objects own is let go after it would be destroyed.
constinit std::mutex listing;
static_assert(std::is_trivially_destructible_v<std::mutex>);

kept_from_children* first = nullptr;
std::int64_t forks = 0;

}  // namespace

struct child_handlers {
  static void prepare() {
    listing.lock();  // in the child, the list is whole
    ++forks;
  }

  static void resume() { listing.unlock(); }

  // Nothing but close: whatever other threads held at the fork, they hold for ever here.
  static void start() {
    for (kept_from_children* each = first; each != nullptr; each = each->next_) {
      if (*each->descriptor_ >= 0) ::close(*each->descriptor_);
      *each->descriptor_ = -1;
    }
    resume();
  }

  static std::int64_t install() noexcept { return -::pthread_atfork(&prepare, &resume, &start); }
};

std::int64_t forks_begun() noexcept {
  static const std::int64_t installed = child_handlers::install();
  if (installed < 0) return installed;
  const std::lock_guard lock(listing);
  return forks;
}

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
