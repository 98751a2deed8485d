// Chains of views on tensors, replayed by NumPy (replay_views.py).
#include <gtest/gtest.h>

#include <fstream>

#include "shale/error.hpp"
#include "shale/tensor.hpp"
#include "support/npy.hpp"
#include "support/python.hpp"
#include "support/random_layouts.hpp"
#include "support/view_chain.hpp"

namespace shale {
namespace {

using test::index_list;
using test::to_list;

class Numpy : public test::PythonTest {};

std::optional<tensor> try_view(const tensor& from, const dims& shape) {
  try {
    return from.view(shape);
  } catch (const error& failure) {
    EXPECT_EQ(failure.message(), "strides cannot express the view");
    return std::nullopt;
  }
}

tensor as_strided(const tensor& from, const dims& shape, const dims& strides, index_t offset) {
  return from.as_strided(shape, strides, offset);
}

TEST_F(Numpy, ReplaysChainsOfViewsToTheSameStridesAndElements) {
  const std::pair<dtype, const char*> types[] = {{dtype::uint8, "|u1"},
                                                 {dtype::int16, "<i2"},
                                                 {dtype::float32, "<f4"},
                                                 {dtype::float64, "<f8"},
                                                 {dtype::complex128, "<c16"}};
  test::random_choices choose(77);
  std::ofstream chains(file("chains.txt"));
  const int count = 1000;
  for (int chain = 0; chain < count; ++chain) {
    const auto [type, descr] = types[chain % 5];
    const std::string name = "c" + std::to_string(chain);
    const index_t positions = choose(1, 300);
    tensor whole = tensor::empty({positions}, type);
    for (std::size_t i = 0; i < whole.size_bytes(); ++i)
      whole.data()[i] = static_cast<std::byte>(choose(0, 255));
    test::write_npy(file(name + ".storage.npy"), descr, {positions}, whole.data(),
                    whole.size_bytes());
    chains << "chain " << name << '\n';
    tensor view = whole;
    for (index_t steps = choose(1, 8); steps > 0; --steps) {
      const auto step =
          test::random_step(choose, to_list(view.shape()), {.storage_positions = positions});
      const auto next = test::apply_step(view, step, try_view, as_strided);
      const auto space = step.line().find(' ');
      const std::string numbers = space == std::string::npos ? "" : step.line().substr(space);
      chains << step.operation << (next ? " yes" : " no") << numbers << '\n';
      if (next) view = *next;
    }
    const auto print = [&chains](const char* what, const index_list& numbers) {
      chains << what;
      for (const auto number : numbers) chains << ' ' << number;
      chains << '\n';
    };
    print("shape", to_list(view.shape()));
    print("strides", to_list(view.strides()));
    print("offset", {view.offset()});
    chains << "end\n";
    const tensor copy = view.clone();
    test::write_npy(file(name + ".npy"), descr, to_list(view.shape()), copy.data(),
                    copy.size_bytes());
  }
  chains.close();
  std::ofstream(file("count.txt")) << count;
  expect_success(SHALE_TENSOR_TESTS "/replay_views.py");
}

}  // namespace
}  // namespace shale
