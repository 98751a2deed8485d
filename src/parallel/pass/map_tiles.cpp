#include "shale/map_tiles.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <vector>

#include "core/allocating.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/pass/pass_loop.hpp"
#include "parallel/sources/check_source.hpp"
#include "shale/error.hpp"

namespace shale {

namespace detail {

struct tile_operand_access {
  static const tensor& values(const tile_operand& operand) { return operand.values_; }
  static bool is_tiled(const tile_operand& operand) { return operand.is_tiled_; }
  static const halo_options& around(const tile_operand& operand) { return operand.around_; }

  static const tile_source& source(const tile_operand& operand) {
    if (operand.source_) return *operand.source_;
    throw error(errc::invalid_argument, "an operand is no tile source", {"got a null pointer"});
  }

  static tile_source& sink(const tile_operand& operand) {
    if (operand.sink_ && operand.sink_->writable()) return *operand.sink_;
    throw error(errc::access_denied, "an output in tiles is read-only",
                {"write into `writable_array::tiles()`, or into a tensor"});
  }

  static tile_operand surrounded(const tile_operand& operand, const halo_options& around) {
    tile_operand result = operand;
    result.around_ = around;
    return result;
  }
};

}  // namespace detail

namespace {

using access_to = detail::tile_operand_access;

dtype dtype_of_operand(const tile_operand& operand) {
  return access_to::is_tiled(operand) ? access_to::source(operand).dtype()
                                      : access_to::values(operand).dtype();
}

const dims& shape_of_operand(const tile_operand& operand) {
  return access_to::is_tiled(operand) ? access_to::source(operand).shape()
                                      : access_to::values(operand).shape();
}

bool has_halo(const halo_options& around) {
  return std::any_of(around.widths.begin(), around.widths.end(),
                     [](const halo_width& width) { return width.before != 0 || width.after != 0; });
}

// Widths and extents beyond this are refused, so that no position overflows.
constexpr index_t extent_max = index_t{1} << 60;

[[noreturn]] void refuse_halo(const std::string& got) {
  throw error(errc::invalid_argument, "a halo does not fit its operand", {got});
}

// The halo in the axes of an output of that shape.
parallel::operand_halo halo_over(const dims& shape, const halo_options& around, dtype type) {
  const std::size_t count = around.widths.size();
  if (count > 1 && count != static_cast<std::size_t>(shape.size()))
    refuse_halo("got " + std::to_string(count) + " widths for " + std::to_string(shape.size()) +
                " axes of the output; give one for each axis, or one for all");
  parallel::operand_halo halo{.mode = around.mode};
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    const auto& [before, after] = around.widths[count == 1 ? 0 : static_cast<std::size_t>(axis)];
    if (before < 0 || after < 0 || before >= extent_max || after >= extent_max)
      refuse_halo("got the widths " + std::to_string(before) + " and " + std::to_string(after) +
                  "; they are at least 0 and below 2^60");
    if (shape[axis] >= extent_max)
      refuse_halo("the output has shape " + to_string(shape) + "; extents must be below 2^60");
    halo.before.push_back(before);
    halo.after.push_back(after);
  }
  switch (around.mode) {
    case halo_mode::constant:
      halo.value = tensor::full({}, around.value, type);
      return halo;
    case halo_mode::clipped:
    case halo_mode::edge:
    case halo_mode::reflect:
    case halo_mode::symmetric:
    case halo_mode::wrap:
      return halo;
  }
  refuse_halo("its mode is none of halo_mode");
}

// The operands of a call in the terms of the engine, and what these point to.
class tile_operands {
 public:
  explicit tile_operands(std::span<const detail::tile_argument> arguments) {
    shape_ = output_shape(arguments);
    for (const auto& argument : arguments) {
      require_dtype(argument);
      if (argument.written) add_output(argument.operand);
      else add_input(argument.operand);
    }
    for (const auto& argument : arguments)
      if (!argument.written) require_other_tiles(argument.operand);
  }

  const dims& shape() const noexcept { return shape_; }
  const std::vector<parallel::loop_operand>& operands() const noexcept { return operands_; }

  // Checks the shape of tiles that the caller gives, which is empty if it gives none.
  void require_tile_shape(const dims& tile_shape) const;

 private:
  static dims output_shape(std::span<const detail::tile_argument> arguments);
  void require_dtype(const detail::tile_argument& argument) const;
  void add_output(const tile_operand& operand);
  void add_input(const tile_operand& operand);
  void require_other_tiles(const tile_operand& operand) const;

  dims shape_;
  std::vector<parallel::loop_operand> operands_;
  // Deques, because operands point to their elements.
  std::deque<parallel::tiled_elements> tiles_;
  std::deque<parallel::operand_halo> halos_;
};

dims tile_operands::output_shape(std::span<const detail::tile_argument> arguments) {
  const dims* shape = nullptr;
  for (const auto& argument : arguments) {
    if (access_to::is_tiled(argument.operand))
      parallel::check_source(access_to::source(argument.operand));
    if (!argument.written) continue;
    const dims& own = shape_of_operand(argument.operand);
    if (shape != nullptr && own != *shape)
      throw error(errc::invalid_argument, "outputs of one call differ in shape",
                  {to_string(*shape) + " and " + to_string(own)});
    shape = &own;
  }
  if (shape == nullptr)
    throw error(errc::invalid_argument, "map_tiles needs an output",
                {"take one operand as tile_view of a type that is not const"});
  return *shape;
}

void tile_operands::require_dtype(const detail::tile_argument& argument) const {
  const dtype own = dtype_of_operand(argument.operand);
  if (own == argument.type) return;
  throw error(errc::invalid_argument,
              "an operand's dtype differs from the type of the callable's parameter",
              {"operand " + std::to_string(operands_.size()) + " is " + std::string(name(own)) +
                   ", its parameter is " + std::string(name(argument.type)),
               "change the parameter's type, or convert with astype"});
}

void tile_operands::add_output(const tile_operand& operand) {
  if (has_halo(access_to::around(operand))) refuse_halo("it is an output, which has none");
  if (!access_to::is_tiled(operand)) {
    operands_.push_back({.values = access_to::values(operand), .written = true});
    return;
  }
  tile_source& sink = access_to::sink(operand);
  for (const auto& other : tiles_) {
    if (!other.sink) continue;
    if (other.sink->identity() == sink.identity())
      throw error(errc::invalid_argument, "two outputs are the same tiles",
                  {"operand " + std::to_string(operands_.size()) + " and one before it"});
    if (other.sink->tile_shape() != sink.tile_shape())
      throw error(errc::invalid_argument, "outputs have tiles of different shapes",
                  {to_string(other.sink->tile_shape()) + " and " + to_string(sink.tile_shape())});
  }
  tiles_.push_back({.sink = &sink});
  operands_.push_back(parallel::tiled_operand(tiles_.back(), shape_));
}

void tile_operands::add_input(const tile_operand& operand) {
  parallel::loop_operand input;
  if (access_to::is_tiled(operand)) {
    const tile_source& source = access_to::source(operand);
    tiles_.push_back({.source = &source,
                      .seen = parallel::axis_map::identity(source.shape()).broadcast_to(shape_)});
    input = parallel::tiled_operand(tiles_.back(), shape_);
  } else {
    input.values = access_to::values(operand).broadcast_to(shape_);
  }
  if (const halo_options& around = access_to::around(operand); has_halo(around)) {
    halos_.push_back(halo_over(shape_, around, input.values.dtype()));
    input.halo = &halos_.back();
  }
  operands_.push_back(std::move(input));
}

// A unit stores its tiles of an output when it ends. Other units may read tiles before or after
// that. So an input may have the elements of an output only if no unit reads elements that another
// unit writes.
void tile_operands::require_other_tiles(const tile_operand& operand) const {
  if (!access_to::is_tiled(operand)) return;
  const tile_source& source = access_to::source(operand);
  for (const auto& output : tiles_) {
    if (!output.sink || output.sink->identity() != source.identity()) continue;
    if (!has_halo(access_to::around(operand)) && source.shape() == shape_ &&
        source.tile_shape() == output.sink->tile_shape())
      continue;
    throw error(errc::invalid_argument, "an input has the elements of an output in tiles",
                {"tiles would be read after their neighbours have been replaced",
                 "write into another array, or read without a halo and in the same tiles"});
  }
}

void tile_operands::require_tile_shape(const dims& tile_shape) const {
  if (tile_shape.empty()) return;
  const auto refuse = [&](const std::string& wanted) {
    throw error(errc::invalid_argument, "the shape of tiles does not fit the output",
                {"got tiles of " + to_string(tile_shape) + " over " + to_string(shape_), wanted});
  };
  if (tile_shape.size() != shape_.size()) refuse("wanted an extent for each axis");
  for (index_t axis = 0; axis < shape_.size(); ++axis) {
    if (tile_shape[axis] <= 0) refuse("wanted positive extents");
    for (const auto& output : tiles_) {
      if (!output.sink || tile_shape[axis] >= shape_[axis]) continue;
      const index_t own = output.sink->tile_shape()[axis];
      if (tile_shape[axis] % own != 0)
        refuse("along axis " + std::to_string(axis) + ", wanted a multiple of " +
               std::to_string(own) + ", the extent of the output's tiles");
    }
  }
}

// Hands one unit over to the caller's function.
void call_with_unit(const parallel::unit& here, const dims& shape, detail::tile_call call,
                    void* context) {
  const region box{*here.origin, here.operands[0].values.shape()};
  std::array<detail::tile_memory, apply_operands_max> memory{};
  const dims none = dims::filled(shape.size(), 0);
  for (std::size_t k = 0; k < here.operands.size(); ++k) {
    const tensor& values = here.operands[k].values;
    memory[k] = {values.data(), values.strides(), none, none};
    if (!here.operands[k].halo) continue;
    const parallel::halo_extents around = extents_around(*here.operands[k].halo, box, shape);
    memory[k].before = around.before;
    memory[k].after = around.after;
  }
  detail::calling_back([&] { call(context, box.start, box.shape, memory.data()); });
}

}  // namespace

tile_operand with_halo(const tile_operand& operand, const halo_options& around) {
  return detail::allocating([&] { return access_to::surrounded(operand, around); });
}

void detail::run_map_tiles(std::span<const tile_argument> arguments,
                           const map_tiles_options& options, tile_call call, void* context) {
  allocating([&] {
    executor& on = parallel::begin_call();
    const tile_operands made(arguments);
    made.require_tile_shape(options.tile_shape);
    parallel::pass_loop loop(made.operands(),
                             {.coordinates = true, .unit_shape = options.tile_shape}, on);
    if (loop.unit_count() == 0) return;
    loop.run(
        [&](const parallel::unit& here) { call_with_unit(here, made.shape(), call, context); });
  });
}

}  // namespace shale
