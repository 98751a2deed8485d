// The writer of a pair of programs; attach.cpp is the reader. It holds one generation of a
// container open. It publishes the next generation when it is told to, while attach.cpp reads in
// another process.
//
//   hold FILE.shale ARRAY
//
// It publishes when a line arrives on standard input, and ends at the second line. Each line that
// it prints says what has happened, so that a script can wait for it.
#include <cinttypes>
#include <cstdio>
#include <iostream>
#include <string>

#include "shale/container.hpp"
#include "shale/functions.hpp"

namespace {

using namespace shale;

void say(const char* event, std::uint64_t generation) {
  std::printf("%s %" PRIu64 "\n", event, generation);
  std::fflush(stdout);
}

// The next generation has the same array with every element increased by 1.
std::uint64_t raise_by_one(container& file, const std::string& name) {
  const snapshot before = file.latest();
  const array old = before.at(name);
  transaction change = file.begin();
  change.update(name).write(astype(expr(old) + 1, old.dtype()));
  return change.commit();
}

int run(const std::string& path, const std::string& name) {
  container file = container::open(path, open_mode::write);
  // This snapshot pins the old generation: its bytes stay in the file while readers attach.
  const snapshot held = file.latest();
  held.at(name);
  say("holding generation", held.generation());

  std::string line;
  if (!std::getline(std::cin, line)) return 0;
  say("committed generation", raise_by_one(file, name));
  say("still holding generation", held.generation());

  std::getline(std::cin, line);
  file.close();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: hold FILE.shale ARRAY\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2]);
  } catch (const error& failure) {
    std::fprintf(stderr, "hold: %s\n", failure.what());
    return 1;
  }
}
