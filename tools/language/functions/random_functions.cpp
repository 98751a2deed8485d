#include "language/functions/function_tables.hpp"
#include "language/functions/seeded.hpp"
#include "language/values/arguments.hpp"
#include "language/values/value.hpp"
#include "shale/functions.hpp"

namespace shale::tools {

namespace {

dtype type_or(arguments& from, dtype otherwise) { return from.type("dtype").value_or(otherwise); }

// A distribution of two numbers, which have defaults.
template <expr (*draw)(generator&, const dims&, double, double, dtype)>
value of_two(arguments& from, const char* first_name, double first, const char* second_name,
             double second) {
  const dims shape = from.shape("shape");
  first = from.real(first_name, first);
  second = from.real(second_name, second);
  const dtype type = type_or(from, dtype::float64);
  generator source = seeded(from);
  return {draw(source, shape, first, second, type)};
}

value uniform(arguments& from) { return of_two<shale::uniform>(from, "low", 0, "high", 1); }
value normal(arguments& from) { return of_two<shale::normal>(from, "mean", 0, "stddev", 1); }
value log_normal(arguments& from) {
  return of_two<shale::log_normal>(from, "mean", 0, "stddev", 1);
}
value cauchy(arguments& from) { return of_two<shale::cauchy>(from, "median", 0, "scale", 1); }

value exponential(arguments& from) {
  const dims shape = from.shape("shape");
  const double scale = from.real("scale", 1);
  const dtype type = type_or(from, dtype::float64);
  generator source = seeded(from);
  return {shale::exponential(source, shape, scale, type)};
}

// A distribution of a probability.
template <expr (*draw)(generator&, const dims&, double, dtype)>
value of_probability(arguments& from, dtype usual) {
  const dims shape = from.shape("shape");
  const double probability = from.number("probability").as<double>();
  const dtype type = type_or(from, usual);
  generator source = seeded(from);
  return {draw(source, shape, probability, type)};
}

value geometric(arguments& from) { return of_probability<shale::geometric>(from, dtype::int64); }
value bernoulli(arguments& from) { return of_probability<shale::bernoulli>(from, dtype::boolean); }

value integers(arguments& from) {
  const dims shape = from.shape("shape");
  const scalar low = from.number("low");
  const scalar high = from.number("high");
  const dtype type = type_or(from, dtype::int64);
  generator source = seeded(from);
  return {shale::integers(source, shape, low, high, type)};
}

replacement replaced(arguments& from) {
  return from.flag("replace", true) ? replacement::yes : replacement::no;
}

value permutation(arguments& from) {
  const index_t count = from.index("n");
  generator source = seeded(from);
  return {expr(shale::permutation(source, count))};
}

// The language has no tensors to change, so this returns the elements that `shale::shuffle` stores.
value shuffle(arguments& from) {
  const expr a = from.array("a");
  const index_t along = normalize_axis(from.index("axis", 0), a.rank());
  generator source = seeded(from);
  return {shale::take(a, shale::permutation(source, a.shape(along)), along)};
}

// An integer n stands for the integers from 0 to n - 1, as in NumPy.
value choice(arguments& from) {
  const value given = from.required("a");
  const expr a = given.is_integer() ? shale::arange(to_index(given, "choice: 'a'"))
                                    : with_context("choice: 'a'", [&] { return to_expr(given); });
  const index_t count = from.index("count");
  const replacement with = replaced(from);
  const index_t axis = from.index("axis", 0);
  generator source = seeded(from);
  return {shale::choice(source, a, count, with, axis)};
}

value multinomial(arguments& from) {
  const expr weights = from.array("weights");
  const index_t count = from.index("count");
  const replacement with = replaced(from);
  generator source = seeded(from);
  return {expr(shale::multinomial(source, weights, count, with))};
}

}  // namespace

// Distributions are lazy, and so are `shuffle` and `choice`. `multinomial` and permutations, also
// those inside `shuffle` and `choice`, are evaluated when they are parsed.
std::vector<function> random_functions() {
  return {
      {"uniform", uniform, "uniform(shape, low=0, high=1, dtype=float64, *, seed)"},
      {"normal", normal, "normal(shape, mean=0, stddev=1, dtype=float64, *, seed)"},
      {"log_normal", log_normal, "log_normal(shape, mean=0, stddev=1, dtype=float64, *, seed)"},
      {"exponential", exponential, "exponential(shape, scale=1, dtype=float64, *, seed)"},
      {"cauchy", cauchy, "cauchy(shape, median=0, scale=1, dtype=float64, *, seed)"},
      {"geometric", geometric, "geometric(shape, probability, dtype=int64, *, seed)"},
      {"bernoulli", bernoulli, "bernoulli(shape, probability, dtype=bool, *, seed)"},
      {"integers", integers, "integers(shape, low, high, dtype=int64, *, seed)"},
      {"permutation", permutation, "permutation(n, *, seed)"},
      {"shuffle", shuffle, "shuffle(a, axis=0, *, seed)"},
      {"choice", choice, "choice(a, count, replace=True, axis=0, *, seed)"},
      {"multinomial", multinomial, "multinomial(weights, count, replace=True, *, seed)"},
  };
}

}  // namespace shale::tools
