// Chains of views on tensors are replayed by NumPy (replay_views.py).
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "shale/error.hpp"
#include "shale/tensor.hpp"
#include "support/long_run.hpp"
#include "support/npy.hpp"
#include "support/python.hpp"
#include "support/random_layouts.hpp"
#include "support/view_chain.hpp"

namespace shale {
namespace {

using test::index_list;
using test::to_list;

class Numpy : public test::PythonTest {};

std::optional<tensor> try_view(const tensor& source, const dims& shape) {
  try {
    return source.view(shape);
  } catch (const error& failure) {
    EXPECT_EQ(failure.message(), "strides cannot express the view");
    return std::nullopt;
  }
}

tensor as_strided(const tensor& source, const dims& shape, const dims& strides, index_t offset) {
  return source.as_strided(shape, strides, offset);
}

// An index with several entries, written as triples: a position (0, at, 0), a slice to the end (1,
// start, step), a new axis (2, 0, 0), and an ellipsis (3, 0, 0).
struct entries {
  std::vector<index_entry> index;
  std::string line;
};

entries random_entries(test::random_choices& choose, const dims& shape) {
  entries result;
  const auto add = [&result](const index_entry& entry, const index_list& triple) {
    result.index.push_back(entry);
    for (const auto number : triple) result.line += ' ' + std::to_string(number);
  };
  const auto maybe_new_axis = [&] {
    if (shape.size() < 6 && choose(0, 5) == 0) add(newaxis, {2, 0, 0});
  };
  const auto name_axis = [&](index_t extent) {
    maybe_new_axis();
    if (extent > 0 && choose(0, 3) == 0) {
      const index_t position = choose(-extent, extent - 1);
      return add(position, {0, position, 0});
    }
    const index_t steps[] = {-2, -1, 1, 1, 1, 3};
    const index_t start = choose(-extent, extent), step = steps[choose(0, 5)];
    add(slice{.start = start, .step = step}, {1, start, step});
  };
  const index_t front = choose(0, shape.size());
  const index_t back = choose(0, shape.size() - front);
  for (index_t axis = 0; axis < front; ++axis) name_axis(shape[axis]);
  if (back > 0 || choose(0, 2) == 0) add(ellipsis, {3, 0, 0});
  for (index_t axis = shape.size() - back; axis < shape.size(); ++axis) name_axis(shape[axis]);
  maybe_new_axis();
  return result;
}

TEST_F(Numpy, ReplaysChainsOfViewsToTheSameStridesAndElements) {
  const std::pair<dtype, const char*> types[] = {{dtype::uint8, "|u1"},
                                                 {dtype::int16, "<i2"},
                                                 {dtype::float32, "<f4"},
                                                 {dtype::float64, "<f8"},
                                                 {dtype::complex128, "<c16"}};
  test::random_choices choose(77);
  std::ofstream chains(file("chains.txt"));
  const int count = test::run_long() ? 20'000 : 1000;
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
      if (choose(0, 9) == 0) {
        const auto index = random_entries(choose, view.shape());
        view = view.index(index.index);
        chains << "index yes" << index.line << '\n';
        continue;
      }
      const auto held = static_cast<index_t>(view.storage().size_bytes() / view.item_bytes());
      const auto step =
          test::random_step(choose, to_list(view.shape()), {.storage_positions = held});
      const auto next = test::apply_step(view, step, try_view, as_strided);
      const auto space = step.line().find(' ');
      const std::string numbers = space == std::string::npos ? "" : step.line().substr(space);
      chains << step.operation << (next ? " yes" : " no") << numbers << '\n';
      if (next) {
        view = *next;
      } else if (choose(0, 1) == 0) {
        // The copy has a new storage, and the next steps are views of that storage.
        view = view.reshape(test::to_dims(step.numbers));
        chains << "reshape yes" << numbers << '\n';
      }
    }
    const auto print = [&chains](const char* label, const index_list& numbers) {
      chains << label;
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
