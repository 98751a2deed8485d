// Tests functions that go over rows more than once while the rows change: another process may write
// shared memory between two passes. Each function must notice that a pass finds other elements than
// the pass before counted, because it stores by these counts.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/histograms.hpp"
#include "shale/order_statistics.hpp"
#include "shale/searching.hpp"
#include "shale/shared_memory.hpp"
#include "shale/sorting.hpp"
#include "support/bounded.hpp"
#include "support/failures.hpp"
#include "support/system_page.hpp"

namespace shale {
namespace {

using test::code_of;
using test::expect_to_end;
using test::text_of;

// A row whose passes are counted. The first and the last page of what is watched cannot be accessed
// by turns: a pass ends a turn when it comes to the last page, and the next pass ends the other one
// when it begins again at the first page. Only one may exist at a time.
class watched_row {
 public:
  // Watches the first `watched` bytes, which are three pages or more.
  watched_row(dtype type, index_t count, std::size_t watched)
      : page_(test::system_page_bytes()),
        bytes_(static_cast<std::size_t>(count) * item_bytes(type)),
        first_(static_cast<std::byte*>(
            ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        last_(first_ + (watched / page_ - 1) * page_),
        elements(storage::adopt(first_, bytes_, [](void*) {}), type, layout({count})) {
    if (first_ == MAP_FAILED || watched < 3 * page_ || watched > bytes_) std::abort();
    current = this;
    struct sigaction action {};
    action.sa_sigaction = &on_fault;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, nullptr);
  }
  ~watched_row() {
    ::signal(SIGSEGV, SIG_DFL);
    ::munmap(first_, bytes_);
  }
  watched_row(const watched_row&) = delete;
  watched_row& operator=(const watched_row&) = delete;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(first_);
  }

  // Calls `function`, and `body` before the pass `number`, counted from 1. The function must say
  // that its operand has changed.
  template <class Function>
  void expect_refused(int number, std::function<void()> body, Function function) {
    passes_ = 0;
    number_ = number;
    body_ = std::move(body);
    allow(first_, false);
    const std::string text = text_of(function);
    allow(first_, true);
    allow(last_, true);
    EXPECT_GE(passes_, number);
    EXPECT_NE(text.find("the operand changed while"), std::string::npos) << text;
  }

 private:
  static void on_fault(int, siginfo_t* info, void*) {
    const auto* const at = static_cast<std::byte*>(info->si_addr);
    const auto is_in = [&](const std::byte* page) {
      return at >= page && at < page + current->page_;
    };
    if (is_in(current->first_)) {
      current->begin_pass();
    } else if (is_in(current->last_)) {
      current->allow(current->last_, true);
      current->allow(current->first_, false);
    } else {
      ::signal(SIGSEGV, SIG_DFL);
    }
  }

  void begin_pass() {
    allow(first_, true);
    if (++passes_ < number_) allow(last_, false);
    else body_();
  }

  void allow(std::byte* page, bool access) const {
    if (::mprotect(page, page_, access ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) std::abort();
  }

  static inline watched_row* current = nullptr;

  std::size_t page_;
  std::size_t bytes_;
  std::byte* first_;
  std::byte* last_;
  int passes_ = 0;
  int number_ = 0;
  std::function<void()> body_;

 public:
  const tensor elements;
};

const std::size_t three_pages = 3 * test::system_page_bytes();

// Runs `body` in a process and on an executor of its own.
template <class Body>
void expect_on(int threads, Body body) {
  expect_to_end([&] {
    executor on({.threads = threads});
    const executor::scope within(on);
    body();
  });
}

TEST(ChangedRows, ANumberThatGrowsOrFallsIsNotCounted) {
  expect_on(1, [] {
    const auto count = static_cast<index_t>(three_pages / 8);
    watched_row row(dtype::int64, count, three_pages);
    auto* const numbers = row.as<std::int64_t>();
    const expr weights = tensor::full({count}, 1, dtype::float64);
    for (const std::int64_t changed : {std::int64_t{1} << 40, std::int64_t{3}, std::int64_t{-1}}) {
      std::fill_n(numbers, count, 2);
      row.expect_refused(
          2, [&] { numbers[5] = changed; }, [&] { bincount(row.elements); });
      std::fill_n(numbers, count, 2);
      row.expect_refused(
          2, [&] { numbers[5] = changed; }, [&] { bincount(row.elements, weights); });
    }
  });
}

// Rows of this length are counted by the leading bits of their keys, and sorted in two pieces by
// two threads. A piece of 4-byte elements has three pages or more.
const index_t long_row = std::max(index_t{1} << 16, static_cast<index_t>(three_pages / 2));

// rank.3
TEST(ChangedRows, AKeyThatEntersOrLeavesAWantedBinIsRefused) {
  constexpr std::int32_t other = 1 << 30;
  expect_on(1, [] {
    watched_row row(dtype::int32, long_row, static_cast<std::size_t>(long_row) * 4);
    auto* const numbers = row.as<std::int32_t>();
    std::fill_n(numbers, long_row, 0);
    const auto refused = [&](std::int32_t before, std::int32_t changed, auto function) {
      numbers[5] = before;
      row.expect_refused(
          2, [&] { numbers[5] = changed; }, function);
    };
    const auto both_ways = [&](auto function) {
      refused(other, 0, function);
      refused(0, other, function);
    };
    both_ways([&] { kthvalue(row.elements, 1); });
    both_ways([&] { median(row.elements); });
    both_ways([&] { quantile(row.elements, 0.25); });
  });
}

TEST(ChangedRows, AnElementOfARankThatIsGoneIsRefused) {
  expect_on(1, [] {
    watched_row row(dtype::int32, long_row, static_cast<std::size_t>(long_row) * 4);
    auto* const numbers = row.as<std::int32_t>();
    // Passes: the keys are counted, then gathered; elements before the one of that rank are
    // counted, then it is looked for.
    for (const int pass : {3, 4}) {
      std::fill_n(numbers, long_row, 0);
      numbers[5] = -7;
      row.expect_refused(
          pass, [&] { numbers[5] = 0; }, [&] { kthvalue(row.elements, 1); });
    }
  });
}

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Three elements of a row of -1, before and after the pass that is named.
struct change {
  int pass;
  float before[3];
  float after[3];
};

// Passes: keys are made, NaNs and zeros are counted, and stored.
constexpr change changes[] = {
    {3, {nan, -1, -1}, {nan, nan, -1}},        // one NaN more than was counted
    {3, {nan, nan, -1}, {nan, -1, -1}},        // one less
    {3, {-0.0F, -1, -1}, {-0.0F, 0.0F, -1}},   // one zero more
    {3, {-0.0F, 0.0F, -1}, {-0.0F, -1, -1}},   // one less
    {2, {-1, -1, -1}, {-0.0F, -0.0F, -1}},     // two zeros more than the sorted row has
    {2, {-1, -1, -1}, {nan, -1, -1}},          // one NaN more
    {2, {nan, nan, -0.0F}, {-1, nan, -0.0F}},  // one less
};

template <class Function>
void expect_unkeyed_refused(watched_row& row, index_t count, Function function) {
  auto* const numbers = row.as<float>();
  for (const change& each : changes) {
    SCOPED_TRACE(&each - changes);
    std::fill_n(numbers, count, -1.0F);
    std::copy_n(each.before, 3, numbers + 5);
    row.expect_refused(
        each.pass, [&] { std::copy_n(each.after, 3, numbers + 5); }, function);
  }
}

// sort.4
TEST(ChangedRows, NansAndZerosThatComeOrGoAreRefused) {
  expect_on(1, [] {
    const auto count = static_cast<index_t>(three_pages / 4);
    watched_row row(dtype::float32, count, three_pages);
    expect_unkeyed_refused(row, count, [&] { sort(row.elements); });
    expect_unkeyed_refused(row, count, [&] { sort(row.elements, -1, descending::yes); });
    expect_unkeyed_refused(row, count, [&] { unique_counts(row.elements); });
    expect_unkeyed_refused(row, count, [&] { mode(row.elements); });
  });
}

TEST(ChangedRows, NansAndZerosThatComeOrGoInAPieceAreRefused) {
  expect_on(2, [] {
    // Two pieces, of which the first is watched.
    watched_row row(dtype::float32, long_row, static_cast<std::size_t>(long_row) * 2);
    expect_unkeyed_refused(row, long_row, [&] { sort(row.elements); });
    expect_unkeyed_refused(row, long_row, [&] { sort(row.elements, -1, descending::yes); });
  });
}

// The rest of a segment that was made shorter is zeros in this process.
TEST(ChangedRows, ASegmentThatLosesBytesIsRefused) {
  expect_to_end([] {
    const std::string name = "changed-rows-test." + std::to_string(::getpid());
    constexpr index_t large = 1 << 16;
    const auto refused = [&](auto function) {
      const tensor shared(create_shared(name, large * 8), dtype::int64, layout({large}));
      eval_into(shared, arange(large));
      ASSERT_EQ(::truncate(("/dev/shm/shale." + name).c_str(), 65536), 0);
      EXPECT_EQ(code_of([&] { function(shared); }), errc::io);
    };
    refused([](const tensor& shared) { sort(shared); });
    refused([](const tensor& shared) { argsort(shared); });
    refused([](const tensor& shared) { unique_values(shared); });
    refused([](const tensor& shared) { searchsorted(shared, arange(9)); });
    refused([](const tensor& shared) { searchsorted(arange(9), shared); });
    refused([](const tensor& shared) { topk(shared, 3); });
    refused([](const tensor& shared) { kthvalue(shared, 3); });
    refused([](const tensor& shared) { median(shared); });
    refused([](const tensor& shared) { mode(shared); });
    refused([](const tensor& shared) { bincount(shared); });
    refused([](const tensor& shared) { histogram(shared, 3, {.range = value_range{0, 1e9}}); });
  });
}

}  // namespace
}  // namespace shale
