// Tests a sample of kernels and reducers. NumPy recomputes the results from the same bytes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "ops/kernels/blocks.hpp"

namespace shale::test {
namespace {

using ops::operation;
using ops::reduction;

class Numpy : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "shale_numpy_XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
  }
  void TearDown() override {
    const std::string command = "rm -rf '" + directory_ + "'";
    EXPECT_EQ(std::system(command.c_str()), 0);
  }

  void write(const std::string& file, const void* bytes, std::size_t count) {
    std::ofstream(directory_ + "/" + file, std::ios::binary)
        .write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
  }

  /// Runs `script` with `directory` defined and NumPy imported. The test fails if the script fails.
  void check(const std::string& script) {
    std::ofstream(directory_ + "/check.py")
        << "import numpy as np\nnp.seterr(all='ignore')\ndirectory = '" << directory_ << "'\n"
        << "def load(name, dtype): return np.fromfile(f'{directory}/{name}', dtype)\n"
        << script;
    const std::string command = "/usr/bin/python3 '" + directory_ + "/check.py'";
    EXPECT_EQ(std::system(command.c_str()), 0);
  }

  std::string directory_;
};

template <class T>
std::vector<T> values(std::size_t count, unsigned seed) {
  generator random(seed);
  std::vector<T> result(count);
  for (T& value : result) value = some_value<T>(random);
  return result;
}

template <class T>
std::byte* bytes_of(const std::vector<T>& list) {
  return reinterpret_cast<std::byte*>(const_cast<T*>(list.data()));
}

TEST_F(Numpy, AgreesOnArithmetic) {
  constexpr std::size_t count = 20000;
  const auto expect = [&]<class T>(T, const char* type) {
    const std::vector<T> a = values<T>(count, 1), b = values<T>(count, 2);
    write("a", a.data(), count * sizeof(T));
    write("b", b.data(), count * sizeof(T));
    std::string script;
    const auto add = [&](operation op, const char* formula) {
      const ops::kernel kernel = ops::find_kernel(op, dtype_of<T>());
      ASSERT_NE(kernel, nullptr);
      const std::size_t item = item_bytes(ops::result_dtype(op, dtype_of<T>()));
      std::vector<std::byte> out(count * item);
      std::byte* data[] = {out.data(), bytes_of(a), bytes_of(b)};
      const auto in = static_cast<index_t>(sizeof(T));
      const index_t two[] = {static_cast<index_t>(item), in, in, 0, 0, 0};
      const index_t one[] = {static_cast<index_t>(item), in, 0, 0};
      kernel(data, ops::arity(op) == 2 ? two : one, count, 1);
      const std::string file = "out" + std::to_string(static_cast<int>(op));
      write(file, out.data(), out.size());
      script += "wanted = " + std::string(formula) + "\ngot = load('" + file +
                "', wanted.dtype)\nnp.testing.assert_array_equal(got, wanted, '" + formula + "')\n";
    };
    add(operation::add, "a + b");
    add(operation::subtract, "a - b");
    add(operation::multiply, "a * b");
    add(operation::floor_divide, "np.floor_divide(a, b)");
    add(operation::remainder, "np.remainder(a, b)");
    add(operation::truncated_remainder, "np.fmod(a, b)");
    add(operation::minimum, "np.minimum(a, b)");
    add(operation::maximum, "np.maximum(a, b)");
    add(operation::less, "a < b");
    add(operation::equal, "a == b");
    add(operation::negative, "-a");
    add(operation::absolute, "np.abs(a)");
    add(operation::sign, "np.sign(a)");
    if constexpr (std::is_floating_point_v<T>) {
      add(operation::divide, "a / b");
      add(operation::floor, "np.floor(a)");
      add(operation::round, "np.rint(a)");
      add(operation::square_root, "np.sqrt(a)");
      add(operation::copy_sign, "np.copysign(a, b)");
      add(operation::next_after, "np.nextafter(a, b)");
      add(operation::sign_bit, "np.signbit(a)");
    } else {
      add(operation::shift_left, "np.left_shift(a, b)");
      add(operation::shift_right, "np.right_shift(a, b)");
    }
    check("a = load('a', '" + std::string(type) + "')\nb = load('b', '" + type + "')\n" + script);
  };
  expect(std::int8_t{}, "i1");
  expect(std::int32_t{}, "i4");
  expect(std::uint16_t{}, "u2");
  expect(std::int64_t{}, "i8");
  expect(double{}, "f8");
}

TEST_F(Numpy, AgreesOnCastsToFloat16) {
  const std::vector<float> in = values<float>(50000, 3);
  std::vector<std::uint16_t> out(in.size());
  std::byte* data[] = {bytes_of(out), bytes_of(in)};
  const index_t strides[] = {2, 4, 0, 0};
  ops::find_cast(dtype::float32, dtype::float16)(data, strides, static_cast<index_t>(in.size()), 1);
  write("in", in.data(), in.size() * 4);
  write("out", out.data(), out.size() * 2);
  check("np.testing.assert_array_equal(load('out', 'f2'), load('in', 'f4').astype('f2'))\n");
}

TEST_F(Numpy, AgreesOnReductions) {
  generator random(4);
  constexpr index_t rows = 70, columns = 90;
  std::vector<double> in(rows * columns);
  for (double& value : in) value = std::normal_distribution<double>(10, 3)(random);
  write("in", in.data(), in.size() * 8);
  std::string script = "x = load('in', 'f8').reshape(70, 90)\n";
  const std::pair<reduction, const char*> all[] = {
      {reduction::sum, "sum"},      {reduction::product, "prod"}, {reduction::minimum, "min"},
      {reduction::maximum, "max"},  {reduction::mean, "mean"},    {reduction::variance, "var"},
      {reduction::deviation, "std"}};
  for (const auto& [op, function] : all) {
    const ops::reducer& how = *ops::find_reducer(op, dtype::float64);
    const auto bytes = static_cast<index_t>(how.state_bytes);
    for (const int axis : {0, 1}) {
      const index_t kept = axis == 0 ? columns : rows;
      std::vector<std::uint64_t> states(static_cast<std::size_t>(kept) * how.state_bytes / 8);
      std::byte* data[] = {bytes_of(states), bytes_of(in)};
      const index_t strides[] = {axis == 0 ? bytes : 0, 8, axis == 0 ? 0 : bytes, 8 * columns};
      how.start(data[0], kept);
      how.accumulate(data, strides, columns, rows);
      std::vector<double> results(static_cast<std::size_t>(kept));
      how.finish(data[0], bytes_of(results), kept, 0);
      const std::string file = function + std::to_string(axis);
      write(file, results.data(), results.size() * 8);
      script += "np.testing.assert_allclose(load('" + file + "', 'f8'), x." + function +
                "(axis=" + std::to_string(axis) + "), rtol=1e-12)\n";
    }
  }
  check(script);
}

}  // namespace
}  // namespace shale::test
