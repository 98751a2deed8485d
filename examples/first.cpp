// Shale in one page: store a tensor, see it again without a copy, compute on it lazily.
#include <cstdio>

#include "shale/container.hpp"
#include "shale/functions.hpp"
#include "shale/tensor.hpp"

int main(int argc, char** argv) {
  using namespace shale;
  if (argc != 2) {
    std::fprintf(stderr, "usage: first NEW.shale\n");
    return 2;
  }
  try {
    // A container holds named arrays. A transaction makes its next generation, or nothing at all.
    container file = container::create(argv[1]);
    transaction change = file.begin();
    const expr ramp = arange(0, 12, 1, dtype::float32).reshape({3, 4});
    change.create("ramp", {.dtype = dtype::float32, .shape = {3, 4}}).write(ramp);
    change.commit();

    // Zero-copy: these are the file's own bytes, mapped. Views of them are free.
    const tensor stored = file.latest().at("ramp").map();
    std::puts(to_string(stored.swapaxes(0, 1).flip({0})).c_str());

    // Nothing is computed here …
    const expr a = stored;
    const expr scaled = (a - mean(a)) / stddev(a);
    // … but here: all of it in the fewest passes, block by block, on every processor.
    std::puts(to_string(eval(scaled)).c_str());

    // The same straight into compressed chunks, whatever the size.
    transaction next = file.begin();
    next.create("scaled", {.dtype = dtype::float32, .shape = {3, 4}, .kind = array_kind::chunked})
        .write(scaled);
    std::printf("generation %llu\n", static_cast<unsigned long long>(next.commit()));
  } catch (const error& failure) {
    std::fprintf(stderr, "first: %s\n", failure.what());
    return 1;
  }
  return 0;
}
