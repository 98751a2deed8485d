// The helper process for the tests of containers. Each verb does one thing, prints its results line
// by line, and waits for lines of input where the test has to do something in between.
#include <sys/resource.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "shale/container.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"

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
  const tensor first = now.at(w[1]).map();
  const double held = first_and_last(first);
  say(std::to_string(now.generation()) + " " + number(held));
  for (;;) {
    const auto newer = file.wait_newer(now.generation(), {60'000});
    if (!newer) return 3;
    now = file.latest();
    if (first_and_last(first) != held) return 4;
    const auto found = now.find(w[1]);
    if (!found) return 0;
    say(std::to_string(now.generation()) + " " + number(first_and_last(found->map())));
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

// hold PATH ARRAY: begins a transaction, changes the array, and does not commit.
int hold(const words& w) {
  container file = container::open(w[0], open_mode::write);
  transaction change = file.begin();
  change.update(w[1]).write(expr(-1));
  change.create("unborn", {.dtype = dtype::float64, .shape = {100'000}}).write(expr(7));
  say("writing");
  wait_for_line();
  return 0;
}

// pin PATH: holds a snapshot until the next line of input.
int pin(const words& w) {
  const container file = container::open(w[0]);
  const snapshot held = file.latest();
  say(std::to_string(held.generation()));
  wait_for_line();
  return 0;
}

// mean PATH ARRAY MEMORY: prints the mean, computed under a memory budget, and the memory used.
int mean(const words& w) {
  executor on({.threads = 2, .memory_bytes = std::stoul(w[2])});
  const executor::scope within(on);
  const container file = container::open(w[0]);
  const tensor result = eval(shale::mean(astype(expr(file.latest().at(w[1])), dtype::float64)));
  say(number(result.item().as<double>()));
  say(std::to_string(peak_resident_bytes()));
  return 0;
}

// make PATH ARRAY KIND ROWS COLUMNS MEMORY: writes row * 3 + column into a new array, under a
// memory budget; prints the memory used.
int make(const words& w) {
  executor on({.threads = 2, .memory_bytes = std::stoul(w[5])});
  const executor::scope within(on);
  const index_t rows = std::stol(w[3]);
  const index_t columns = std::stol(w[4]);
  container file = container::open_or_create(w[0]);
  transaction change = file.begin();
  const array_kind kind = w[2] == "dense" ? array_kind::dense : array_kind::chunked;
  const expr values = astype(arange(rows), dtype::float32).expand_dims(1) * 3 +
                      astype(arange(columns), dtype::float32);
  change.create(w[1], {.dtype = dtype::float32, .shape = {rows, columns}, .kind = kind})
      .write(values);
  change.commit();
  say(std::to_string(peak_resident_bytes()));
  return 0;
}

void limit_descriptors(const std::string& most) {
  const rlimit limit{std::stoul(most), std::stoul(most)};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) throw error(errc::io, "no such limit");
}

// The array number `i` of many: one of three elements, all of which are i.
array_spec small_spec(int i) {
  return {.dtype = dtype::int32,
          .shape = {3},
          .kind = i % 2 == 0 ? array_kind::dense : array_kind::chunked};
}

// many PATH COUNT DESCRIPTORS: makes that many arrays in one transaction, every hundredth of which
// is written.
int many(const words& w) {
  limit_descriptors(w[2]);
  container file = container::open(w[0], open_mode::write);
  transaction change = file.begin();
  for (int i = 0; i < std::stoi(w[1]); ++i) {
    const writable_array made = change.create("a" + std::to_string(i), small_spec(i));
    if (i % 100 < 2) made.write(expr(i));
  }
  say(std::to_string(change.commit()));
  return 0;
}

// map PATH COUNT DESCRIPTORS: holds tensors of that many dense arrays at once, first in a
// transaction, then as a reader; prints how many were right.
int map(const words& w) {
  limit_descriptors(w[2]);
  container file = container::open(w[0], open_mode::write);
  std::vector<tensor> held;
  transaction change = file.begin();
  for (int i = 0; i < std::stoi(w[1]); ++i) {
    const writable_array made =
        change.create("m" + std::to_string(i), {.dtype = dtype::int32, .shape = {3}});
    held.push_back(made.map());
    held.back().elements<std::int32_t>()[1] = i;
  }
  change.commit();
  const snapshot now = file.latest();
  for (int i = 0; i < std::stoi(w[1]); ++i) held.push_back(now.at("m" + std::to_string(i)).map());
  int right = 0;
  for (std::size_t i = 0; i < held.size(); ++i)
    right += held[i].elements<const std::int32_t>()[1] == static_cast<int>(i) % std::stoi(w[1]);
  say(std::to_string(right));
  return 0;
}

// snapshots PATH COUNT DESCRIPTORS: commits that many generations, and holds a snapshot of each and
// the tensor that wrote it. Prints how many are still right. Then it releases all but every
// seventh, commits again, and prints how many of the rest are right.
int snapshots(const words& w) {
  limit_descriptors(w[2]);
  container file = container::open(w[0], open_mode::write);
  const int count = std::stoi(w[1]);
  std::vector<std::optional<snapshot>> held;
  std::vector<tensor> written;  // the tensors through which the transactions wrote
  const auto commit = [&](int value) {
    transaction change = file.begin();
    const writable_array made = change.find("a")
                                    ? change.update("a")
                                    : change.create("a", {.dtype = dtype::int32, .shape = {2000}});
    made.write(expr(value));
    if (value >= 0) written.push_back(made.map());
    change.commit();
  };
  const auto right = [&] {
    int sum = 0;
    for (int i = 0; i < count; ++i) {
      if (!held[static_cast<std::size_t>(i)]) continue;
      const tensor read = held[static_cast<std::size_t>(i)]->at("a").read();
      const auto elements = read.elements<const std::int32_t>();
      sum += elements.front() == i && elements.back() == i;
    }
    return std::to_string(sum);
  };
  for (int i = 0; i < count; ++i) {
    commit(i);
    held.emplace_back(file.latest());
  }
  say(right());
  wait_for_line();
  for (int i = 0; i < count; ++i)
    if (written[static_cast<std::size_t>(i)].elements<const std::int32_t>()[7] != i) return 5;
  written.clear();
  for (int i = 0; i < count; ++i)
    if (i % 7 != 0) held[static_cast<std::size_t>(i)].reset();
  for (int i = 0; i < 20; ++i) commit(-1);
  say(right());
  wait_for_line();
  held.clear();
  say("none");
  wait_for_line();
  return 0;
}

// commit PATH THREADS: threads commit without waiting until the process is killed. Each transaction
// of thread i adds 1 to all elements of the array "ti", and stores its generation in all elements
// of "number". Prints the generation of every third transaction of a thread once it is durable.
int commit(const words& w) {
  container file = container::open(w[0], open_mode::write);
  std::mutex saying;
  std::vector<std::jthread> threads;
  for (int t = 0; t < std::stoi(w[1]); ++t)
    threads.emplace_back([&file, &saying, mine = "t" + std::to_string(t)] {
      for (int i = 1;; ++i) {
        transaction change = file.begin();
        const tensor held = change.find(mine)->read();
        change.update(mine).write(expr(held.elements<const std::int64_t>().front() + 1));
        change.update("number").write(expr(static_cast<std::int64_t>(change.generation())));
        const pending_commit pending = change.commit_async();
        if (i % 3 != 0) continue;
        pending.wait();
        const std::lock_guard lock(saying);
        say(std::to_string(pending.generation()));
      }
    });
  return 0;
}

// leave PATH LEVEL COUNT: commits arrays of a level without waiting, and ends the process at once.
// The container is destroyed with the static objects.
int leave(const words& w) {
  static container file = container::open(w[0], open_mode::write);
  for (int i = 0; i < std::stoi(w[2]); ++i) {
    transaction change = file.begin();
    change.create(w[1] + "/" + std::to_string(i), small_spec(i)).write(expr(i));
    change.commit_async();
  }
  say("left");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const words arguments(argv + 2, argv + argc);
  const std::string command = argv[1];
  try {
    if (command == "follow") return follow(arguments);
    if (command == "set") return set(arguments);
    if (command == "hold") return hold(arguments);
    if (command == "pin") return pin(arguments);
    if (command == "mean") return mean(arguments);
    if (command == "make") return make(arguments);
    if (command == "many") return many(arguments);
    if (command == "map") return map(arguments);
    if (command == "snapshots") return snapshots(arguments);
    if (command == "commit") return commit(arguments);
    if (command == "leave") return leave(arguments);
  } catch (const error& failure) {
    std::fprintf(stderr, "array_peer %s: %s\n", command.c_str(), failure.what());
    say(std::string("error ") + std::string(name(failure.code())));
    return 1;
  }
  return 2;
}
