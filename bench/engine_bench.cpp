// The suite `engine`: work on tensors in memory, large and small, against bare loops over plain
// arrays that move the same bytes, and against Python packages.
//
//   bench_engine [--threads N] [--rounds N] [--only TEXT] [--elements N] [--curve yes]
//                [--python PYTHON --peers PROGRAM]
//
// Large work has 64 Mi elements (`--elements`) and runs on all threads; with `--curve`, on one
// thread, two, four and so on up to all, and works of many sizes are compared with one thread. Its
// limit is the faster of ordinary and non-temporal stores. A few works run on as many bytes of other
// dtypes, too. Small work runs on one thread. Orders of a quarter of the elements are compared with
// std::sort, and sums over windows of a square of all elements with the fastest peer. PROGRAM is
// bench/peers/engine_peers.py, which PYTHON runs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "shale/shale.hpp"
#include "support/bare_loops.hpp"
#include "support/compiled_peers.hpp"
#include "support/contest.hpp"
#include "support/options.hpp"
#include "support/peers.hpp"
#include "support/row.hpp"
#include "support/suite.hpp"

namespace shale::bench {
namespace {

struct settings {
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  int rounds = 7;
  std::string only;
  index_t elements = index_t{1} << 26;
  bool curve = false;
  peer_process* peers = nullptr;
};

// ---- large work ---------------------------------------------------------------------------------

// What a loop at the limit moves: so many elements of float32 are read by each input.
struct traffic {
  std::size_t inputs = 0;
  bool writes = true;
};

struct large_work {
  std::string name;
  traffic moved;
  double reach;  ///< the part of the limit that is asked for, or 0
  std::function<void()> run;
  double part = 1;  ///< the bytes that are moved, as a part of those of the limit's loop
};

// The limit's loops. They use the memory of tensors, so that pages are of one size for all.
class limits {
 public:
  limits(const tensor& out, const std::vector<tensor>& in, int threads)
      : crew_(threads), out_(out.elements<float>()) {
    for (const tensor& values : in) in_.push_back(values.elements<float>());
  }

  double seconds(const traffic& moved, stores how) {
    std::vector<std::span<const float>> inputs(in_.begin(),
                                               in_.begin() + static_cast<long>(moved.inputs));
    return seconds_of([&] {
      if (moved.writes) bare_map(crew_, how, out_, inputs);
      else sink_ = bare_read(crew_, inputs[0]);
    });
  }

 private:
  thread_crew crew_;
  std::span<float> out_;
  std::vector<std::span<const float>> in_;
  volatile float sink_ = 0;
};

void measure(const large_work& work, limits& bare, const compiled_peers* compiled,
             const settings& chosen, int threads) {
  const bool all_threads = threads == chosen.threads;
  std::vector<contender> contenders = {
      {"shale", [&] { return seconds_of(work.run); }},
      {"ordinary", [&] { return bare.seconds(work.moved, stores::ordinary); }}};
  if (work.moved.writes)
    contenders.push_back(
        {"nontemporal", [&] { return bare.seconds(work.moved, stores::nontemporal); }});
  // The peers have the number of threads that they were started with.
  std::string note;
  if (all_threads) note = add_peers(contenders, work.name, chosen.peers);
  if (compiled != nullptr) compiled->add(contenders, work.name);
  const outcome seen = compete(contenders, chosen.rounds);
  const std::string best =
      work.moved.writes ? seen.best({"ordinary", "nontemporal"}) : std::string("ordinary");
  const auto share_of = [&](const ratio& seconds) {
    return ratio{work.part * seconds.median, work.part * seconds.low, work.part * seconds.high};
  };
  const double bytes = 4.0 * static_cast<double>(chosen.elements) *
                       static_cast<double>(work.moved.inputs + (work.moved.writes ? 1 : 0));
  row made{
      .work = all_threads ? work.name : work.name + ", " + std::to_string(threads) + " threads",
      .bytes = static_cast<std::uint64_t>(work.part * bytes),
      .seconds = seen.median("shale"),
      .note = note};
  made.limit = share_of(seen.of(best, "shale"));
  if (work.reach > 0) {
    made.reach = target{*made.limit, work.reach, true, best + " stores"};
    if (!work.moved.writes) made.reach->against = "reading";
  }
  print_with_peers(made, seen, contenders);
}

void large(const settings& chosen, int threads) {
  const index_t n = chosen.elements;
  executor on({.threads = threads});
  const executor::scope bound(on);
  const index_t columns = 8192, rows = n / columns;
  const auto filled = [&](dtype type) {
    const tensor made = tensor::empty({rows, columns}, type);
    eval_into(made, astype(arange(n) % 1000, type).reshape({rows, columns}) * 0.001);
    return made;
  };
  const tensor a = filled(dtype::float32), b = filled(dtype::float32), c = filled(dtype::float32);
  const tensor out = tensor::zeros({rows, columns}, dtype::float32);
  const tensor row = a.narrow(0, 0, 1);
  limits bare(out, {a, b, c}, threads);
  const tensor bytes = eval(astype(expr(a) * 100, dtype::int8));
  const tensor none = tensor::zeros({rows, columns}, dtype::boolean);
  const expr x(a), y(b), z(c);
  const index_t cube = static_cast<index_t>(std::cbrt(static_cast<double>(n)) + 0.5);
  const tensor box = a.reshape({n}).narrow(0, 0, cube * cube * cube).reshape({cube, cube, cube});
  const tensor box_out =
      out.reshape({n}).narrow(0, 0, cube * cube * cube).reshape({cube, cube, cube});
  const auto side = static_cast<index_t>(std::sqrt(static_cast<double>(n)));
  const tensor square = a.reshape({n}).narrow(0, 0, side * side).reshape({side, side});
  const tensor square_out = out.reshape({n}).narrow(0, 0, side * side).reshape({side, side});
  const tensor quarter = tensor::zeros({rows / 2, columns / 2}, dtype::float32);
  const auto every_second = [](const tensor& values) {
    return values.index({slice{.step = 2}, slice{.step = 2}});
  };
  const tensor a2 = every_second(a), b2 = every_second(b);
  const auto scattered = [](index_t count, index_t below) {
    return eval(arange(count) * 2654435761 % below);
  };
  const tensor half = eval((arange(n) * 2654435761 % 1024).reshape({rows, columns}) < 512);
  const tensor flat = a.reshape({n}), flat_out = out.reshape({n});
  const tensor narrow = a.reshape({n / 1024, 1024}), narrow_out = out.reshape({n / 1024, 1024});
  const tensor any_row = scattered(n / 1024, n / 1024), any_element = scattered(n / 16, n);
  generator numbers(1);
  const auto into = [&](const expr& value) { return [&out, value] { eval_into(out, value); }; };
  const auto result = [](const expr& value) { return [value] { eval(value); }; };
  const traffic read{1, false}, write{0, true}, unary{1, true}, binary{2, true}, ternary{3, true};
  const std::vector<large_work> all = {
      {"fill", write, 0.9, [&] { fill(out, 3); }},
      {"copy", unary, 0.9, [&] { copy(out, a); }},
      {"a + b", binary, 0.9, into(x + y)},
      {"a * b + c", ternary, 0.9, into(x * y + z)},
      {"a + row", unary, 0.9, into(x + expr(row))},
      {"int8 -> float32", unary, 0.9, into(astype(bytes, dtype::float32)), 5.0 / 8},
      {"sqrt(a*a + b*b) - c*d", ternary, 0.9, into(sqrt(x * x + y * y) - z * x)},
      {"a + b, new tensor", binary, 0.85, result(x + y)},
      {"sum", read, 0.9, result(sum(x))},
      {"mean, axis 0", read, 0.9, result(mean(x, {0}))},
      {"mean, axis 1", read, 0.9, result(mean(x, {1}))},
      {"min", read, 0.9, result(min(x))},
      {"max", read, 0.9, result(max(x))},
      {"any", read, 0.9, result(any(none)), 0.25},
      {"count_nonzero", read, 0.9, result(count_nonzero(x))},
      {"var, axis 0", read, 0.85, result(var(x, {0}))},
      {"var, axis 1", read, 0.85, result(var(x, {1}))},
      {"stddev", read, 0.85, result(stddev(x))},
      {"exp", unary, 0.85, into(exp(x))},
      {"log", unary, 0.85, into(log(x))},
      {"sqrt", unary, 0.85, into(sqrt(x))},
      {"sin", unary, 0.6, into(sin(x))},
      {"cos", unary, 0.6, into(cos(x))},
      {"tanh", unary, 0.6, into(tanh(x))},
      {"transposed copy", unary, 0.6,
       [&] {
         copy(square_out, square.permute_dims({1, 0}));
       }},
      {"permute (2, 0, 1)", unary, 0.55,
       [&] {
         copy(box_out, box.permute_dims({2, 0, 1}));
       }},
      // Every second row is moved, in whole cache lines: half of each input, a quarter of the
      // output.
      {"a[::2, ::2] + b[::2, ::2]", binary, 0.7, [&] { eval_into(quarter, expr(a2) + expr(b2)); },
       1.25 / 3},
      {"argmin", read, 0.85, result(argmin(x))},
      {"argmax", read, 0.85, result(argmax(x))},
      {"cumulative_sum", unary, 0.6, [&] { eval_into(flat_out, cumulative_sum(expr(flat))); }},
      // A mask has a byte for each element, and an index has eight; half of the elements are true.
      {"masked_select, half", unary, 0.35, [&] { masked_select(x, expr(half)); }, 7.0 / 8},
      {"nonzero, half", unary, 0.35, [&] { nonzero(expr(half).reshape({n})); }, 5.0 / 8},
      {"take, rows of 4 KiB", unary, 0.85,
       [&] { eval_into(narrow_out, take(expr(narrow), expr(any_row), 0)); }},
      // A line of the cache for each element, its index, and the element that is written.
      {"take, single elements", unary, 0, [&] { eval(take(expr(flat), expr(any_element), 0)); },
       76.0 / 8 / 16},
      {"uniform", write, 0.5,
       [&] {
         eval_into(out, uniform(numbers, {rows, columns}, 0, 1, dtype::float32));
       }},
      {"normal", write, 0.25,
       [&] {
         eval_into(out, normal(numbers, {rows, columns}, 0, 1, dtype::float32));
       }},
  };
  const auto memory = [](const tensor& values) {
    return reinterpret_cast<float*>(const_cast<std::byte*>(values.data()));
  };
  std::optional<compiled_peers> compiled;
  if (threads == chosen.threads && chosen.peers != nullptr)
    compiled.emplace(peer_arrays{.rows = static_cast<std::size_t>(rows),
                                 .columns = static_cast<std::size_t>(columns),
                                 .side = static_cast<std::size_t>(side),
                                 .cube = static_cast<std::size_t>(cube),
                                 .out = memory(out),
                                 .a = memory(a),
                                 .b = memory(b),
                                 .c = memory(c)},
                     threads);
  for (const large_work& work : all)
    if (work.name.find(chosen.only) != std::string::npos)
      measure(work, bare, compiled ? &*compiled : nullptr, chosen, threads);
}

// The same works on other dtypes, in as many bytes. Four fifths of what float32 reaches are asked.
void other_dtypes(const settings& chosen) {
  executor on({.threads = chosen.threads});
  const executor::scope bound(on);
  const tensor a = tensor::zeros({chosen.elements}, dtype::float32);
  const tensor b = tensor::zeros({chosen.elements}, dtype::float32);
  const tensor out = tensor::zeros({chosen.elements}, dtype::float32);
  limits bare(out, {a, b}, chosen.threads);
  for (const dtype type :
       {dtype::float64, dtype::int32, dtype::float16, dtype::bfloat16, dtype::complex64}) {
    const auto as_type = [&](const tensor& values) {
      const auto count = static_cast<index_t>(values.size_bytes() / item_bytes(type));
      return tensor(values.storage(), type, layout({count}));
    };
    const tensor first = as_type(a), second = as_type(b), to = as_type(out);
    fill(first, 1);
    fill(second, 2);
    const expr x(first), y(second);
    const std::string comma = ", " + std::string(name(type));
    std::vector<large_work> all = {
        {"fill" + comma, {0, true}, 0.72, [&] { fill(to, 3); }},
        {"copy" + comma, {1, true}, 0.72, [&] { copy(to, first); }},
        {"a + b" + comma, {2, true}, 0.72, [&] { eval_into(to, x + y); }},
        {"sum" + comma, {1, false}, 0.72, [&] { eval(sum(x)); }},
    };
    if (is_inexact(type))
      all.push_back({"exp" + comma, {1, true}, 0.68, [&] { eval_into(to, exp(x)); }});
    for (const large_work& work : all)
      if (work.name.find(chosen.only) != std::string::npos)
        measure(work, bare, nullptr, chosen, chosen.threads);
  }
}

// ---- orders -------------------------------------------------------------------------------------

// A quarter of the elements in no order, against the standard library's sort on one thread.
void orders(const settings& chosen) {
  executor on({.threads = chosen.threads});
  const executor::scope bound(on);
  const index_t n = chosen.elements / 4;
  generator numbers(1);
  const tensor x = eval(normal(numbers, {n}, 0, 1, dtype::float32));
  const std::span<const float> values = x.elements<float>();
  std::vector<float> copy(values.begin(), values.end());
  struct order_work {
    std::string name;
    std::function<void()> run;
  };
  const std::vector<order_work> all = {
      {"sort", [&] { sort(x); }},
      {"argsort", [&] { argsort(x); }},
      {"topk 100", [&] { topk(x, 100); }},
      {"median", [&] { median(x); }},
      {"histogram, 256 bins",
       [&] {
         histogram(x, 256, {.range = value_range{-4, 4}});
       }},
  };
  for (const order_work& work : all) {
    if (work.name.find(chosen.only) == std::string::npos) continue;
    std::vector<contender> contenders = {
        {"shale", [&] { return seconds_of(work.run); }},
        {"std::sort", [&] {
           std::copy(values.begin(), values.end(), copy.begin());
           return seconds_of([&] { std::sort(copy.begin(), copy.end()); });
         }}};
    const std::string note = add_peers(contenders, work.name, chosen.peers);
    const outcome seen = compete(contenders, chosen.rounds);
    row made{.work = work.name,
             .bytes = static_cast<std::uint64_t>(n) * sizeof(float),
             .seconds = seen.median("shale"),
             .note = note};
    made.peers["std::sort"] = seen.of("std::sort", "shale");
    made.reach = target{seen.of("std::sort", "shale"), 4, true, "std::sort"};
    print_with_peers(made, seen, contenders);
  }
}

// ---- windows ------------------------------------------------------------------------------------

// Windows over a square of all elements, and over the corner of it.
void windows(const settings& chosen) {
  executor on({.threads = chosen.threads});
  const executor::scope bound(on);
  const auto side = static_cast<index_t>(std::sqrt(static_cast<double>(chosen.elements)));
  const auto small = std::min<index_t>(side, 1024), middle = std::min<index_t>(side, 2048);
  generator numbers(1);
  const tensor square = eval(normal(numbers, {side, side}, 0, 1, dtype::float32));
  const tensor corner = square.narrow(0, 0, small).narrow(1, 0, small).contiguous();
  const tensor part = square.narrow(0, 0, middle).narrow(1, 0, middle).contiguous();
  const auto kernel = [&](index_t k) {
    return eval(normal(numbers, {k, k}, 0, 1, dtype::float32));
  };
  const tensor kernel_3 = kernel(3), kernel_15 = kernel(15), kernel_257 = kernel(257);
  struct window_work {
    std::string name;
    index_t elements;
    std::function<expr()> value;
  };
  const std::vector<window_work> all = {
      {"correlate, 3 x 3", side * side, [&] { return correlate(square, kernel_3); }},
      {"correlate, 15 x 15", small * small, [&] { return correlate(corner, kernel_15); }},
      {"convolve by FFT, 257 x 257", middle * middle,
       [&] { return convolve(part, kernel_257, window_mode::full, window_method::fft); }},
      {"rolling_mean of 30", side * side, [&] { return rolling_mean(square, 30); }},
  };
  for (const window_work& work : all) {
    if (work.name.find(chosen.only) == std::string::npos) continue;
    const tensor out = eval(work.value());
    std::vector<contender> contenders = {
        {"shale", [&] { return seconds_of([&] { eval_into(out, work.value()); }); }}};
    const std::string note = add_peers(contenders, work.name, chosen.peers);
    const outcome seen = compete(contenders, chosen.rounds);
    row made{.work = work.name,
             .bytes = static_cast<std::uint64_t>(work.elements) * sizeof(float),
             .seconds = seen.median("shale"),
             .note = note};
    if (const auto peers = peers_among(contenders); !peers.empty()) {
      const std::string best = seen.best(peers);
      made.reach = target{seen.of(best, "shale"), 1, true, "the fastest peer, " + best};
    }
    print_with_peers(made, seen, contenders);
  }
}

// ---- small work ---------------------------------------------------------------------------------

struct small_work {
  std::string name;
  double nanoseconds;  ///< at most so many, or 0
  std::function<void()> run;
  std::function<void()> loop{};  ///< the bare loop, if there is one
};

void measure(const small_work& work, const settings& chosen) {
  std::vector<contender> contenders = {{"shale", [&] { return seconds_of_one(work.run); }}};
  if (work.loop) contenders.push_back({"loop", [&] { return seconds_of_one(work.loop); }});
  const std::string note = add_peers(contenders, work.name, chosen.peers);
  const outcome seen = compete(contenders, std::max(chosen.rounds, 15));
  row made{.work = work.name, .seconds = seen.median("shale"), .note = note};
  if (work.loop) {
    made.reach = target{seen.of("shale", "loop"), 1.15, false, "a loop"};
  } else {
    const double taken = seen.median("shale") * 1e9;
    made.reach = target{{taken, taken, taken}, work.nanoseconds, false, "1 ns"};
  }
  print_with_peers(made, seen, contenders);
}

void small(const settings& chosen) {
  executor on({.threads = chosen.threads});
  const executor::scope bound(on);
  const tensor a = tensor::full({8}, 1.5, dtype::float32);
  const tensor b = tensor::full({8}, 2.5, dtype::float32);
  const tensor out = tensor::zeros({8}, dtype::float32);
  const expr kept = expr(a) + expr(b);
  constexpr index_t many = 16384;
  const tensor x = tensor::full({many}, 1.5, dtype::float32);
  const tensor y = tensor::full({many}, 2.5, dtype::float32);
  const tensor to = tensor::zeros({many}, dtype::float32);
  std::vector<float> xs(many, 1.5F), ys(many, 2.5F), zs(many);
  volatile float sink = 0;
  const auto add = [](float& z, float p, float q) { z = p + q; };
  const std::vector<small_work> all = {
      {"8 elements: apply", 150, [&] { apply(add, out, a, b); }},
      {"8 elements: copy", 200, [&] { copy(out, a); }},
      {"8 elements: fill", 200, [&] { fill(out, 3.0); }},
      {"8 elements: a + b, built anew", 400, [&] { eval_into(out, expr(a) + expr(b)); }},
      {"8 elements: a + b, kept", 200, [&] { eval_into(out, kept); }},
      {"8 elements: sum", 400, [&] { eval(sum(expr(a))); }},
      {"16 Ki elements: a + b", 0, [&] { eval_into(to, expr(x) + expr(y)); },
       [&] { bare_add(zs, xs, ys); }},
      {"16 Ki elements: copy", 0, [&] { copy(to, x); },
       [&] { std::memcpy(zs.data(), xs.data(), many * sizeof(float)); }},
      {"16 Ki elements: fill", 0, [&] { fill(to, 3.0); },
       [&] { std::fill(zs.begin(), zs.end(), static_cast<float>(sink)); }},
      {"16 Ki elements: sum", 0, [&] { eval(sum(expr(x))); }, [&] { sink = bare_sum(xs); }},
  };
  for (const small_work& work : all)
    if (work.name.find(chosen.only) != std::string::npos) measure(work, chosen);
}

// ---- from few elements to many ------------------------------------------------------------------

// Works of many sizes on all threads, against the same on one: more threads must never be slower.
void sizes(const settings& chosen) {
  executor all({.threads = chosen.threads}), one({.threads = 1});
  for (index_t n = 4096; n <= (index_t{1} << 24); n *= 4) {
    const tensor x = tensor::full({n}, 1.5, dtype::float32);
    const tensor y = tensor::full({n}, 2.5, dtype::float32);
    const tensor to = tensor::zeros({n}, dtype::float32);
    const std::string size = n < 1 << 20 ? std::to_string(n >> 10) + " Ki elements, all threads: "
                                         : std::to_string(n >> 20) + " Mi elements, all threads: ";
    const std::vector<std::pair<std::string, std::function<void()>>> works = {
        {"a + b", [&] { eval_into(to, expr(x) + expr(y)); }},
        {"copy", [&] { copy(to, x); }},
        {"fill", [&] { fill(to, 3.0); }},
        {"sum", [&] { eval(sum(expr(x))); }},
        {"exp", [&] { eval_into(to, exp(expr(x))); }},
    };
    for (const auto& work : works) {
      if ((size + work.first).find(chosen.only) == std::string::npos) continue;
      const auto seconds_on = [&](executor& on) {
        const executor::scope bound(on);
        return seconds_of_one(work.second);
      };
      const outcome seen = compete(
          {{"shale", [&] { return seconds_on(all); }}, {"one", [&] { return seconds_on(one); }}},
          std::max(chosen.rounds, 15));
      print({.work = size + work.first,
             .bytes = static_cast<std::uint64_t>(n) * sizeof(float),
             .seconds = seen.median("shale"),
             .reach = target{seen.of("shale", "one"), 1, false, "one thread"}});
    }
  }
}

int run(std::span<char*> arguments) {
  const options given(arguments.subspan(1), {"--threads", "--rounds", "--only", "--elements",
                                             "--curve", "--python", "--peers"});
  settings chosen;
  chosen.threads = static_cast<int>(given.number("--threads", chosen.threads));
  chosen.rounds = static_cast<int>(given.number("--rounds", chosen.rounds));
  chosen.only = given.text("--only", chosen.only);
  chosen.elements = given.number("--elements", chosen.elements);
  chosen.curve = given.text("--curve", "no") == "yes";
  const std::unique_ptr<peer_process> peers =
      given.start_peers({std::to_string(chosen.threads), std::to_string(chosen.elements)});
  chosen.peers = peers.get();
  small(chosen);
  if (chosen.curve) {
    sizes(chosen);
    for (int threads = 1; threads < chosen.threads; threads *= 2) large(chosen, threads);
  }
  large(chosen, chosen.threads);
  other_dtypes(chosen);
  orders(chosen);
  windows(chosen);
  return 0;
}

}  // namespace
}  // namespace shale::bench

int main(int count, char** arguments) {
  return shale::bench::run_suite(shale::bench::run, count, arguments);
}
