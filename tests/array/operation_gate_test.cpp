// Tests the gate of operations: closing it waits for every operation that found it open.
#include "array/transaction/state/operation_gate.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace shale::arrays {
namespace {

TEST(OperationGate, ClosingWaitsForOperationsThatHaveBegun) {
  for (int round = 0; round < 200; ++round) {
    operation_gate gate;
    std::atomic<int> entered = 0;
    std::atomic<bool> over = false;
    std::atomic<int> late = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        for (;;) {
          const operation_gate::visit inside(gate);
          ++entered;
          if (gate.closed()) return;
          std::this_thread::yield();
          if (over) ++late;
        }
      });
    while (entered < 3) std::this_thread::yield();
    EXPECT_FALSE(gate.closed());
    gate.close();
    gate.wait_for_visits();
    over = true;
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(late, 0);
    EXPECT_TRUE(gate.closed());
  }
}

TEST(OperationGate, NestedVisitsAreAllowed) {
  operation_gate gate;
  {
    const operation_gate::visit outer(gate);
    gate.close();
    const operation_gate::visit inner(gate);
    EXPECT_TRUE(gate.closed());
  }
  gate.wait_for_visits();
}

}  // namespace
}  // namespace shale::arrays
