#include <filesystem>

#include "container/suites.hpp"
#include "container/works.hpp"
#include "shale/shale.hpp"

namespace shale::bench {

namespace {

double normalised_copy(const subject& about) {
  const std::string path = about.chosen.memory_folder + "/normalised.shale";
  std::filesystem::remove(path);
  const double seconds = seconds_of([&] {
    const expr x(about.stored.values());
    container file = container::create(path);
    transaction change = file.begin();
    change.create("values", about.data.spec()).write((x - mean(x)) / stddev(x));
    change.commit();
  });
  std::filesystem::remove(path);
  return seconds;
}

}  // namespace

void computed_arrays(const subject& about) {
  measure({.name = about.data.name() + ": sum",
           .shale = [&] { return seconds_of([&] { eval(sum(expr(about.stored.values()))); }); },
           .bytes = about.data.bytes(),
           .goals = {{"", 2}},
           .packing = about.packing},
          about.chosen);
  measure({.name = about.data.name() + ": normalised copy",
           .shale = [&] { return normalised_copy(about); },
           .bytes = about.data.bytes(),
           .goals = {{"", 2}},
           .packing = about.packing},
          about.chosen);
}

}  // namespace shale::bench
