#include "ops/evaluation/compile.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "ops/evaluation/gathered_inputs.hpp"
#include "ops/kernels/dispatch/dispatch.hpp"
#include "ops/kernels/operations/operation_facts.hpp"
#include "ops/leaves/generate.hpp"
#include "parallel/blocks/block_copy.hpp"
#include "parallel/pass/copy.hpp"
#include "parallel/pass/pass_loop.hpp"
#include "parallel/plan/plan.hpp"
#include "shale/error.hpp"

namespace shale::ops {

using namespace detail;

namespace {

pass_operand operand_of(const wanted_output& output) {
  if (output.sink) return {.tiles = parallel::tiled_elements{.sink = output.sink}, .written = true};
  return {.values = output.target, .written = true};
}

// A tape, and the different leaves that it reads. Their operand numbers follow those of the
// outputs.
struct compiled {
  tape program;
  std::vector<node_ref> leaves;
};

// Identifies a computed value: the operation (-1 for a cast), its dtype, and the values that it
// reads. Two values with equal keys are equal.
using value_key = std::tuple<int, int, std::vector<int>>;

}  // namespace

// Builds a tape in two steps. `visit` walks the graph from inputs to results. It gives every
// different value a number: a leaf, a constant, or the result of a step. A value that has a number
// already, by its node or by its key, is not computed again (tape.1). `finish` then assigns scratch
// slots to the results of steps, in the order of the steps: a slot is free again after the last
// step that reads its value, and the next result takes it. So the number of slots is the largest
// number of values alive at once.
class tape_builder {
 public:
  tape_builder(const staged_values& staged, int outputs, const std::vector<tensor>& written,
               executor& on)
      : staged_(staged), outputs_(outputs), gathered_(written, on) {}

  int visit(const node_ref& value);
  void write(int value, int output, dtype type);
  compiled finish(const std::vector<int>& kept);

 private:
  // A value: a leaf operand, a constant, or the result of a step.
  struct value_origin {
    reg::location place;
    int index;  // number of the operand, the constant, or the step
    dtype type;
  };
  struct step {
    kernel run;
    const leaf_generator* fill;
    std::vector<int> inputs;  // numbers of values
    int result;               // number of the value
    int output = -1;          // number of the output operand that it writes directly, or -1
    std::optional<operation> op = std::nullopt;  // what the kernel computes, if it is one operation
  };

  int add_leaf(const node_ref& value);
  int add_step(kernel run, const leaf_generator* fill, std::vector<int> inputs, dtype type);

  step* product_for(const std::vector<int>& readers, const step& sum, std::size_t place);
  void join_products(const std::vector<int>& kept);

  const staged_values& staged_;
  const int outputs_;
  gathered_inputs gathered_;
  tape_parts parts_;
  std::vector<node_ref> leaves_;
  std::vector<int> leaf_values_;  // the numbers of their values
  std::vector<value_origin> values_;
  std::vector<step> steps_;
  std::map<const node*, int> seen_;
  std::map<value_key, int> known_;
  std::map<std::pair<dtype, std::array<std::byte, 16>>, int> constants_;
};

int tape_builder::add_leaf(const node_ref& value) {
  const tensor* own = nullptr;
  tensor from_stage;
  if (!std::holds_alternative<source_leaf>(value->content)) {
    from_stage = tensor_of(*value, staged_);
    own = &from_stage;
  }
  for (std::size_t k = 0; k < leaves_.size(); ++k) {
    const node& other = *leaves_[k];
    if (other.type != value->type) continue;
    bool same = false;
    if (own && !std::holds_alternative<source_leaf>(other.content)) {
      same = tensor_of(other, staged_).is_set_to(*own);
    } else if (!own && std::holds_alternative<source_leaf>(other.content)) {
      const auto& a = std::get<source_leaf>(other.content);
      const auto& b = std::get<source_leaf>(value->content);
      same = a.source == b.source && *a.map == *b.map;
    }
    if (same) return leaf_values_[k];
  }
  const int operand = outputs_ + static_cast<int>(leaves_.size());
  if (operand >= parallel::operands_max)
    throw error(errc::unsupported, "one pass of the expression has too many operands",
                {"at most " + std::to_string(parallel::operands_max - outputs_) +
                     " different views can be read in one pass",
                 "evaluate a part of it first"});
  leaves_.push_back(value);
  leaf_values_.push_back(static_cast<int>(values_.size()));
  values_.push_back({reg::location::operand, operand, value->type});
  return static_cast<int>(values_.size()) - 1;
}

int tape_builder::add_step(kernel run, const leaf_generator* fill, std::vector<int> inputs,
                           dtype type) {
  steps_.push_back({run, fill, std::move(inputs), static_cast<int>(values_.size())});
  values_.push_back({reg::location::scratch, static_cast<int>(steps_.size()) - 1, type});
  return static_cast<int>(values_.size()) - 1;
}

int tape_builder::visit(const node_ref& value) {
  if (const auto known = seen_.find(value.get()); known != seen_.end()) return known->second;
  int result = -1;
  if (const auto* constant = std::get_if<constant_leaf>(&value->content)) {
    std::array<std::byte, 16> bytes{};
    shale::visit(value->type, all_types{}, [&]<class T>(std::type_identity<T>) {
      const T element = constant->value.as<T>();
      std::memcpy(bytes.data(), &element, sizeof element);
    });
    const auto [place, is_new] =
        constants_.try_emplace({value->type, bytes}, static_cast<int>(values_.size()));
    if (is_new) {
      parts_.constants.push_back(bytes);
      values_.push_back(
          {reg::location::constant, static_cast<int>(parts_.constants.size()) - 1, value->type});
    }
    result = place->second;
  } else if (const auto* operation = std::get_if<operation_node>(&value->content)) {
    std::vector<int> inputs;
    for (const auto& input : operation->inputs) inputs.push_back(visit(input));
    const dtype type = operation->inputs.back()->type;
    const value_key key{static_cast<int>(operation->op), static_cast<int>(type), inputs};
    if (const auto known = known_.find(key); known != known_.end()) {
      result = known->second;
    } else {
      result = add_step(find_kernel(operation->op, type), nullptr, inputs, value->type);
      steps_.back().op = operation->op;
      parts_.additions += additions_in(operation->op, type);
      known_.emplace(key, result);
    }
  } else if (const auto* cast = std::get_if<cast_node>(&value->content)) {
    const int input = visit(cast->input);
    const value_key key{-1, static_cast<int>(value->type), {input}};
    if (const auto known = known_.find(key); known != known_.end()) {
      result = known->second;
    } else {
      result = add_step(find_cast(cast->input->type, value->type), nullptr, {input}, value->type);
      ++parts_.additions;
      known_.emplace(key, result);
    }
  } else if (reads_operand(*value)) {
    result = add_leaf(value);
  } else {
    std::vector<tensor> inputs;
    for (const auto& input : generator_inputs(*value))
      inputs.push_back(gathered_.unchanged(tensor_of(*input, staged_)));
    parts_.gathered.insert(parts_.gathered.end(), inputs.begin(), inputs.end());
    parts_.generators.push_back(make_generator(*value, std::move(inputs)));
    result = add_step(nullptr, parts_.generators.back().get(), {}, value->type);
  }
  seen_.emplace(value.get(), result);
  return result;
}

void tape_builder::write(int value, int output, dtype type) {
  // If the last step makes the value, it writes the output directly. Then no other step reads the
  // value, and no later step could read the bytes that the output held before (tape.2). Otherwise
  // another step copies the value at the end.
  const bool last = !steps_.empty() && steps_.back().result == value && steps_.back().output < 0;
  if (values_[static_cast<std::size_t>(value)].type == type && last && steps_.back().run) {
    steps_.back().output = output;
    return;
  }
  const dtype source_type = values_[static_cast<std::size_t>(value)].type;
  add_step(
      source_type == type ? parallel::copy_kernel(item_bytes(type)) : find_cast(source_type, type),
      nullptr, {value}, type);
  steps_.back().output = output;
  ++parts_.additions;
}

// The step whose product `sum` reads at `place`. Null if it reads no product there, or if something
// else reads the product too.
tape_builder::step* tape_builder::product_for(const std::vector<int>& readers, const step& sum,
                                              std::size_t place) {
  const auto value = static_cast<std::size_t>(sum.inputs[place]);
  if (values_[value].place != reg::location::scratch || readers[value] != 1) return nullptr;
  step& maker = steps_[static_cast<std::size_t>(values_[value].index)];
  return maker.op == operation::multiply && maker.output < 0 ? &maker : nullptr;
}

// Joins products with the sums that read them (tape.4). The product needs no scratch slot. One loop
// reads the operands of both. So no loop works in the cache alone, while the memory is idle.
void tape_builder::join_products(const std::vector<int>& kept) {
  std::vector<int> readers(values_.size(), 0);
  for (const step& each : steps_)
    for (const int input : each.inputs) ++readers[static_cast<std::size_t>(input)];
  for (const int value : kept) ++readers[static_cast<std::size_t>(value)];

  for (step& sum : steps_) {
    if (sum.op != operation::add && sum.op != operation::subtract) continue;
    for (const std::size_t place : {0U, 1U}) {
      step* const product = product_for(readers, sum, place);
      const product_sum kind = sum.op == operation::add ? product_sum::add
                               : place == 0             ? product_sum::subtract
                                                        : product_sum::subtract_from;
      const dtype type = values_[static_cast<std::size_t>(sum.result)].type;
      const kernel joined = find_kernel(kind, type);
      if (!product || !joined) continue;
      sum.inputs = {product->inputs[0], product->inputs[1], sum.inputs[1 - place]};
      sum.run = joined;
      sum.op.reset();
      product->run = nullptr;
      product->op.reset();
      break;
    }
  }
  std::erase_if(steps_, [](const step& each) { return !each.run && !each.fill; });
}

compiled tape_builder::finish(const std::vector<int>& kept) {
  join_products(kept);
  std::vector<int> last_use(values_.size(), -1);
  for (std::size_t s = 0; s < steps_.size(); ++s)
    for (const int input : steps_[s].inputs)
      last_use[static_cast<std::size_t>(input)] = static_cast<int>(s);
  for (const int value : kept)
    last_use[static_cast<std::size_t>(value)] = static_cast<int>(steps_.size());

  std::vector<reg> registers(values_.size());
  for (std::size_t v = 0; v < values_.size(); ++v)
    registers[v] = {values_[v].place, values_[v].index, item_bytes(values_[v].type)};
  std::vector<int> free_slots;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const auto& current = steps_[s];
    const auto result = static_cast<std::size_t>(current.result);
    if (current.output >= 0) {
      registers[result].place = reg::location::operand;
      registers[result].index = current.output;
    } else {
      int slot = parts_.slots;
      if (free_slots.empty()) {
        ++parts_.slots;
      } else {
        slot = free_slots.back();
        free_slots.pop_back();
      }
      registers[result].index = slot;
      parts_.slot_item_bytes = std::max(parts_.slot_item_bytes, registers[result].item_bytes);
    }
    instruction made{
        current.run, current.fill, registers[result], {}, static_cast<int>(current.inputs.size())};
    for (std::size_t k = 0; k < current.inputs.size(); ++k)
      made.in[k] = registers[static_cast<std::size_t>(current.inputs[k])];
    parts_.instructions.push_back(made);
    // The slots of values that were read for the last time are free from the next step on.
    std::vector<int> done = current.inputs;
    std::sort(done.begin(), done.end());
    done.erase(std::unique(done.begin(), done.end()), done.end());
    for (const int input : done)
      if (last_use[static_cast<std::size_t>(input)] == static_cast<int>(s) &&
          registers[static_cast<std::size_t>(input)].place == reg::location::scratch)
        free_slots.push_back(registers[static_cast<std::size_t>(input)].index);
  }
  for (const int value : kept) parts_.values.push_back(registers[static_cast<std::size_t>(value)]);

  parts_.copies = gathered_.take_copies();
  return {tape(std::move(parts_)), std::move(leaves_)};
}

bool reads_operand(const node& value) noexcept {
  return std::holds_alternative<tensor_leaf>(value.content) ||
         std::holds_alternative<staged_leaf>(value.content) ||
         std::holds_alternative<source_leaf>(value.content);
}

pass_operand operand_of(const node& leaf, const staged_values& staged) {
  if (const auto* tiled = std::get_if<source_leaf>(&leaf.content))
    return {.tiles = parallel::tiled_elements{.source = tiled->source.get(), .seen = *tiled->map}};
  return {.values = tensor_of(leaf, staged)};
}

tensor tensor_of(const node& leaf, const staged_values& staged) {
  if (const auto* own = std::get_if<tensor_leaf>(&leaf.content)) return own->values;
  const auto& viewed = std::get<staged_leaf>(leaf.content);
  const auto found = staged.find(viewed.from.get());
  assert(found != staged.end() && "a stage is computed before the passes that read it");
  const tensor& values = found->second;
  const layout& whole = viewed.under ? **viewed.under : values.layout();
  return tensor(values.storage(), values.dtype(),
                viewed.map ? (*viewed.map)->applied_to(whole) : whole);
}

pass compile(const planned_pass& planned, const staged_values& staged, executor& on) {
  std::vector<tensor> written;
  for (const auto& output : planned.outputs)
    if (!output.sink) written.push_back(output.target);
  if (planned.scan && !planned.scan->output.sink) written.push_back(planned.scan->output.target);
  const std::size_t outputs = planned.outputs.size() + (planned.scan ? 1 : 0);
  tape_builder builder(staged, static_cast<int>(outputs), written, on);
  std::set<const node*> visited;
  const auto value_of = [&](const node_ref& wanted) {
    // Inputs are visited first, so that no visit recurses deeper than one level.
    for (const auto& input : post_order(wanted, walk::within_a_pass, visited)) builder.visit(input);
    return builder.visit(wanted);
  };
  std::vector<int> results, kept;
  for (const auto& output : planned.outputs) results.push_back(value_of(output.value));
  for (const auto& reduction : planned.reductions) kept.push_back(value_of(reduction.value));
  if (planned.scan) kept.push_back(value_of(planned.scan->output.value));
  std::vector<pass_operand> operands;
  for (std::size_t k = 0; k < results.size(); ++k) {
    operands.push_back(operand_of(planned.outputs[k]));
    const auto& made = operands.back();
    const dtype type = made.tiles ? made.tiles->dtype() : made.values.dtype();
    builder.write(results[k], static_cast<int>(k), type);
  }
  std::optional<pass_scan> scan;
  if (planned.scan) {
    scan = {planned.scan->kind, planned.scan->output.value->type};
    operands.push_back(operand_of(planned.scan->output));
  }
  compiled made = builder.finish(kept);
  for (const auto& leaf : made.leaves) operands.push_back(operand_of(*leaf, staged));
  std::vector<pass_reduction> reductions;
  for (const auto& wanted : planned.reductions)
    reductions.push_back({wanted.kind, wanted.value->type, wanted.parameter, wanted.target});
  return {planned.shape,       std::move(made.program),
          std::move(operands), std::move(reductions),
          planned.axes,        scan};
}

}  // namespace shale::ops
