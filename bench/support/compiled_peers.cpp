#include "support/compiled_peers.hpp"

#include <functional>
#include <map>
#include <optional>
#include <utility>

#ifdef SHALE_BENCH_EIGEN
#define EIGEN_USE_THREADS
#include <unsupported/Eigen/CXX11/Tensor>
#endif

#ifdef SHALE_BENCH_XTENSOR
#define XTENSOR_USE_XSIMD
#define XTENSOR_USE_TBB
#include <tbb/global_control.h>

#include <xtensor/xadapt.hpp>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xsort.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif

namespace shale::bench {

namespace {

using works = std::map<std::string, std::function<void()>>;

#ifdef SHALE_BENCH_EIGEN
template <int rank>
using eigen_out = Eigen::TensorMap<Eigen::Tensor<float, rank, Eigen::RowMajor>, Eigen::Aligned>;
template <int rank>
using eigen_in =
    Eigen::TensorMap<const Eigen::Tensor<float, rank, Eigen::RowMajor>, Eigen::Aligned>;
template <int rank>
using eigen_result = Eigen::Tensor<float, rank, Eigen::RowMajor>;

class eigen {
 public:
  eigen(const peer_arrays& arrays, int threads)
      : pool_(threads), device_(&pool_, threads), arrays_(arrays) {}

  works all() {
    const auto rows = static_cast<Eigen::Index>(arrays_.rows);
    const auto columns = static_cast<Eigen::Index>(arrays_.columns);
    const auto side = static_cast<Eigen::Index>(arrays_.side);
    const auto cube = static_cast<Eigen::Index>(arrays_.cube);
    const eigen_in<2> a(arrays_.a, rows, columns), b(arrays_.b, rows, columns),
        c(arrays_.c, rows, columns), row(arrays_.a, Eigen::Index{1}, columns);
    const auto out = [this, rows, columns] { return eigen_out<2>(arrays_.out, rows, columns); };
    auto& on = device_;
    const Eigen::array<Eigen::Index, 2> as_row{rows, 1}, second{2, 2}, turned{1, 0};
    const Eigen::array<Eigen::Index, 1> axis_0{0}, axis_1{1};
    return {
        {"fill", [=, &on] { out().device(on) = a.constant(3); }},
        {"copy", [=, &on] { out().device(on) = a; }},
        {"a + b", [=, &on] { out().device(on) = a + b; }},
        {"a * b + c", [=, &on] { out().device(on) = a * b + c; }},
        {"a + row", [=, &on] { out().device(on) = a + row.broadcast(as_row); }},
        {"sqrt(a*a + b*b) - c*d", [=, &on] { out().device(on) = (a * a + b * b).sqrt() - c * a; }},
        {"sum", [=, &on] { keep<0>([&](auto& to) { to.device(on) = a.sum(); }); }},
        {"mean, axis 0",
         [=, &on] { keep<1>([&](auto& to) { to.device(on) = a.mean(axis_0); }, columns); }},
        {"mean, axis 1",
         [=, &on] { keep<1>([&](auto& to) { to.device(on) = a.mean(axis_1); }, rows); }},
        {"min", [=, &on] { keep<0>([&](auto& to) { to.device(on) = a.minimum(); }); }},
        {"max", [=, &on] { keep<0>([&](auto& to) { to.device(on) = a.maximum(); }); }},
        {"exp", [=, &on] { out().device(on) = a.exp(); }},
        {"log", [=, &on] { out().device(on) = a.log(); }},
        {"sqrt", [=, &on] { out().device(on) = a.sqrt(); }},
        {"tanh", [=, &on] { out().device(on) = a.tanh(); }},
        {"sin",
         [=, &on] { out().device(on) = a.unaryExpr(Eigen::internal::scalar_sin_op<float>()); }},
        {"cos",
         [=, &on] { out().device(on) = a.unaryExpr(Eigen::internal::scalar_cos_op<float>()); }},
        {"transposed copy",
         [=, &on, this] {
           const eigen_in<2> from(arrays_.a, side, side);
           eigen_out<2>(arrays_.out, side, side).device(on) = from.shuffle(turned);
         }},
        {"permute (2, 0, 1)",
         [=, &on, this] {
           const Eigen::array<Eigen::Index, 3> order{2, 0, 1};
           const eigen_in<3> from(arrays_.a, cube, cube, cube);
           eigen_out<3>(arrays_.out, cube, cube, cube).device(on) = from.shuffle(order);
         }},
        {"a[::2, ::2] + b[::2, ::2]",
         [=, &on, this] {
           eigen_out<2>(arrays_.out, rows / 2, columns / 2).device(on) =
               a.stride(second) + b.stride(second);
         }},
    };
  }

 private:
  // Computes a new result, as the other peers do.
  template <int rank, class Compute, class... Extents>
  static void keep(Compute compute, Extents... extents) {
    eigen_result<rank> made(extents...);
    compute(made);
    volatile float first = made.data()[0];
    static_cast<void>(first);
  }

  Eigen::ThreadPool pool_;
  Eigen::ThreadPoolDevice device_;
  const peer_arrays arrays_;
};
#endif

#ifdef SHALE_BENCH_XTENSOR
class xtensor {
 public:
  xtensor(const peer_arrays& arrays, int threads)
      : limit_(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads)),
        arrays_(arrays) {}

  works all() {
    const auto map = [](auto* first, std::size_t rows, std::size_t columns) {
      return xt::adapt(first, rows * columns, xt::no_ownership(),
                       std::array<std::size_t, 2>{rows, columns});
    };
    const std::size_t rows = arrays_.rows, columns = arrays_.columns, side = arrays_.side;
    const auto a = map(arrays_.a, rows, columns), b = map(arrays_.b, rows, columns),
               c = map(arrays_.c, rows, columns), row = map(arrays_.a, 1, columns),
               square = map(arrays_.a, side, side);
    auto out = map(arrays_.out, rows, columns);
    auto square_out = map(arrays_.out, side, side);
    constexpr auto now = xt::evaluation_strategy::immediate;
    const auto second = [](const auto& values) {
      return xt::strided_view(values, {xt::range(xt::placeholders::_, xt::placeholders::_, 2),
                                       xt::range(xt::placeholders::_, xt::placeholders::_, 2)});
    };
    auto quarter = map(arrays_.out, rows / 2, columns / 2);
    return {
        {"fill", [=]() mutable { out.fill(3); }},
        {"copy", [=]() mutable { xt::noalias(out) = a; }},
        {"a + b", [=]() mutable { xt::noalias(out) = a + b; }},
        {"a * b + c", [=]() mutable { xt::noalias(out) = a * b + c; }},
        {"a + row", [=]() mutable { xt::noalias(out) = a + row; }},
        {"sqrt(a*a + b*b) - c*d",
         [=]() mutable { xt::noalias(out) = xt::sqrt(a * a + b * b) - c * a; }},
        {"sum", [=] { sink_ = xt::sum<float>(a, now)(); }},
        {"mean, axis 0", [=] { sink_ = xt::xtensor<float, 1>(xt::mean<float>(a, {0}, now))(0); }},
        {"mean, axis 1", [=] { sink_ = xt::xtensor<float, 1>(xt::mean<float>(a, {1}, now))(0); }},
        {"exp", [=]() mutable { xt::noalias(out) = xt::exp(a); }},
        {"log", [=]() mutable { xt::noalias(out) = xt::log(a); }},
        {"sqrt", [=]() mutable { xt::noalias(out) = xt::sqrt(a); }},
        {"sin", [=]() mutable { xt::noalias(out) = xt::sin(a); }},
        {"cos", [=]() mutable { xt::noalias(out) = xt::cos(a); }},
        {"tanh", [=]() mutable { xt::noalias(out) = xt::tanh(a); }},
        {"transposed copy", [=]() mutable { xt::noalias(square_out) = xt::transpose(square); }},
        {"a[::2, ::2] + b[::2, ::2]",
         [=]() mutable { xt::noalias(quarter) = second(a) + second(b); }},
    };
  }

 private:
  static inline volatile float sink_ = 0;

  tbb::global_control limit_;
  const peer_arrays arrays_;
};
#endif

}  // namespace

struct compiled_peers::libraries {
  libraries([[maybe_unused]] const peer_arrays& arrays, [[maybe_unused]] int threads) {
#ifdef SHALE_BENCH_EIGEN
    own_eigen = std::make_unique<eigen>(arrays, threads);
    all["Eigen"] = own_eigen->all();
#endif
#ifdef SHALE_BENCH_XTENSOR
    own_xtensor = std::make_unique<xtensor>(arrays, threads);
    all["xtensor"] = own_xtensor->all();
#endif
  }
#ifdef SHALE_BENCH_EIGEN
  std::unique_ptr<eigen> own_eigen;
#endif
#ifdef SHALE_BENCH_XTENSOR
  std::unique_ptr<xtensor> own_xtensor;
#endif
  std::map<std::string, works> all;
};

compiled_peers::compiled_peers(const peer_arrays& arrays, int threads)
    : libraries_(std::make_unique<libraries>(arrays, threads)) {}
compiled_peers::~compiled_peers() = default;

void compiled_peers::add(std::vector<contender>& contenders, const std::string& work) const {
  for (const auto& [name, works] : libraries_->all)
    if (const auto found = works.find(work); found != works.end())
      contenders.push_back({name, [run = found->second] { return seconds_of(run); }, true});
}

}  // namespace shale::bench
