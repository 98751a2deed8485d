// Filters and reduces a seismic volume that is larger than the allowed memory of 1 GiB.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "shale/shale.hpp"

int main(int argc, char** argv) {
  using namespace shale;
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: seismic NEW.shale [INLINES]\n");
    return 2;
  }
  try {
    // Every call of this thread computes within these limits.
    const executor limited({.memory_bytes = std::size_t{1} << 30});
    const executor::scope within(limited);

    // The survey has inlines x crosslines x samples in compressed chunks. It is never in memory as
    // a whole; 2,000 inlines are 4 GiB.
    const index_t inlines = argc > 2 ? std::atol(argv[2]) : 2000, crosslines = 1024, samples = 512;
    const expr inline_ = arange(0, inlines, 1, dtype::float32).reshape({inlines, 1, 1});
    const expr crossline = arange(0, crosslines, 1, dtype::float32).reshape({crosslines, 1});
    const expr sample = arange(0, samples, 1, dtype::float32);
    const expr depth = 200 + 40 * sin(inline_ / 90) * cos(crossline / 70);
    const expr echo = exp(-square((sample - depth) / 6)) * cos((sample - depth) / 2);

    container survey = container::create(argv[1]);
    transaction change = survey.begin();
    change.create("amplitude", echo + 3, {.kind = array_kind::chunked});
    change.commit();

    // These expressions compute nothing yet. The first one subtracts the mean of each trace, the
    // second one is a binomial filter along the trace.
    const expr volume = survey.latest().at("amplitude");
    const expr centred = volume - mean(volume, {2}, keepdims::yes);
    const auto shifted = [&](index_t first) { return centred.narrow(2, first, samples - 2); };
    const expr smooth = (shifted(0) + 2 * shifted(1) + shifted(2)) / 4;

    // Here the work is done: two maps of the whole volume in common passes, and the filtered
    // volume.
    const std::vector<expr> wanted{sqrt(mean(square(smooth), {2})), max(abs(smooth), {2})};
    const std::vector<tensor> maps = eval_all(wanted);
    transaction next = survey.begin();
    next.create("filtered", smooth, {.kind = array_kind::chunked});
    next.create("rms", maps[0]);
    next.create("peak", maps[1]);
    next.commit();

    // Any part of the result can be read without the rest.
    const array filtered = survey.latest().at("filtered");
    const tensor trace = filtered.read({{inlines / 2, crosslines / 2, 0}, {1, 1, samples - 2}});
    std::printf("one trace: %s\n", to_string(trace.squeeze()).c_str());
    std::printf("rms map:   %s\n", to_string(maps[0]).c_str());
    std::printf("filtered:  %.2f of %.2f GiB stored\n",
                static_cast<double>(filtered.stored_bytes()) / (1 << 30),
                static_cast<double>(filtered.size_bytes()) / (1 << 30));
  } catch (const error& failure) {
    std::fprintf(stderr, "seismic: %s\n", failure.what());
    return 1;
  }
  return 0;
}
