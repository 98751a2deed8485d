#include "support/failing_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "shale/error.hpp"

namespace {

// The number of counted allocations that still succeed; then one fails, or all.
enum class failing { none, one, all };
std::atomic<failing> mode = failing::none;
std::atomic<long> left = 0;
std::atomic<bool> failed = false;

bool fails() noexcept {
  const failing now = mode.load(std::memory_order_relaxed);
  if (now == failing::none) return false;
  const long before = left.fetch_sub(1, std::memory_order_relaxed);
  if (before > 0 || (now == failing::one && before < 0)) return false;
  failed = true;
  return true;
}

void* take(std::size_t bytes, std::size_t alignment) noexcept {
  if (fails()) return nullptr;
  void* address = nullptr;
  return ::posix_memalign(&address, std::max(alignment, sizeof(void*)),
                          std::max<std::size_t>(bytes, 1)) == 0
             ? address
             : nullptr;
}

void* take_or_throw(std::size_t bytes, std::size_t alignment) {
  void* const address = take(bytes, alignment);
  if (address == nullptr) throw std::bad_alloc();
  return address;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) { return take_or_throw(bytes, 16); }
[[gnu::noinline]] void* operator new[](std::size_t bytes) { return take_or_throw(bytes, 16); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take_or_throw(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return take(bytes, 16);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment,
                                     const std::nothrow_t&) noexcept {
  return take(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* address) noexcept { std::free(address); }
[[gnu::noinline]] void operator delete[](void* address) noexcept { std::free(address); }
[[gnu::noinline]] void operator delete(void* address, std::size_t) noexcept { std::free(address); }
[[gnu::noinline]] void operator delete[](void* address, std::size_t) noexcept {
  std::free(address);
}
[[gnu::noinline]] void operator delete(void* address, std::align_val_t) noexcept {
  std::free(address);
}
[[gnu::noinline]] void operator delete(void* address, std::size_t, std::align_val_t) noexcept {
  std::free(address);
}

namespace shale::test {

void expect_errors_only(const std::string& operation, const std::function<void()>& call) {
  SCOPED_TRACE(operation);
  call();  // creates everything that is created only once
  for (const failing how : {failing::one, failing::all}) {
    for (long n = 0;; ++n) {
      ASSERT_LT(n, 100000);
      failed = false;
      left = n;
      mode = how;
      bool other = false;
      errc code{};
      try {
        call();
      } catch (const error& failure) {
        code = failure.code();
      } catch (...) {
        other = true;
      }
      mode = failing::none;
      ASSERT_FALSE(other) << "at allocation " << n << (how == failing::one ? "" : " and all later");
      if (code != errc{}) {
        ASSERT_TRUE(failed);
        ASSERT_EQ(code, errc::out_of_memory) << "at allocation " << n;
      }
      if (!failed) break;
    }
  }
  call();
}

no_memory::no_memory() noexcept {
  left = 0;
  mode = failing::all;
}
no_memory::~no_memory() { mode = failing::none; }

enough_memory::enough_memory() noexcept : before_(static_cast<int>(mode.exchange(failing::none))) {}
enough_memory::~enough_memory() { mode = static_cast<failing>(before_); }

}  // namespace shale::test
