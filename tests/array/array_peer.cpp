// Another process for the tests of containers: it does one thing, says so a line at a time, and
// waits for lines where the test has to come in between.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "shale/container.hpp"

namespace {

using namespace shale;
using words = std::vector<std::string>;

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void wait_for_line() {
  std::string line;
  std::getline(std::cin, line);
}

double first_and_last(const tensor& values) {
  const auto elements = values.elements<const float>();
  return static_cast<double>(elements.front()) * 1000 + static_cast<double>(elements.back());
}

std::size_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) * 1024;
  return 0;
}

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// follow PATH ARRAY: shows the array of the newest generation, then again after each newer one,
// with a view of the first generation checked each time.
int follow(const words& w) {
  const container file = container::open(w[0]);
  snapshot now = file.latest();
  const tensor first = now.at(w[1]).as_tensor();
  const double held = first_and_last(first);
  say(std::to_string(now.generation()) + " " + number(held));
  for (;;) {
    const auto newer = file.wait_newer(now.generation(), {60'000});
    if (!newer) return 3;
    now = file.latest();
    if (first_and_last(first) != held) return 4;
    const auto found = now.find(w[1]);
    if (!found) return 0;
    say(std::to_string(now.generation()) + " " + number(first_and_last(found->as_tensor())));
  }
}

// set PATH ARRAY VALUE TIMES: that many transactions; all elements VALUE, VALUE + 1, …
int set(const words& w) {
  container file = container::open(w[0], open_mode::write);
  for (int i = 0; i < std::atoi(w[3].c_str()); ++i) {
    transaction change = file.begin();
    change.update(w[1]).write(expr(std::atof(w[2].c_str()) + i));
    change.commit();
  }
  say("done");
  return 0;
}

// hold PATH ARRAY: begins a transaction, changes the array, and never commits.
int hold(const words& w) {
  container file = container::open(w[0], open_mode::write);
  transaction change = file.begin();
  change.update(w[1]).write(expr(-1));
  change.create("unborn", {.dtype = dtype::float64, .shape = {100'000}}).write(expr(7));
  say("writing");
  wait_for_line();
  return 0;
}

// pin PATH: holds a snapshot until told otherwise.
int pin(const words& w) {
  const container file = container::open(w[0]);
  const snapshot held = file.latest();
  say(std::to_string(held.generation()));
  wait_for_line();
  return 0;
}

// mean PATH ARRAY MEMORY: the mean under a memory budget, and what it took.
int mean(const words& w) {
  executor on({.threads = 2, .memory_bytes = std::stoul(w[2])});
  const container file = container::open(w[0]);
  const tensor result = eval(shale::mean(cast(expr(file.latest().at(w[1])), dtype::float64)), &on);
  say(number(result.item().as<double>()));
  say(std::to_string(peak_resident_bytes()));
  return 0;
}

// make PATH ARRAY KIND ROWS COLUMNS MEMORY: writes row * 3 + column into a new array, under a
// memory budget; says what that took.
int make(const words& w) {
  executor on({.threads = 2, .memory_bytes = std::stoul(w[5])});
  const index_t rows = std::stol(w[3]);
  const index_t columns = std::stol(w[4]);
  container file = container::open_or_create(w[0]);
  transaction change = file.begin();
  const array_kind kind = w[2] == "dense" ? array_kind::dense : array_kind::chunked;
  const expr values =
      cast(arange(rows), dtype::float32).unsqueeze(1) * 3 + cast(arange(columns), dtype::float32);
  change.create(w[1], {.dtype = dtype::float32, .shape = {rows, columns}, .kind = kind})
      .write(values, &on);
  change.commit();
  say(std::to_string(peak_resident_bytes()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const words arguments(argv + 2, argv + argc);
  const std::string what = argv[1];
  try {
    if (what == "follow") return follow(arguments);
    if (what == "set") return set(arguments);
    if (what == "hold") return hold(arguments);
    if (what == "pin") return pin(arguments);
    if (what == "mean") return mean(arguments);
    if (what == "make") return make(arguments);
  } catch (const error& failure) {
    std::fprintf(stderr, "array_peer %s: %s\n", what.c_str(), failure.what());
    say(std::string("error ") + std::string(name(failure.code())));
    return 1;
  }
  return 2;
}
