#include "parallel/pass/run_pass.hpp"

#include <algorithm>
#include <memory>

#include "core/grid.hpp"
#include "core/saturating.hpp"
#include "parallel/executor/read_ahead.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "parallel/pass/unit_work.hpp"
#include "parallel/ways/copied_operands.hpp"
#include "parallel/ways/haloed_box.hpp"
#include "parallel/ways/load_memory.hpp"
#include "parallel/ways/tiled_operands.hpp"
#include "parallel/windows/window_walk.hpp"
#include "tensor/parts.hpp"

namespace shale::parallel {

namespace {

// One thread does less work than this before helpers have been woken (decision 0202). The work is
// the number of additions, and of loads and stores of four bytes.
constexpr std::uint64_t helped_work_min = std::uint64_t{3} << 18;

// The operands that are not used in place.
struct brought_operands {
  copied_operands copied;
  load_memory memory;
  tiled_operands tiled;

  brought_operands(const way& chosen, std::span<const loop_operand> operands,
                   const pass_options& options, executor& on)
      : copied(chosen, operands, options, on),
        memory(chosen, operands, copied.bytes_per_position(), on),
        tiled(operands, memory.cache_bytes(), on) {}
};

// A plan, and the addresses that its positions count from, by operand.
struct moved_plan {
  plan loop_plan;
  std::vector<std::byte*> bases;
};

// A pass while it runs.
class running_pass {
 public:
  running_pass(std::span<const loop_operand> operands, const pass_options& options,
               const way& chosen, executor& on, unit_body body)
      : way_(chosen),
        operands_(operands),
        options_(options),
        on_(on),
        bases_(bases(operands)),
        bytes_(operands, options.lane_axis),
        brought_(chosen.accesses.empty()
                     ? nullptr
                     : std::make_unique<brought_operands>(chosen, operands, options, on)),
        work_(chosen.units, operands, options, bytes_.written, body, on) {}

  void run();

 private:
  void run_loads(window_walk* walk);
  std::uint64_t progress_bytes() const;
  bool is_worth_helpers() const;
  void prefetch(index_t load) const;
  void run_load(index_t load, int worker);
  moved_plan moved_units(const region& load, const copied_operands::copies& copies) const;
  tensor haloed(std::size_t operand, const region& box,
                const copied_operands::copies& copies) const;
  void run_unit_alone(index_t number, int worker, const region& load,
                      const copied_operands::copies& copies);
  region box_of(const plan& loop_plan, index_t number) const;
  std::vector<streamed_operand> streamed() const;
  template <class Body>
  void for_each_unit(const region& load, Body body) const;

  const way& way_;
  const std::span<const loop_operand> operands_;
  const pass_options& options_;
  executor& on_;
  const std::vector<std::byte*> bases_;
  const bytes_per_position bytes_;
  // Declared before `work_`, so that load_memory does not count the scratch memory of `work_` as
  // memory that other calls hold. Null if all operands are used in place.
  const std::unique_ptr<brought_operands> brought_;
  unit_work work_;
};

std::vector<streamed_operand> running_pass::streamed() const {
  std::vector<streamed_operand> result;
  for (std::size_t k = 0; k < operands_.size(); ++k)
    if (way_.access_of(k) == operand_access::in_place)
      result.push_back({static_cast<int>(k), operands_[k].values.storage(), operands_[k].written});
  return result;
}

// The unit's box in the pass's own axes. A plan has at least one axis, even if the pass has rank 0.
region running_pass::box_of(const plan& loop_plan, index_t number) const {
  return way_.plan_per_unit && index_space(operands_, options_).empty() ? region{}
                                                                        : loop_plan.tile(number);
}

void running_pass::run() {
  // Windows are needed only if an operand is mapped or if checksums are compared.
  const bool walks =
      on_.checksums() == checksum_use::compared ||
      std::any_of(operands_.begin(), operands_.end(), [](const loop_operand& operand) {
        return operand.values.storage().kind() == storage_kind::file;
      });
  if (walks) {
    window_walk walk(way_.load_plan(), streamed(), on_, options_.streams);
    run_loads(&walk);
    walk.finish();
  } else {
    run_loads(nullptr);
  }
  if (brought_) brought_->copied.finish();
}

void running_pass::run_loads(window_walk* walk) {
  int workers = work_.workers();
  if (brought_) workers = std::min(workers, brought_->memory.workers());
  if (!walk && !brought_ && !is_worth_helpers()) workers = 1;
  if (walk && walk->workers_max() > 0) workers = std::min(workers, walk->workers_max());
  const index_t ahead =
      brought_ ? std::min(brought_->memory.ahead(), loads_ahead_per_worker * workers) : 0;
  for (index_t load = 0; load < ahead; ++load) prefetch(load);
  parallel_for_tiles(on_, way_.load_plan().tile_count(),
                     [&](index_t load, int worker) {
                       if (brought_) prefetch(load + ahead);
                       if (!walk) return run_load(load, worker);
                       window_walk::tile_visit visit(*walk, load);
                       run_load(load, worker);
                       visit.end();
                     },
                     {.workers_max = workers,
                      .progress_bytes = options_.counted ? progress_bytes() : 0,
                      .listener = work_.listener()});
}

bool running_pass::is_worth_helpers() const {
  if (options_.additions == 0) return true;
  const auto elements = static_cast<std::uint64_t>(element_count(index_space(operands_, options_)));
  const std::uint64_t work = static_cast<std::uint64_t>(options_.additions) + bytes_.all / 4;
  return detail::saturating_mul(elements, work) >= helped_work_min;
}

// The bytes of all operands. A pass without operands takes time as well: each of its elements
// counts as one of float64.
std::uint64_t running_pass::progress_bytes() const {
  const auto elements = static_cast<std::uint64_t>(element_count(index_space(operands_, options_)));
  return detail::saturating_mul(elements, operands_.empty() ? sizeof(double) : bytes_.all);
}

void running_pass::prefetch(index_t load) const {
  const plan& loads = way_.load_plan();
  if (load >= loads.tile_count()) return;
  brought_->copied.prefetch(load);
  for_each_unit(box_of(loads, load),
                [&](index_t number) { brought_->tiled.prefetch(box_of(way_.units, number)); });
}

// Calls `body(number)` for the units of a load, in ascending order.
template <class Body>
void running_pass::for_each_unit(const region& load, Body body) const {
  const plan& units = way_.units;
  detail::for_each_tile_under(load, units.tile_shape(), [&](const dims& index) {
    body(index.empty() ? 0 : detail::ravel(index, units.grid()));
  });
}

void running_pass::run_load(index_t load, int worker) {
  if (!brought_) return work_.run(load, worker, way_.units, bases_);
  const region box = box_of(way_.load_plan(), load);
  const copied_operands::copies copies = brought_->copied.read(load);
  if (way_.plan_per_unit) {
    for_each_unit(box, [&](index_t number) { run_unit_alone(number, worker, box, copies); });
  } else {
    const moved_plan moved = moved_units(box, copies);
    for_each_unit(box,
                  [&](index_t number) { work_.run(number, worker, moved.loop_plan, moved.bases); });
  }
  brought_->copied.write(load, copies);
}

// Returns the plan of the units with each copied operand moved to its copy. A copy begins at the
// load's first element, but plan positions count from the start of the index space, so the copy's
// origin lies before its memory by the load's start.
moved_plan running_pass::moved_units(const region& load,
                                     const copied_operands::copies& copies) const {
  moved_plan moved{way_.units, bases_};
  for (std::size_t k = 0; k < copies.size(); ++k) {
    if (way_.access_of(k) != operand_access::copied) continue;
    const auto item = static_cast<index_t>(copies[k].item_bytes());
    dims strides = copies[k].strides();
    index_t origin = copies[k].offset() * item;
    for (index_t axis = 0; axis < strides.size(); ++axis) {
      strides[axis] *= item;
      origin -= load.start[axis] * strides[axis];
    }
    moved.loop_plan.move_operand(static_cast<int>(k), strides, origin);
    moved.bases[k] = copies[k].storage().data();
  }
  return moved;
}

// Returns the unit's own elements, as a view of the box that also holds its halo.
tensor running_pass::haloed(std::size_t operand, const region& box,
                            const copied_operands::copies& copies) const {
  const tensor& values = operands_[operand].values;
  const operand_halo& halo = *operands_[operand].halo;
  tensor all = copies[operand];
  if (way_.access_of(operand) == operand_access::tiled) all = brought_->tiled.gather(operand, box);
  else if (way_.access_of(operand) == operand_access::in_place)
    all = haloed_box(halo, box, values.shape(), values.dtype(), in_place_reader(values), on_);
  return own_part(all, halo, box, values.shape());
}

void running_pass::run_unit_alone(index_t number, int worker, const region& load,
                                  const copied_operands::copies& copies) {
  const region box = box_of(way_.units, number);
  std::vector<loop_operand> operands;
  operands.reserve(operands_.size());
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    const auto elements = [&] {
      if (operands_[k].halo) return haloed(k, box, copies);
      if (way_.access_of(k) == operand_access::tiled) return brought_->tiled.gather(k, box);
      const region part = part_of(operands_[k].values, box, options_);
      if (way_.access_of(k) == operand_access::in_place)
        return detail::narrowed(operands_[k].values, part);
      return detail::narrowed(copies[k], part, load.start);
    };
    operands.push_back(
        {.values = elements(), .written = operands_[k].written, .halo = operands_[k].halo});
  }
  work_.run_alone(number, worker, box, operands);
  for (std::size_t k = 0; k < operands_.size(); ++k)
    if (operands_[k].tiles && operands_[k].written)
      brought_->tiled.store(k, box, operands[k].values);
}

}  // namespace

void run_pass(std::span<const loop_operand> operands, const pass_options& options,
              const way& chosen, executor& on, unit_body body) {
  {
    const version_bumps bumps(operands);
    running_pass(operands, options, chosen, on, body).run();
  }
  check_storages(operands);
}

}  // namespace shale::parallel
