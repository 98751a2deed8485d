// A simulation appends its steps to a container. A viewer in another process sees every whole step
// as soon as it is committed:
//
//   simulation run heat.shale 100 &
//   simulation watch heat.shale
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "shale/shale.hpp"

namespace {

using namespace shale;

constexpr index_t side = 256;

// Computes one step of heat that spreads over a plate with cold edges.
void advance(const tensor& plate) {
  const auto inner = [&](index_t down, index_t right) {
    return expr(plate).narrow(0, 1 + down, side - 2).narrow(1, 1 + right, side - 2);
  };
  const expr neighbours = inner(-1, 0) + inner(1, 0) + inner(0, -1) + inner(0, 1);
  // The right side reads elements that the left side stores. The result is as if the right side had
  // been computed first.
  eval_into(plate.narrow(0, 1, side - 2).narrow(1, 1, side - 2), neighbours / 4);
}

void run(const std::string& path, index_t steps) {
  container file = container::create(path);
  tensor plate = tensor::zeros({side, side}, dtype::float32);
  fill(plate.narrow(0, 100, 50).narrow(1, 30, 50), 1000);

  // The array has no step yet. Each step will be a chunk.
  transaction first = file.begin();
  first.create("plate", {.dtype = dtype::float32,
                         .shape = {0, side, side},
                         .kind = array_kind::chunked,
                         .chunk_shape = dims{1, side, side}});
  first.set_attribute("plate", "steps", std::to_string(steps));
  first.commit();

  for (index_t step = 0; step < steps; ++step) {
    advance(plate);
    transaction change = file.begin();
    change.append("plate", plate.expand_dims(0));  // costs one step, however many there are
    change.commit();  // a crash before this line loses this step, never an older one
  }
}

// Opens the container. The simulation may not have made it yet.
container open_soon(const std::string& path) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (auto found = container::open_if_exists(path)) return *std::move(found);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return container::open(path);
}

void watch(const std::string& path) {
  const container file = open_soon(path);
  std::uint64_t seen = 0;
  // The viewer ends after ten seconds without a new step. The simulation never waits for it.
  while (const auto newest = file.wait_newer(seen, timeout{10'000})) {
    seen = *newest;
    const std::optional<array> plate = file.latest().find("plate");
    const index_t steps = plate ? plate->shape()[0] : 0;
    if (steps == 0) continue;
    const expr last = expr(*plate).select(0, steps - 1);
    std::printf("step %lld: mean %s, warmest %s\n", static_cast<long long>(steps),
                eval(mean(last)).item().to_string().c_str(),
                eval(max(last)).item().to_string().c_str());
    if (steps == std::stol(*plate->attribute("steps"))) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 2 ? argv[1] : "";
  try {
    if (mode == "run") run(argv[2], argc > 3 ? std::atol(argv[3]) : 100);
    else if (mode == "watch") watch(argv[2]);
    else return std::fprintf(stderr, "usage: simulation run|watch FILE [STEPS]\n"), 2;
  } catch (const error& failure) {
    std::fprintf(stderr, "simulation: %s\n", failure.what());
    return 1;
  }
  return 0;
}
