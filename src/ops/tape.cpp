#include "ops/tape.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <tuple>
#include <utility>

#include "parallel/copy.hpp"
#include "parallel/operands.hpp"
#include "parallel/plan.hpp"
#include "shale/error.hpp"

namespace shale::ops {

using namespace detail;

namespace {

constexpr std::size_t scratch_bytes_max = std::size_t{2} << 20;
constexpr index_t block_elements_usual = 2048;  // 16 KiB of doubles: a few registers share L1

// Equal values have equal keys: the operation and the registers it reads.
using value_key = std::tuple<int, int, std::vector<int>>;

}  // namespace

// Numbers values while walking the graph, then assigns slots by last use.
class tape_builder {
 public:
  tape_builder(const staged_values& staged, int outputs, const std::vector<tensor>& written,
               executor& on)
      : staged_(staged), outputs_(outputs), written_(written), executor_(on) {}

  int visit(const node_ref& which);
  void write(int value, int output, dtype type);
  tape finish(const std::vector<int>& kept);

 private:
  // A leaf operand, a constant, or the result of an instruction.
  struct value_origin {
    reg::where place;
    int index;  // operand or constant number; instruction number for scratch
    dtype type;
  };
  struct step {
    kernel run;
    const generator* fill;
    std::vector<int> inputs;  // values
    int result;               // value, or -1
    int output = -1;          // operand written directly
  };

  tensor generator_input(const node_ref& which) const;
  int add_leaf(const node_ref& which);
  int add_step(kernel run, const generator* fill, std::vector<int> inputs, dtype type);

  const staged_values& staged_;
  const int outputs_;
  const std::vector<tensor>& written_;
  executor& executor_;
  tape tape_;
  std::vector<value_origin> values_;
  std::vector<step> steps_;
  std::map<const node*, int> seen_;
  std::map<value_key, int> known_;
  std::map<std::pair<dtype, std::array<std::byte, 16>>, int> constants_;
};

tensor tape_builder::generator_input(const node_ref& which) const {
  const tensor input = tensor_of(*which, staged_);
  for (const auto& output : written_)
    if (parallel::may_overlap(output, input)) return parallel::copied(input, executor_);
  return input;
}

int tape_builder::add_leaf(const node_ref& which) {
  const tensor* own = nullptr;
  tensor from_stage;
  if (!std::holds_alternative<source_leaf>(which->what)) {
    from_stage = tensor_of(*which, staged_);
    own = &from_stage;
  }
  for (std::size_t k = 0; k < tape_.leaves_.size(); ++k) {
    const node& other = *tape_.leaves_[k];
    if (other.type != which->type) continue;
    bool same = false;
    if (own && !std::holds_alternative<source_leaf>(other.what)) {
      same = tensor_of(other, staged_).is_set_to(*own);
    } else if (!own && std::holds_alternative<source_leaf>(other.what)) {
      const auto& a = std::get<source_leaf>(other.what);
      const auto& b = std::get<source_leaf>(which->what);
      same = a.source == b.source && a.map.base == b.map.base && a.map.shape == b.map.shape &&
             a.map.from == b.map.from && a.map.step == b.map.step;
    }
    if (!same) continue;
    for (std::size_t v = 0; v < values_.size(); ++v)
      if (values_[v].place == reg::where::operand &&
          values_[v].index == outputs_ + static_cast<int>(k))
        return static_cast<int>(v);
  }
  const int operand = outputs_ + static_cast<int>(tape_.leaves_.size());
  if (operand >= parallel::max_operands)
    throw error(errc::unsupported, "the expression reads too many different tensors",
                {"at most " + std::to_string(parallel::max_operands - outputs_) +
                     " views can be read in one pass",
                 "evaluate a part of it first"});
  tape_.leaves_.push_back(which);
  values_.push_back({reg::where::operand, operand, which->type});
  return static_cast<int>(values_.size()) - 1;
}

int tape_builder::add_step(kernel run, const generator* fill, std::vector<int> inputs, dtype type) {
  steps_.push_back({run, fill, std::move(inputs), static_cast<int>(values_.size())});
  values_.push_back({reg::where::scratch, static_cast<int>(steps_.size()) - 1, type});
  return static_cast<int>(values_.size()) - 1;
}

int tape_builder::visit(const node_ref& which) {
  if (const auto known = seen_.find(which.get()); known != seen_.end()) return known->second;
  int result = -1;
  if (const auto* constant = std::get_if<constant_leaf>(&which->what)) {
    std::array<std::byte, 16> bytes{};
    shale::visit(which->type, all_types{}, [&]<class T>(std::type_identity<T>) {
      const T element = constant->value.as<T>();
      std::memcpy(bytes.data(), &element, sizeof element);
    });
    const auto [place, is_new] =
        constants_.try_emplace({which->type, bytes}, static_cast<int>(values_.size()));
    if (is_new) {
      tape_.constants_.push_back(bytes);
      values_.push_back(
          {reg::where::constant, static_cast<int>(tape_.constants_.size()) - 1, which->type});
    }
    result = place->second;
  } else if (const auto* operation = std::get_if<operation_node>(&which->what)) {
    std::vector<int> inputs;
    for (const auto& input : operation->inputs) inputs.push_back(visit(input));
    const dtype type = operation->inputs.back()->type;
    const value_key key{static_cast<int>(operation->which), static_cast<int>(type), inputs};
    if (const auto known = known_.find(key); known != known_.end()) {
      result = known->second;
    } else {
      result = add_step(find_kernel(operation->which, type), nullptr, inputs, which->type);
      known_.emplace(key, result);
    }
  } else if (const auto* cast = std::get_if<cast_node>(&which->what)) {
    const int input = visit(cast->input);
    const value_key key{-1, static_cast<int>(which->type), {input}};
    if (const auto known = known_.find(key); known != known_.end()) {
      result = known->second;
    } else {
      result = add_step(find_cast(cast->input->type, which->type), nullptr, {input}, which->type);
      known_.emplace(key, result);
    }
  } else if (std::holds_alternative<tensor_leaf>(which->what) ||
             std::holds_alternative<staged_leaf>(which->what) ||
             std::holds_alternative<source_leaf>(which->what)) {
    result = add_leaf(which);
  } else {
    std::vector<tensor> inputs;
    for (const auto& input : generator_inputs(*which)) inputs.push_back(generator_input(input));
    tape_.generators_.push_back(make_generator(*which, std::move(inputs)));
    result = add_step(nullptr, tape_.generators_.back().get(), {}, which->type);
  }
  seen_.emplace(which.get(), result);
  return result;
}

void tape_builder::write(int value, int output, dtype type) {
  // The instruction that made the value writes the output itself, if nobody else wants the value
  // and no instruction after it could still read what the output held (tape.2).
  const bool last = !steps_.empty() && steps_.back().result == value && steps_.back().output < 0;
  if (values_[static_cast<std::size_t>(value)].type == type && last && steps_.back().run) {
    steps_.back().output = output;
    return;
  }
  const dtype from = values_[static_cast<std::size_t>(value)].type;
  add_step(from == type ? parallel::copy_kernel(item_bytes(type)) : find_cast(from, type), nullptr,
           {value}, type);
  steps_.back().output = output;
}

tape tape_builder::finish(const std::vector<int>& kept) {
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
    const auto& each = steps_[s];
    const auto result = static_cast<std::size_t>(each.result);
    if (each.output >= 0) {
      registers[result].place = reg::where::operand;
      registers[result].index = each.output;
    } else {
      int slot = tape_.slots_;
      if (free_slots.empty()) {
        ++tape_.slots_;
      } else {
        slot = free_slots.back();
        free_slots.pop_back();
      }
      registers[result].index = slot;
      tape_.slot_item_bytes_ = std::max(tape_.slot_item_bytes_, registers[result].item_bytes);
    }
    instruction made{
        each.run, each.fill, registers[result], {}, static_cast<int>(each.inputs.size())};
    for (std::size_t k = 0; k < each.inputs.size(); ++k)
      made.in[k] = registers[static_cast<std::size_t>(each.inputs[k])];
    tape_.instructions_.push_back(made);
    // Slots whose value was read for the last time are free from the next instruction on.
    std::vector<int> done = each.inputs;
    std::sort(done.begin(), done.end());
    done.erase(std::unique(done.begin(), done.end()), done.end());
    for (const int input : done)
      if (last_use[static_cast<std::size_t>(input)] == static_cast<int>(s) &&
          registers[static_cast<std::size_t>(input)].place == reg::where::scratch)
        free_slots.push_back(registers[static_cast<std::size_t>(input)].index);
  }
  for (const int value : kept) tape_.values_.push_back(registers[static_cast<std::size_t>(value)]);

  if (tape_.slots_ == 0) {
    // Nothing intermediate: blocks as large as the plan likes.
    tape_.block_elements_ = index_t{1} << 62;
  } else {
    const auto bytes_each = static_cast<std::size_t>(tape_.slots_) * tape_.slot_item_bytes_;
    tape_.block_elements_ = std::clamp<index_t>(
        static_cast<index_t>(scratch_bytes_max / bytes_each), 1, block_elements_usual);
  }
  return std::move(tape_);
}

std::size_t tape::scratch_bytes() const noexcept {
  return slots_ == 0 ? 0
                     : static_cast<std::size_t>(slots_) * slot_item_bytes_ *
                           static_cast<std::size_t>(block_elements_);
}

tape::block tape::locate(const reg& at, std::byte* const* data, const index_t* strides_bytes,
                         int operands, index_t inner, std::byte* scratch) const {
  switch (at.place) {
    case reg::where::operand:
      return {data[at.index], strides_bytes[at.index], strides_bytes[operands + at.index]};
    case reg::where::constant:
      return {const_cast<std::byte*>(constants_[static_cast<std::size_t>(at.index)].data()), 0, 0};
    case reg::where::scratch:
      break;
  }
  const auto item = static_cast<index_t>(at.item_bytes);
  const auto slot_bytes = static_cast<index_t>(slot_item_bytes_) * block_elements_;
  return {scratch + at.index * slot_bytes, item, item * inner};
}

tape::block tape::value(std::size_t which, std::byte* const* data, const index_t* strides_bytes,
                        int operands, index_t inner, std::byte* scratch) const {
  return locate(values_[which], data, strides_bytes, operands, inner, scratch);
}

void tape::run(std::byte* const* data, const index_t* strides_bytes, int operands, index_t inner,
               index_t outer, const index_t* start, std::byte* scratch) const {
  for (const auto& each : instructions_) {
    const block out = locate(each.out, data, strides_bytes, operands, inner, scratch);
    if (!each.run) {
      each.fill->fill(start, out.data, inner, outer);
      continue;
    }
    const int n = each.inputs + 1;
    std::array<std::byte*, 4> pointers{out.data};
    std::array<index_t, 8> strides{};
    strides[0] = out.inner_stride;
    strides[static_cast<std::size_t>(n)] = out.outer_stride;
    for (int k = 0; k < each.inputs; ++k) {
      const block in = locate(each.in[static_cast<std::size_t>(k)], data, strides_bytes, operands,
                              inner, scratch);
      pointers[static_cast<std::size_t>(k) + 1] = in.data;
      strides[static_cast<std::size_t>(k) + 1] = in.inner_stride;
      strides[static_cast<std::size_t>(n + k) + 1] = in.outer_stride;
    }
    each.run(pointers.data(), strides.data(), inner, outer);
  }
}

tensor tensor_of(const node& leaf, const staged_values& staged) {
  if (const auto* own = std::get_if<tensor_leaf>(&leaf.what)) return own->values;
  const auto& viewed = std::get<staged_leaf>(leaf.what);
  const auto found = staged.find(viewed.from.get());
  assert(found != staged.end() && "stages are computed before what reads them");
  const tensor& values = found->second;
  return tensor(values.storage(), values.dtype(), viewed.map.applied_to(values.geometry()));
}

tape compile(const std::vector<node_ref>& outputs, const std::vector<dtype>& types,
             const std::vector<node_ref>& values, const staged_values& staged,
             const std::vector<tensor>& written, executor& on) {
  tape_builder builder(staged, static_cast<int>(outputs.size()), written, on);
  std::vector<int> results, kept;
  const auto value_of = [&](const node_ref& wanted) {
    // Inputs first, so that a visit finds what it reads.
    for (const auto& each : post_order(wanted)) builder.visit(each);
    return builder.visit(wanted);
  };
  for (const auto& output : outputs) results.push_back(value_of(output));
  for (const auto& each : values) kept.push_back(value_of(each));
  for (std::size_t k = 0; k < results.size(); ++k)
    builder.write(results[k], static_cast<int>(k), types[k]);
  return builder.finish(kept);
}

}  // namespace shale::ops
