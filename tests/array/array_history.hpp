// A short history of a container in steps, through the public API, and its content after each step,
// computed one element at a time.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "shale/container.hpp"

namespace shale::test {

using held_arrays = std::map<std::string, std::vector<float>>;

inline constexpr index_t dense_length = 3000;
inline constexpr index_t chunked_rows = 40;
inline constexpr index_t chunked_columns = 24;

inline float element(int seed, index_t i) { return static_cast<float>(seed * 1000 + i % 977); }

inline tensor elements(int seed, const dims& shape) {
  const tensor made = tensor::empty(shape, dtype::float32);
  index_t i = 0;
  for (float& value : made.elements<float>()) value = element(seed, i++);
  return made;
}

/// The number of transactions after `container::create`.
inline constexpr int array_steps = 3;

/// Makes the changes of transaction `step` (from 1), without the commit.
inline void tell_step(int step, transaction& change) {
  if (step == 1) {
    change.create("d", {.dtype = dtype::float32, .shape = {dense_length}})
        .write(elements(1, {dense_length}));
    change
        .create("c", {.dtype = dtype::float32,
                      .shape = {chunked_rows, chunked_columns},
                      .kind = array_kind::chunked,
                      .chunk_shape = dims{16, 24}})
        .write(elements(2, {chunked_rows, chunked_columns}));
    change.set_attribute("d", "unit", "metre");
  } else if (step == 2) {
    change.update("d").write({{100}, {50}}, elements(3, {50}));
    change.rename("c", "group/c");
    // Writes a part of a chunk, so that the chunk is read, changed and stored again.
    change.update("group/c").write({{17, 0}, {3, chunked_columns}},
                                   elements(4, {3, chunked_columns}));
    // The last chunk becomes the fill value, and some elements of the first one change in steps.
    change.update("group/c").write({{32, 0}, {8, chunked_columns}}, expr(0));
    change.update("group/c").write_at({slice{1, 16, 7}, slice{.step = -5}},
                                      expr(elements(8, {3, 5})));
    change.create("e", {.dtype = dtype::float32, .shape = {500}}).write(elements(5, {500}));
  } else {
    change.remove("d");
    change.update("group/c").write(elements(6, {chunked_rows, chunked_columns}));
    change.update("e").write(expr(7));
  }
}

/// The content of the container after `step`.
inline held_arrays held_after(int step) {
  held_arrays held;
  const auto fill = [](std::vector<float>& into, int seed, index_t first, index_t count) {
    for (index_t i = 0; i < count; ++i)
      into[static_cast<std::size_t>(first + i)] = element(seed, i);
  };
  if (step < 1) return held;
  auto& d = held["d"] = std::vector<float>(dense_length);
  fill(d, 1, 0, dense_length);
  auto& c = held["c"] = std::vector<float>(chunked_rows * chunked_columns);
  fill(c, 2, 0, chunked_rows * chunked_columns);
  if (step < 2) return held;
  fill(d, 3, 100, 50);
  fill(c, 4, 17 * chunked_columns, 3 * chunked_columns);
  std::fill(c.begin() + 32 * chunked_columns, c.end(), 0.0f);
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 5; ++j)
      c[static_cast<std::size_t>((1 + i * 7) * chunked_columns + 23 - j * 5)] =
          element(8, i * 5 + j);
  auto moved = held.extract("c");
  moved.key() = "group/c";
  held.insert(std::move(moved));
  auto& e = held["e"] = std::vector<float>(500);
  fill(e, 5, 0, 500);
  if (step < 3) return held;
  held.erase("d");
  fill(held["group/c"], 6, 0, chunked_rows * chunked_columns);
  held["e"].assign(500, 7);
  return held;
}

/// The content of a generation. Dense arrays are both read and mapped.
inline held_arrays held_by(const snapshot& now) {
  held_arrays held;
  for (const std::string& name : now.names()) {
    const array stored = now.at(name);
    const tensor read = stored.read();
    const auto values = read.elements<const float>();
    held[name].assign(values.begin(), values.end());
    if (stored.kind() != array_kind::dense) continue;
    const tensor mapped = stored.map();
    const auto seen = mapped.elements<const float>();
    if (!std::equal(seen.begin(), seen.end(), values.begin(), values.end())) held[name].clear();
  }
  return held;
}

}  // namespace shale::test
