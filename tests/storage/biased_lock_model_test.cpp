// A model of biased_lock in a process that has lost membarrier: an owner with a store buffer, a
// thread that waits for another owner, and one that wants this owner's lock. All interleavings are
// tried. A thread may stop between any two steps for any time. A pause lasts until stores that were
// in the buffer at its beginning are visible, and no longer.
#include <gtest/gtest.h>

#include <compare>
#include <cstdint>
#include <set>
#include <vector>

namespace shale {
namespace {

enum class way : std::uint8_t { plain, changing, exchanged };

// When the owner looks at the way in which it has to store.
enum class look : std::uint8_t { before_the_store, after_it };

struct waiter {
  enum step : std::uint8_t { wants, fences, begins_pause, ends_pause, awaits, inside };

  std::uint8_t at = wants;
  bool sees_buffered = false;  // a store that was in the buffer when the pause began

  auto operator<=>(const waiter&) const = default;
};

struct model {
  enum step : std::uint8_t { first, second, exchanges, looks_for_others, inside };

  std::uint8_t owner = first;
  bool stores_plainly = false;  // what the owner has decided
  bool buffered = false;        // its plain store is not visible yet
  bool held = false;
  bool wanted = false;
  way stores = way::plain;
  waiter elsewhere{waiter::fences};
  waiter here;

  auto operator<=>(const model&) const = default;
};

void make_visible(model& next) {
  next.held = next.held || next.buffered;
  next.buffered = next.elsewhere.sees_buffered = next.here.sees_buffered = false;
}

// The owner leaves, or has never come in. Its next visible store says so.
void leave(model& next) {
  make_visible(next);
  next.held = false;
  next.owner = model::first;
}

void step_owner(model& next, look when) {
  const bool is_plain = next.stores == way::plain;
  switch (next.owner) {
    case model::first:
      if (when == look::after_it) next.buffered = true;
      else next.stores_plainly = is_plain;
      next.owner = model::second;
      return;
    case model::second:
      if (when == look::after_it) next.stores_plainly = is_plain;
      else next.buffered = next.stores_plainly;
      next.owner = next.stores_plainly ? model::looks_for_others : model::exchanges;
      return;
    case model::exchanges:
      next.buffered = true;
      make_visible(next);
      next.owner = model::looks_for_others;
      return;
    case model::looks_for_others:
      if (next.wanted) leave(next);
      else next.owner = model::inside;
      return;
    default:
      leave(next);
  }
}

// The steps of a waiter, as far as they are the same for both. Returns whether it could go on.
bool step_fence(model& next, waiter& who) {
  switch (who.at) {
    case waiter::fences:
      who.at = next.stores == way::exchanged ? waiter::awaits : waiter::begins_pause;
      if (next.stores == way::plain) next.stores = way::changing;
      return true;
    case waiter::begins_pause:
      who.sees_buffered = next.buffered;
      who.at = waiter::ends_pause;
      return true;
    case waiter::ends_pause:
      if (who.sees_buffered) return false;
      next.stores = way::exchanged;
      who.at = waiter::awaits;
      return true;
    default:
      return false;
  }
}

bool step_here(model& next) {
  switch (next.here.at) {
    case waiter::wants:
      next.wanted = true;
      next.here.at = waiter::fences;
      return true;
    case waiter::awaits:
      if (next.held) return false;
      next.here.at = waiter::inside;
      return true;
    case waiter::inside:
      next.wanted = false;
      next.here.at = waiter::wants;
      return true;
    default:
      return step_fence(next, next.here);
  }
}

// Whether the owner and the other thread can ever be inside together.
bool can_meet(look when) {
  std::set<model> known{model{}};
  std::vector<model> left{model{}};
  while (!left.empty()) {
    const model now = left.back();
    left.pop_back();
    if (now.owner == model::inside && now.here.at == waiter::inside) return true;
    const auto reach = [&](const model& next) {
      if (known.insert(next).second) left.push_back(next);
    };
    model next = now;
    step_owner(next, when);
    reach(next);
    next = now;
    make_visible(next);
    reach(next);
    next = now;
    if (step_fence(next, next.elsewhere)) reach(next);
    next = now;
    if (step_here(next)) reach(next);
  }
  return false;
}

TEST(BiasedLockModel, KeepsOwnersApartThatLookAfterTheirStore) {
  EXPECT_FALSE(can_meet(look::after_it));
}

// An owner that stops between the two for longer than the pause makes its plain store too late.
TEST(BiasedLockModel, FindsTheHoleOfOwnersThatLookBeforeTheirStore) {
  EXPECT_TRUE(can_meet(look::before_the_store));
}

}  // namespace
}  // namespace shale
