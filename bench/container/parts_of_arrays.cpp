#include <random>

#include "container/suites.hpp"
#include "container/works.hpp"
#include "shale/shale.hpp"

namespace shale::bench {

namespace {

// Places that differ in each round, and are the same in each run.
class random_places {
 public:
  // A place in a grid of that shape.
  dims operator()(const dims& shape) {
    dims place = shape;
    for (index_t& entry : place)
      entry = std::uniform_int_distribution<index_t>(0, entry - 1)(numbers_);
    return place;
  }

 private:
  std::mt19937_64 numbers_{1};
};

// Frees the chunks that earlier rounds have left decoded, in versions that keep them. The peers, too,
// begin each round without any.
template <class Executor>
void forget_chunks(Executor& on) {
  if constexpr (requires { on.forget_chunks(); }) on.forget_chunks();
}

double random_chunks(const array& values, index_t count, random_places& places) {
  dims grid = values.shape();
  for (index_t axis = 0; axis < grid.size(); ++axis) grid[axis] /= values.chunk_shape()[axis];
  std::vector<region> parts;
  for (index_t k = 0; k < count; ++k) {
    dims start = places(grid);
    for (index_t axis = 0; axis < start.size(); ++axis) start[axis] *= values.chunk_shape()[axis];
    parts.push_back({start, values.chunk_shape()});
  }
  return seconds_of([&] {
    for (const region& part : parts) values.read(part);
  });
}

double plane(const array& values, index_t axis, random_places& places) {
  region part = region::all(values.shape());
  part.start[axis] = places(values.shape())[axis];
  part.shape[axis] = 1;
  return seconds_of([&] { values.read(part); });
}

double one_by_one(const array& values, index_t count, random_places& places) {
  std::vector<dims> chosen;
  for (index_t k = 0; k < count; ++k) chosen.push_back(places(values.shape()));
  const dims one = dims::filled(values.rank(), 1);
  return seconds_of([&] {
    for (const dims& place : chosen) values.read({place, one});
  });
}

double one_gather(const array& values, index_t count, random_places& places) {
  const tensor coordinates = tensor::empty({count, values.rank()}, dtype::int64);
  for (index_t k = 0; k < count; ++k) {
    const dims place = places(values.shape());
    for (index_t axis = 0; axis < place.size(); ++axis) coordinates.set({k, axis}, place[axis]);
  }
  return seconds_of([&] { eval(gather_nd(expr(values), coordinates)); });
}

}  // namespace

void parts_of_arrays(const subject& about) {
  const array& values = about.stored.values();
  const std::string name = about.data.name() + ": ";
  const amounts& amount = about.chosen.amount;
  const std::string elements = grouped(amount.singles) + " single elements, ";
  random_places places;
  const auto part = [&](const std::string& what, index_t bytes,
                        const std::function<double()>& run) {
    measure({.name = name + what,
             .shale =
                 [&] {
                   forget_chunks(executor::current());
                   return run();
                 },
             .bytes = static_cast<std::uint64_t>(bytes),
             .goals = {{"", 1.5}},
             .packing = about.packing},
            about.chosen);
  };
  const auto item = static_cast<index_t>(item_bytes(values.dtype()));
  index_t chunk = item;
  for (const index_t extent : values.chunk_shape()) chunk *= extent;
  part(grouped(amount.chunks) + " random chunks", amount.chunks * chunk,
       [&] { return random_chunks(values, amount.chunks, places); });
  for (index_t axis = 0; axis < values.rank(); ++axis)
    part("a plane across axis " + std::to_string(axis), values.size() / values.shape()[axis] * item,
         [&] { return plane(values, axis, places); });
  part(elements + "one by one", 0, [&] { return one_by_one(values, amount.singles, places); });
  part(elements + "one gather", 0, [&] { return one_gather(values, amount.singles, places); });
}

}  // namespace shale::bench
