#include "ops/graph/graph.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>

#include "core/widened.hpp"
#include "ops/graph/views.hpp"
#include "ops/kernels/dispatch/dispatch.hpp"
#include "ops/kernels/operations/operation_facts.hpp"
#include "ops/linalg/products.hpp"
#include "parallel/sources/check_source.hpp"
#include "shale/error.hpp"
#include "shale/tile_source.hpp"

namespace shale::ops {

using namespace detail;

bool is_weak(const node& value) noexcept {
  const auto* constant = std::get_if<constant_leaf>(&value.content);
  return constant && constant->weak;
}

namespace {

// The floating dtype in which a function with fractional results computes for operands of `type`.
dtype floating_for(dtype type) {
  if (is_inexact(type)) return type;
  return item_bytes(type) <= 2 ? dtype::float32 : dtype::float64;
}

// Promotes the dtype of a tensor that meets a number written in C++, whose dtype is bool, int64,
// uint64, float64 or complex128. The number only changes the dtype's kind (bool < integer <
// floating < complex), never its width.
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
  if (rank(number.dtype()) <= rank(strong)) {
    if (rank(strong) == 1 && !number.fits(strong))
      throw error(errc::invalid_argument, "a number does not fit the tensor it meets",
                  {number.to_string() + " cannot be stored as " + std::string(name(strong)),
                   "cast the tensor to a wider dtype first"});
    return strong;
  }
  switch (rank(number.dtype())) {
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

}  // namespace

dtype promoted_dtype(std::span<const node_ref> inputs) {
  const dtype first = inputs[0]->type;
  if (std::all_of(inputs.begin(), inputs.end(),
                  [&](const node_ref& input) { return input->type == first && !is_weak(*input); }))
    return first;
  std::optional<dtype> strong;
  for (const auto& input : inputs)
    if (!is_weak(*input)) strong = strong ? promote(*strong, input->type) : input->type;
  std::optional<dtype> result = strong;
  for (const auto& input : inputs) {
    if (!is_weak(*input)) continue;
    const auto& number = std::get<constant_leaf>(input->content).value;
    if (strong) result = promote(*result, promote_weak(*strong, number));
    else result = result ? promote(*result, input->type) : input->type;
  }
  return *result;
}

namespace {

[[noreturn]] void throw_no_kernel(operation op, dtype type) {
  throw error(
      errc::invalid_argument,
      "'" + std::string(facts_of(op).word) + "' is not defined for " + std::string(name(type)),
      {computes(type) ? "cast the operands to a dtype that it takes"
                      : "this dtype only stores and converts: cast it to float32 first"});
}

[[noreturn]] void throw_undefined(const char* function, dtype type) {
  throw error(
      errc::invalid_argument,
      "'" + std::string(function) + "' is not defined for " + std::string(name(type)),
      {computes(type) ? "cast the operand to a dtype that it takes" : "cast it to float32 first"});
}

// The operand dtype of an operation for inputs of dtype `type`. float16 and bfloat16 are not
// widened yet.
dtype operand_dtype(operation op, dtype type) {
  const operand_rule rule = facts_of(op).operands;
  if (rule == operand_rule::same || rule == operand_rule::rounding) return type;
  const dtype floating = floating_for(type);
  return rule == operand_rule::division && floating != type ? dtype::float64 : floating;
}

// The dtype whose kernel computes an operation: float32 for float16 and bfloat16, unless they have
// kernels of their own.
dtype computing_dtype(operation op, dtype type) {
  return find_kernel(op, type) ? type : widened(type);
}

// Computes an operation on weak constants. The result is a weak constant again, so that (1.0 / 3) *
// x keeps the dtype of x.
node_ref folded(operation op, dtype type, const operation_inputs& numbers) {
  std::array<std::array<std::byte, 16>, 4> bytes{};
  std::array<std::byte*, 4> data{};
  const std::array<index_t, 8> strides{};
  data[0] = bytes[0].data();
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    data[k + 1] = bytes[k + 1].data();
    const dtype wanted = op == operation::select && k == 0 ? dtype::boolean : type;
    const scalar& value = std::get<constant_leaf>(numbers[k]->content).value;
    visit(wanted, computing_types{}, [&]<class T>(std::type_identity<T>) {
      const T element = value.as<T>();
      std::memcpy(data[k + 1], &element, sizeof element);
    });
  }
  find_kernel(op, type)(data.data(), strides.data(), 1, 1);
  const dtype result = result_dtype(op, type);
  const scalar value = visit(result, computing_types{}, [&]<class T>(std::type_identity<T>) {
    T element;
    std::memcpy(&element, data[0], sizeof element);
    return scalar(element);
  });
  return make_constant(value, {}, result, true);
}

// The result of a comparison whose left operand is less than the right one (`is_less`), or greater.
// Nothing if `op` is no comparison.
std::optional<bool> comparison_of_unequal(operation op, bool is_less) {
  switch (op) {
    case operation::equal:
      return false;
    case operation::not_equal:
      return true;
    case operation::less:
    case operation::less_equal:
      return is_less;
    case operation::greater:
    case operation::greater_equal:
      return !is_less;
    default:
      return std::nullopt;
  }
}

// The result of comparing integers with a number that their dtype cannot hold. All elements are
// then on the same side of the number. Nothing if the operation is another one.
std::optional<bool> comparison_out_of_range(operation op, const operation_inputs& inputs) {
  if (inputs.size() != 2 || is_weak(*inputs[0]) == is_weak(*inputs[1])) return std::nullopt;
  const bool number_is_left = is_weak(*inputs[0]);
  const dtype type = inputs[number_is_left ? 1 : 0]->type;
  const scalar& number = std::get<constant_leaf>(inputs[number_is_left ? 0 : 1]->content).value;
  if (!is_integer(type) || !is_integer(number.dtype()) || number.fits(type)) return std::nullopt;
  const bool number_is_negative =
      kind(number.dtype()) == dtype_kind::signed_integer && number.as<std::int64_t>() < 0;
  return comparison_of_unequal(op, number_is_left == number_is_negative);
}

node_ref expanded(const node_ref& input, const dims& shape) {
  if (input->shape == shape) return input;
  // A broadcast value would be computed again for every repetition. If it is small, it is staged.
  constexpr index_t staged_elements_max = index_t{1} << 22;
  node_ref base = input;
  const index_t own = element_count(input->shape);
  const bool computed =
      computes_elements(*input) || std::holds_alternative<random_leaf>(input->content);
  if (computed && own <= staged_elements_max &&
      element_count(shape) >= 2 * std::max<index_t>(own, 1))
    base = make_staged(input);
  return make_view(base, axis_map::identity(base->shape).broadcast_to(shape));
}

}  // namespace

const node* computed_as_a_whole(const stage& made) noexcept {
  const bool is_other = made.reduces || made.scans || made.width > 0 || made.factor;
  return is_other ? nullptr : made.input.get();
}

const indexed_leaf* read_from_tiles(const stage& made) noexcept {
  const node* const whole = computed_as_a_whole(made);
  const auto* leaf = whole ? std::get_if<indexed_leaf>(&whole->content) : nullptr;
  return leaf && std::holds_alternative<source_leaf>(leaf->input->content) ? leaf : nullptr;
}

bool computes_elements(const node& value) noexcept {
  return std::holds_alternative<operation_node>(value.content) ||
         std::holds_alternative<cast_node>(value.content);
}

std::vector<node_ref> inputs_of(const node& value, walk reach) {
  if (const auto* operation = std::get_if<operation_node>(&value.content))
    return {operation->inputs.begin(), operation->inputs.end()};
  if (const auto* cast = std::get_if<cast_node>(&value.content)) return {cast->input};
  if (reach == walk::within_a_pass) return {};
  if (const auto* staged = std::get_if<staged_leaf>(&value.content)) {
    if (staged->from->factor) return {staged->from->input, staged->from->factor};
    return {staged->from->input};
  }
  return generator_inputs(value);
}

std::vector<node_ref> generator_inputs(const node& leaf) {
  if (const auto* repeated = std::get_if<repeated_leaf>(&leaf.content)) return {repeated->input};
  if (const auto* concat = std::get_if<concat_leaf>(&leaf.content)) return concat->pieces;
  if (const auto* indexed = std::get_if<indexed_leaf>(&leaf.content)) {
    std::vector<node_ref> inputs{indexed->input};
    inputs.insert(inputs.end(), indexed->indices.begin(), indexed->indices.end());
    return inputs;
  }
  if (const auto* window = std::get_if<window_leaf>(&leaf.content))
    return {window->input, window->weights};
  return {};
}

std::vector<node_ref> post_order(const node_ref& root, walk reach) {
  std::set<const node*> seen;
  return post_order(root, reach, seen);
}

std::vector<node_ref> post_order(const node_ref& root, walk reach, std::set<const node*>& seen) {
  struct visit {
    node_ref value;
    std::vector<node_ref> inputs;
    std::size_t next = 0;
  };
  std::vector<node_ref> order;
  std::vector<visit> open;
  const auto enter = [&](const node_ref& value) {
    if (seen.insert(value.get()).second) open.push_back({value, inputs_of(*value, reach)});
  };
  enter(root);
  while (!open.empty()) {
    visit& top = open.back();
    if (top.next < top.inputs.size()) {
      enter(node_ref(top.inputs[top.next++]));  // `enter` may move `top`
    } else {
      order.push_back(std::move(top.value));
      open.pop_back();
    }
  }
  return order;
}

node_ref make_leaf(const tensor& values) {
  return std::make_shared<const node>(values.dtype(), values.shape(),
                                      std::in_place_type<tensor_leaf>, values);
}

node_ref make_leaf(std::shared_ptr<const tile_source> source) {
  if (!source)
    throw error(errc::invalid_argument, "there is no tile source to read",
                {"got a null pointer, wanted a source that lives as long as the expression"});
  parallel::check_source(*source);
  const dtype type = source->dtype();
  const dims shape = source->shape();
  return make_node(type, shape, source_leaf{std::move(source), axis_map::identity(shape)});
}

dtype constant_dtype(const scalar& value) noexcept {
  switch (kind(value.dtype())) {
    case dtype_kind::boolean:
      return dtype::boolean;
    case dtype_kind::signed_integer:
      return dtype::int64;
    case dtype_kind::unsigned_integer:
      return value.fits(dtype::int64) ? dtype::int64 : dtype::uint64;
    case dtype_kind::floating:
      return dtype::float64;
    case dtype_kind::complex:
      break;
  }
  return dtype::complex128;
}

node_ref make_constant(const scalar& value, const dims& shape, dtype type, bool weak) {
  return make_node(type, shape, constant_leaf{value, weak});
}

node_ref make_cast(const node_ref& input, dtype to) {
  // A constant that is cast is no longer weak, even if the cast does not change its dtype.
  if (const auto* constant = std::get_if<constant_leaf>(&input->content)) {
    const scalar value = visit(to, all_types{}, [&]<class T>(std::type_identity<T>) {
      return scalar(constant->value.as<T>());
    });
    return make_constant(value, input->shape, to, false);
  }
  if (input->type == to) return input;
  static_cast<void>(item_bytes(to));  // throws if it is not a dtype
  return make_node(to, input->shape, cast_node{input});
}

node_ref make_operation(operation op, operation_inputs inputs) {
  dims shape = inputs[0]->shape;
  for (const auto& input : inputs)
    if (input->shape != shape) shape = broadcast_shapes(shape, input->shape);

  if (const auto known = comparison_out_of_range(op, inputs))
    return make_constant(scalar(*known), shape, dtype::boolean, false);
  dtype type;
  if (op == operation::select) {
    if (inputs[0]->type != dtype::boolean)
      throw error(
          errc::invalid_argument, "where: the condition must be bool",
          {"got " + std::string(name(inputs[0]->type)) + "; compare it first, for example x != 0"});
    type = promoted_dtype(std::span<const node_ref>(inputs.begin() + 1, 2));
  } else {
    type = operand_dtype(op, promoted_dtype(inputs));
  }
  if (facts_of(op).operands == operand_rule::rounding && !is_inexact(type)) return inputs[0];
  const dtype computed_in = computing_dtype(op, type);
  if (!find_kernel(op, computed_in)) throw_no_kernel(op, type);

  if (std::all_of(inputs.begin(), inputs.end(),
                  [](const node_ref& input) { return is_weak(*input); }))
    return folded(op, type, inputs);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const bool condition = op == operation::select && k == 0;
    if (!condition && (inputs[k]->type != type || is_weak(*inputs[k])))
      inputs[k] = make_cast(inputs[k], type);
    if (inputs[k]->shape != shape) inputs[k] = expanded(inputs[k], shape);
  }
  dtype result = result_dtype(op, type);
  if (computed_in != type) {
    // Compute in float32, and round after each operation.
    for (auto& input : inputs) input = make_cast(input, dtype::float32);
    const dtype wide = result_dtype(op, dtype::float32);
    const auto computed = make_node(wide, shape, operation_node{op, std::move(inputs)});
    return wide == dtype::float32 ? make_cast(computed, type) : computed;
  }
  return make_node(result, shape, operation_node{op, std::move(inputs)});
}

namespace {

node_ref staged(const node_ref& input) {
  auto from = std::make_shared<const stage>(
      stage{.input = input, .shape = input->shape, .type = input->type});
  return make_node(input->type, input->shape, staged_leaf{std::move(from)});
}

}  // namespace

node_ref make_staged(const node_ref& input) {
  if (std::holds_alternative<tensor_leaf>(input->content) ||
      std::holds_alternative<staged_leaf>(input->content))
    return input;
  return staged(input);
}

node_ref make_contiguous(const node_ref& input) {
  const auto* own = std::get_if<tensor_leaf>(&input->content);
  const auto* viewed = std::get_if<staged_leaf>(&input->content);
  const bool is_contiguous =
      own ? own->values.is_contiguous() : viewed && !viewed->map && !viewed->under;
  return is_contiguous ? input : staged(input);
}

node_ref make_reduction(const node_ref& input, reduction kind, const dims& axes, bool keep_axes,
                        double parameter) {
  dims folded = dims::filled(input->shape.size(), 0);
  for (const index_t entry : axes) {
    const index_t axis = normalize_axis(entry, input->shape.size());
    if (folded[axis]++)
      throw error(errc::invalid_argument, "a reduction names an axis twice",
                  {"axes " + to_string(axes) + " of shape " + to_string(input->shape)});
  }
  const reducer* found = find_reducer(kind, input->type);
  if (!found) throw_undefined(name_of(kind), input->type);
  stage result{
      .input = input, .reduces = true, .kind = kind, .parameter = parameter, .type = found->result};
  index_t count = 1;
  for (index_t axis = 0; axis < input->shape.size(); ++axis) {
    if (!folded[axis]) {
      result.shape.push_back(input->shape[axis]);
      continue;
    }
    if (keep_axes) result.shape.push_back(1);
    result.axes.push_back(axis);
    count *= std::min<index_t>(input->shape[axis], 1);
  }
  const bool of_extremum = kind == reduction::minimum || kind == reduction::maximum ||
                           kind == reduction::arg_minimum || kind == reduction::arg_maximum;
  if (count == 0 && of_extremum && element_count(result.shape) > 0)
    throw error(errc::invalid_argument,
                "'" + std::string(name_of(kind)) + "' of no elements is not defined",
                {"axes " + to_string(result.axes) + " of shape " + to_string(input->shape)});
  const dims shape = result.shape;
  const dtype type = result.type;
  return make_node(type, shape, staged_leaf{std::make_shared<const stage>(std::move(result))});
}

node_ref make_scan(const node_ref& input, scan kind, index_t axis) {
  const index_t along = normalize_axis(axis, input->shape.size());
  const scanner* found = find_scanner(kind, input->type);
  if (!found) throw_undefined(name_of(kind), input->type);
  auto from = std::make_shared<const stage>(stage{.input = input,
                                                  .axes = {along},
                                                  .scans = kind,
                                                  .shape = input->shape,
                                                  .type = found->result});
  return make_node(found->result, input->shape, staged_leaf{std::move(from)});
}

node_ref make_rolling(const node_ref& input, reduction kind, index_t width, index_t axis) {
  const index_t along = normalize_axis(axis, input->shape.size());
  dims shape = input->shape;
  if (width < 1 || width > shape[along])
    throw error(errc::invalid_argument, "a window needs a width from 1 to the length of its axis",
                {"got width " + std::to_string(width) + " along axis " + std::to_string(along) +
                 " of shape " + to_string(shape)});
  const reducer* found = find_reducer(kind, input->type);
  if (!found) throw_undefined(name_of(kind), input->type);
  shape[along] -= width - 1;
  auto from = std::make_shared<const stage>(stage{.input = make_operand_of_parts(input),
                                                  .kind = kind,
                                                  .axes = {along},
                                                  .width = width,
                                                  .shape = shape,
                                                  .type = found->result});
  return make_node(found->result, shape, staged_leaf{std::move(from)});
}

node_ref make_product(const node_ref& a, const node_ref& b) {
  const dims shape = product_shape(a->shape, b->shape);
  const dtype type = product_dtype(a->type, b->type);
  auto from = std::make_shared<const stage>(
      stage{.input = make_staged(a), .factor = make_staged(b), .shape = shape, .type = type});
  return make_node(type, shape, staged_leaf{std::move(from)});
}

}  // namespace shale::ops
