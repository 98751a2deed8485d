#include "ops/graph.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <type_traits>

#include "ops/products.hpp"
#include "ops/views.hpp"
#include "shale/error.hpp"

namespace shale::detail {

namespace {

// Whether `held` is the last reference. If so, all that other threads did through theirs happened
// before: use_count() alone does not say so, but giving a reference back acquires what they
// released.
template <class T>
bool is_last(const std::shared_ptr<T>& held) {
  if (held.use_count() != 1) return false;
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): its destructor is what acquires
  { const std::shared_ptr<T> given_back = held; }
  return true;
}

// Moves what the node reads to `into`.
void take_inputs(node& from, std::vector<node_ref>& into) {
  const auto take = [&](node_ref& input) { into.push_back(std::move(input)); };
  if (auto* operation = std::get_if<operation_node>(&from.what)) {
    for (auto& input : operation->inputs) take(input);
  } else if (auto* cast = std::get_if<cast_node>(&from.what)) {
    take(cast->input);
  } else if (auto* gather = std::get_if<gather_leaf>(&from.what)) {
    take(gather->input);
  } else if (auto* concat = std::get_if<concat_leaf>(&from.what)) {
    for (auto& piece : concat->pieces) take(piece);
  } else if (auto* staged = std::get_if<staged_leaf>(&from.what)) {
    // The last to see a stage takes its input too.
    if (!is_last(staged->from)) return;
    auto& made = const_cast<stage&>(*staged->from);
    take(made.input);
    if (made.factor) take(made.factor);
  }
}

}  // namespace

// Nodes that nobody else reads are taken apart here, one after the other, and not by each other.
node::~node() {
  std::vector<node_ref> left;
  take_inputs(*this, left);
  while (!left.empty()) {
    const node_ref last = std::move(left.back());
    left.pop_back();
    if (is_last(last)) take_inputs(const_cast<node&>(*last), left);
  }
}

}  // namespace shale::detail

namespace shale::ops {

using namespace detail;

namespace {

bool is_weak(const node& which) {
  const auto* constant = std::get_if<constant_leaf>(&which.what);
  return constant && constant->weak;
}

// The dtype in which integers meet functions with fractional results.
dtype floating_for(dtype type) {
  if (kind(type) == dtype_kind::floating || kind(type) == dtype_kind::complex) return type;
  return item_bytes(type) <= 2 ? dtype::float32 : dtype::float64;
}

// The dtype of `strong` meeting a number written in C++ (of dtype bool, int64, uint64, float64 or
// complex128).
dtype promote_weak(dtype strong, const scalar& number) {
  const auto rank = [](dtype type) {
    switch (kind(type)) {
      case dtype_kind::boolean:
        return 0;
      case dtype_kind::signed_integer:
      case dtype_kind::unsigned_integer:
        return 1;
      case dtype_kind::floating:
        return 2;
      case dtype_kind::complex:
        return 3;
    }
    return 3;
  };
  if (rank(number.type()) <= rank(strong)) {
    if (rank(strong) == 1 && !number.fits(strong))
      throw error(errc::invalid_argument, "a number does not fit the tensor it meets",
                  {number.to_string() + " is no " + std::string(name(strong)),
                   "cast the tensor to a wider dtype first"});
    return strong;
  }
  switch (rank(number.type())) {
    case 1:
      return number.fits(dtype::int64) ? dtype::int64 : dtype::uint64;
    case 2:
      return floating_for(strong);
    default: {
      const dtype floating = floating_for(strong);
      return floating == dtype::float64 ? dtype::complex128 : dtype::complex64;
    }
  }
}

dtype promote_inputs(const std::vector<node_ref>& inputs) {
  std::optional<dtype> strong;
  for (const auto& input : inputs)
    if (!is_weak(*input)) strong = strong ? promote(*strong, input->type) : input->type;
  std::optional<dtype> result = strong;
  for (const auto& input : inputs) {
    if (!is_weak(*input)) continue;
    const auto& number = std::get<constant_leaf>(input->what).value;
    if (strong) result = promote(*result, promote_weak(*strong, number));
    else result = result ? promote(*result, input->type) : input->type;
  }
  return *result;
}

bool is_floating_function(operation which) {
  return (which >= operation::square_root && which <= operation::hyperbolic_tangent) ||
         which == operation::divide || which == operation::atan2 || which == operation::hypotenuse;
}

bool is_rounding(operation which) {
  return which == operation::floor || which == operation::ceiling || which == operation::truncate ||
         which == operation::round;
}

const char* word(operation which) {
  static constexpr const char* words[] = {
      "+",     "-",        "*",           "/",       "floor_divide", "%",
      "pow",   "atan2",    "hypot",       "minimum", "maximum",      "==",
      "!=",    "<",        "<=",          ">",       ">=",           "&",
      "|",     "^",        "-",           "abs",     "square",       "sign",
      "sqrt",  "exp",      "log",         "log2",    "log10",        "sin",
      "cos",   "tan",      "asin",        "acos",    "atan",         "sinh",
      "cosh",  "tanh",     "floor",       "ceil",    "trunc",        "round",
      "isnan", "isfinite", "logical_not", "~",       "where"};
  static_assert(std::size(words) == static_cast<std::size_t>(operation::count_));
  return words[static_cast<std::size_t>(which)];
}

[[noreturn]] void throw_no_kernel(operation which, dtype type) {
  throw error(errc::invalid_argument,
              "'" + std::string(word(which)) + "' is not defined for " + std::string(name(type)),
              {computes(type) ? "cast the operands to a dtype that it takes"
                              : "this dtype only stores and converts: cast it to float32 first"});
}

// The operand dtype an operation computes in for inputs of dtype `type`, before float16 and
// bfloat16 are widened.
dtype operand_dtype(operation which, dtype type) {
  if (which == operation::divide && kind(type) != dtype_kind::floating &&
      kind(type) != dtype_kind::complex)
    return dtype::float64;
  if (is_floating_function(which)) return floating_for(type);
  return type;
}

bool has_kernel(operation which, dtype type) {
  const dtype computed = type == dtype::float16 || type == dtype::bfloat16 ? dtype::float32 : type;
  return find_kernel(which, computed) != nullptr;
}

// An operation on numbers alone: a number again, so that (1.0 / 3) * x stays in x's dtype.
node_ref folded(operation which, dtype type, const std::vector<node_ref>& numbers) {
  std::array<std::array<std::byte, 16>, 4> bytes{};
  std::array<std::byte*, 4> data{};
  const std::array<index_t, 8> strides{};
  data[0] = bytes[0].data();
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    data[k + 1] = bytes[k + 1].data();
    const dtype wanted = which == operation::select && k == 0 ? dtype::boolean : type;
    const scalar& value = std::get<constant_leaf>(numbers[k]->what).value;
    visit(wanted, computing_types{}, [&]<class T>(std::type_identity<T>) {
      const T element = value.as<T>();
      std::memcpy(data[k + 1], &element, sizeof element);
    });
  }
  find_kernel(which, type)(data.data(), strides.data(), 1, 1);
  const dtype result = result_dtype(which, type);
  const scalar value = visit(result, computing_types{}, [&]<class T>(std::type_identity<T>) {
    T element;
    std::memcpy(&element, data[0], sizeof element);
    return scalar(element);
  });
  return make_constant(value, {}, result, true);
}

node_ref expanded(const node_ref& input, const dims& shape) {
  if (input->shape == shape) return input;
  // What a broadcast would compute again for every repetition is computed once, if it is small.
  constexpr index_t staged_elements_max = index_t{1} << 22;
  node_ref base = input;
  const index_t own = element_count(input->shape);
  if (computes_elements(*input) && own <= staged_elements_max &&
      element_count(shape) >= 2 * std::max<index_t>(own, 1))
    base = make_staged(input);
  return make_view(base, axis_map::identity(base->shape).expand(shape));
}

}  // namespace

bool computes_elements(const node& which) noexcept {
  return std::holds_alternative<operation_node>(which.what) ||
         std::holds_alternative<cast_node>(which.what);
}

std::vector<node_ref> inputs_of(const node& which, walk how) {
  if (const auto* operation = std::get_if<operation_node>(&which.what)) return operation->inputs;
  if (const auto* cast = std::get_if<cast_node>(&which.what)) return {cast->input};
  if (how == walk::within_a_pass) return {};
  if (const auto* staged = std::get_if<staged_leaf>(&which.what)) {
    if (staged->from->factor) return {staged->from->input, staged->from->factor};
    return {staged->from->input};
  }
  return generator_inputs(which);
}

std::vector<node_ref> generator_inputs(const node& leaf) {
  if (const auto* gather = std::get_if<gather_leaf>(&leaf.what)) return {gather->input};
  if (const auto* concat = std::get_if<concat_leaf>(&leaf.what)) return concat->pieces;
  return {};
}

std::vector<node_ref> post_order(const node_ref& root, walk how) {
  struct visit {
    node_ref which;
    std::vector<node_ref> inputs;
    std::size_t next = 0;
  };
  std::vector<node_ref> order;
  std::set<const node*> seen;
  std::vector<visit> open;
  const auto enter = [&](const node_ref& which) {
    if (seen.insert(which.get()).second) open.push_back({which, inputs_of(*which, how)});
  };
  enter(root);
  while (!open.empty()) {
    visit& top = open.back();
    if (top.next < top.inputs.size()) {
      enter(node_ref(top.inputs[top.next++]));  // `enter` may move `top`
    } else {
      order.push_back(std::move(top.which));
      open.pop_back();
    }
  }
  return order;
}

node_ref make_leaf(const tensor& values) {
  return make_node(values.dtype(), values.shape(), tensor_leaf{values});
}

node_ref make_leaf(std::shared_ptr<const tile_source> source) {
  const dtype type = source->dtype();
  const dims shape = source->shape();
  return make_node(type, shape, source_leaf{std::move(source), axis_map::identity(shape)});
}

node_ref make_constant(const scalar& value, const dims& shape, dtype type, bool weak) {
  return make_node(type, shape, constant_leaf{value, weak});
}

node_ref make_cast(const node_ref& input, dtype to) {
  // A number that was cast has the dtype for good, also if it is the one that it had.
  if (const auto* constant = std::get_if<constant_leaf>(&input->what)) {
    const scalar value = visit(to, all_types{}, [&]<class T>(std::type_identity<T>) {
      return scalar(constant->value.as<T>());
    });
    return make_constant(value, input->shape, to, false);
  }
  if (input->type == to) return input;
  return make_node(to, input->shape, cast_node{input});
}

node_ref make_operation(operation which, std::vector<node_ref> inputs) {
  dims shape;
  for (const auto& input : inputs) shape = broadcast_shapes(shape, input->shape);

  dtype type;
  if (which == operation::select) {
    if (inputs[0]->type != dtype::boolean)
      throw error(errc::invalid_argument, "where: the condition must be bool",
                  {"got " + std::string(name(inputs[0]->type)) + "; compare it with something"});
    type = promote_inputs({inputs[1], inputs[2]});
  } else {
    type = operand_dtype(which, promote_inputs(inputs));
  }
  if (is_rounding(which) && kind(type) != dtype_kind::floating && kind(type) != dtype_kind::complex)
    return inputs[0];
  if (!has_kernel(which, type)) throw_no_kernel(which, type);

  if (std::all_of(inputs.begin(), inputs.end(),
                  [](const node_ref& input) { return is_weak(*input); }))
    return folded(which, type, inputs);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const bool condition = which == operation::select && k == 0;
    inputs[k] = expanded(condition ? inputs[k] : make_cast(inputs[k], type), shape);
  }
  dtype result = result_dtype(which, type);
  if (type == dtype::float16 || type == dtype::bfloat16) {
    // Computed in float32 and rounded after each operation.
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (!(which == operation::select && k == 0)) inputs[k] = make_cast(inputs[k], dtype::float32);
    const dtype wide = result_dtype(which, dtype::float32);
    const auto computed = make_node(wide, shape, operation_node{which, std::move(inputs)});
    return wide == dtype::float32 ? make_cast(computed, type) : computed;
  }
  return make_node(result, shape, operation_node{which, std::move(inputs)});
}

node_ref make_staged(const node_ref& input) {
  if (std::holds_alternative<tensor_leaf>(input->what) ||
      std::holds_alternative<staged_leaf>(input->what))
    return input;
  auto from = std::make_shared<const stage>(
      stage{.input = input, .shape = input->shape, .type = input->type});
  return make_node(input->type, input->shape,
                   staged_leaf{std::move(from), axis_map::identity(input->shape)});
}

node_ref make_reduction(const node_ref& input, reduction which, const dims& axes, bool keep_axes,
                        double parameter) {
  dims folded = dims::filled(input->shape.size(), 0);
  for (const index_t entry : axes) {
    const index_t axis = normalize_axis(entry, input->shape.size());
    if (folded[axis]++)
      throw error(errc::invalid_argument, "a reduction names an axis twice",
                  {"axes " + to_string(axes) + " of shape " + to_string(input->shape)});
  }
  const reducer* found = find_reducer(which, input->type);
  if (!found)
    throw error(errc::invalid_argument,
                "the reduction is not defined for " + std::string(name(input->type)),
                {computes(input->type) ? "cast the operand to a dtype that it takes"
                                       : "cast it to float32 first"});
  stage result{.input = input,
               .reduces = true,
               .which = which,
               .parameter = parameter,
               .shape = input->shape,
               .type = found->result};
  index_t count = 1;
  for (index_t axis = 0; axis < input->shape.size(); ++axis) {
    if (!folded[axis]) continue;
    result.axes.push_back(axis);
    result.shape[axis] = 1;
    count *= std::min<index_t>(input->shape[axis], 1);
  }
  if (count == 0 && (which == reduction::minimum || which == reduction::maximum) &&
      element_count(result.shape) > 0)
    throw error(errc::invalid_argument, "min and max of no elements are not defined",
                {"axes " + to_string(result.axes) + " of shape " + to_string(input->shape)});
  const dims shape = result.shape;
  axis_map map = axis_map::identity(shape);
  if (!keep_axes)
    for (index_t i = result.axes.size() - 1; i >= 0; --i) map = map.squeeze(result.axes[i]);
  const dtype type = result.type;
  const dims viewed = map.shape;
  return make_node(type, viewed,
                   staged_leaf{std::make_shared<const stage>(std::move(result)), std::move(map)});
}

node_ref make_product(const node_ref& a, const node_ref& b) {
  const dims shape = product_shape(a->shape, b->shape);
  const dtype type = product_dtype(a->type, b->type);
  auto from = std::make_shared<const stage>(
      stage{.input = make_staged(a), .factor = make_staged(b), .shape = shape, .type = type});
  return make_node(type, shape, staged_leaf{std::move(from), axis_map::identity(shape)});
}

}  // namespace shale::ops
