// The reader of a pair of programs; hold.cpp is the writer. It attaches to a container that another
// process writes to, and reads a part of an array without a copy. Then it waits for the next
// generation, and shows that its old view has not changed.
//
//   attach FILE.shale ARRAY
#include <cinttypes>
#include <cstdio>
#include <string>

#include "shale/container.hpp"
#include "shale/functions.hpp"

namespace {

using namespace shale;

constexpr timeout patience{60'000};

// The middle half along the first axis. It is a view of the mapped file, so nothing is copied.
tensor middle_of(const array& volume) {
  const tensor whole = volume.map();
  const index_t rows = whole.shape(0);
  return whole.narrow(0, rows / 4, rows - rows / 2);
}

double sum_of(const tensor& values) {
  return eval(astype(sum(expr(values)), dtype::float64)).item().as<double>();
}

void say(const char* event, std::uint64_t generation, double total) {
  std::printf("%s %" PRIu64 " sum %.17g\n", event, generation, total);
  std::fflush(stdout);
}

int run(const std::string& path, const std::string& name) {
  const container file = container::open(path);
  const snapshot pinned = file.latest();
  const array stored = pinned.at(name);
  if (stored.kind() != array_kind::dense || stored.rank() == 0) {
    std::fprintf(stderr, "attach: %s is no dense array with rows\n", name.c_str());
    return 2;
  }
  const tensor old_view = middle_of(stored);
  const tensor old_copy = old_view.clone();
  say("attached to generation", pinned.generation(), sum_of(old_view));

  // A reader never has to wait for the writer. This one waits in order to show the change.
  if (!file.wait_newer(pinned.generation(), patience)) {
    std::fprintf(stderr, "attach: no newer generation came\n");
    return 1;
  }
  const snapshot newer = file.latest();
  const tensor new_view = middle_of(newer.at(name));
  say("now there is generation", newer.generation(), sum_of(new_view));

  if (!equal_bits(old_view, old_copy) || equal_bits(old_view, new_view)) {
    std::printf("the old view has changed\n");
    return 1;
  }
  say("the old view still shows generation", pinned.generation(), sum_of(old_view));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: attach FILE.shale ARRAY\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2]);
  } catch (const error& failure) {
    std::fprintf(stderr, "attach: %s\n", failure.what());
    return 1;
  }
}
