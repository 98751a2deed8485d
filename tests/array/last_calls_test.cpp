// Tests calls on containers while a thread or the process ends.
#include "support/last_calls.hpp"

#include <gtest/gtest.h>

#include <string>

#include "array/test_support.hpp"
#include "shale/container.hpp"
#include "shale/evaluate.hpp"
#include "shale/expr.hpp"
#include "shale/functions.hpp"
#include "shale/memory_pool.hpp"
#include "shale/reduce.hpp"

namespace shale {
namespace {

const char* container_path = nullptr;

bool holds(const array& found, index_t count) {
  const tensor values = found.read();
  return reduce(
             values, 0.0, [](double& to, float x) { to += x; },
             [](double& to, double part) { to += part; }) ==
         static_cast<double>(count * (count - 1) / 2);
}

bool write_and_read() {
  constexpr index_t count = 100'000;
  container file = container::open(container_path, open_mode::write);
  for (const array_kind kind : {array_kind::chunked, array_kind::dense}) {
    const std::string name = "a" + std::to_string(file.latest().generation());
    transaction change = file.begin();
    change.create(name, {.dtype = dtype::float32, .shape = {count}, .kind = kind})
        .write(arange(0, count, 1, dtype::float32));
    change.commit();
    const array made = file.latest().at(name);
    if (!holds(made, count)) return false;
    if (eval(sum(expr(made) * 0)).item() != scalar(0.0F)) return false;
  }
  return true;
}

class LastCalls : public test::fresh_container,
                  public testing::WithParamInterface<test::last_moment> {
 protected:
  LastCalls() { container_path = path_.c_str(); }
};

// thread.1
TEST_P(LastCalls, WriteAndReadArrays) {
  test::expect_last_call(
      GetParam(), [] { write_and_read(); }, write_and_read);
}

TEST_P(LastCalls, MayBeTheFirst) {
  test::expect_last_call(
      GetParam(), [] {}, write_and_read);
}

TEST_P(LastCalls, Compute) {
  const auto compute = [] {
    const tensor ones = eval(expr(tensor::zeros({300, 300}, dtype::float64)) + 1.0);
    if (matmul(ones, ones).at({299, 299}).as<double>() != 300) return false;
    if (eval(sum(expr(ones))).item().as<double>() != 90'000) return false;
    try {
      static_cast<void>(memory_pool({.limit_bytes = 1 << 20}).allocate(std::size_t{2} << 20, 64));
    } catch (const error& failure) {
      return failure.code() == errc::out_of_memory;
    }
    return false;
  };
  test::expect_last_call(
      GetParam(), [] { eval(sum(expr(tensor::zeros({1 << 20}, dtype::float32)) + 1)); }, +compute);
}

INSTANTIATE_TEST_SUITE_P(AtEveryMoment, LastCalls, testing::ValuesIn(test::last_moments));

}  // namespace
}  // namespace shale
