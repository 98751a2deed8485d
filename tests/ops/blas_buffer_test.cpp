#include "ops/linalg/blas_buffer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "shale/shale.hpp"
#include "support/bounded.hpp"
#include "support/instrumented.hpp"
#include "support/little_memory.hpp"

extern "C" void* blas_memory_alloc(int);
extern "C" void blas_memory_free(void*);

namespace shale {
namespace {

// Starts threads that hold a buffer until `together` threads hold one, or all others have ended.
int most_at_once(int threads, int together) {
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::atomic<int> left = threads;
  std::vector<std::thread> all;
  all.reserve(static_cast<std::size_t>(threads));
  for (int k = 0; k < threads; ++k)
    all.emplace_back([&] {
      {
        const ops::blas_buffer held;
        const int now = ++inside;
        for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
        }
        while (most < together && left > inside) std::this_thread::yield();
        --inside;
      }
      --left;
    });
  for (std::thread& running : all) running.join();
  return most;
}

TEST(BlasBuffer, IsHeldByManyThreadsAtOnce) {
  test::expect_to_end([] { EXPECT_EQ(most_at_once(9, 9), 9); });
}

// buffer.1. Writes a number of its own into each buffer, and looks whether it stays.
TEST(BlasBuffer, IsUsedByOneCallAtATime) {
  std::atomic<int> taken_twice = 0;
  std::vector<std::thread> all;
  for (int k = 1; k <= 4; ++k)
    all.emplace_back([k, &taken_twice] {
      for (int round = 0; round < 20'000; ++round) {
        auto* const buffer = static_cast<volatile int*>(blas_memory_alloc(0));
        buffer[1024] = k;
        for (int look = 0; look < 8; ++look)
          if (buffer[1024] != k) ++taken_twice;
        blas_memory_free(const_cast<int*>(buffer));
      }
    });
  for (std::thread& running : all) running.join();
  EXPECT_EQ(taken_twice, 0);
}

// buffer.1
TEST(BlasBuffer, DoesNotMixProductsOfTwoThreads) {
  const auto filled = [](index_t rows, index_t columns, float step) {
    tensor made = tensor::empty({rows, columns}, dtype::float32);
    for (index_t i = 0; i < made.size(); ++i)
      made.elements<float>()[i] = static_cast<float>(i % 97) * step;
    return made;
  };
  const tensor a = filled(356, 474, 0.5F), b = filled(474, 570, 0.25F);
  const auto product = [&] {
    executor on({.threads = 1});
    const executor::scope within(on);
    return eval(matmul(expr(a), expr(b)));
  };
  const tensor alone = product();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> all;
  for (int k = 0; k < 4; ++k)
    all.emplace_back([&] {
      for (int round = 0; round < (test::instrumented ? 20 : 200); ++round)
        if (!equal_bits(product(), alone)) ++wrong;
    });
  for (std::thread& running : all) running.join();
  EXPECT_EQ(wrong, 0);
}

// buffer.2
TEST(BlasBuffer, IsWaitedForIfThereAreFew) {
  if (test::instrumented) GTEST_SKIP() << "sanitizers take all address space";
  test::expect_to_end([] {
    { const ops::blas_buffer first; }
    // The limit leaves no address space for another buffer. The stacks of threads are small enough.
    const test::little_memory limit(rlim_t{120} << 20);
    std::atomic<int> inside = 0;
    std::vector<std::thread> all;
    for (int k = 0; k < 3; ++k)
      all.emplace_back([&] {
        const ops::blas_buffer held;
        EXPECT_EQ(++inside, 1);
        std::this_thread::yield();
        --inside;
      });
    for (std::thread& running : all) running.join();
  });
}

}  // namespace
}  // namespace shale
