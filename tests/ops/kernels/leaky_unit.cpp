// A unit for AVX2 that breaks rule isa.1: beside its entry it emits an inline function, which the
// linker may take in place of the baseline's. isa_test.cpp must see that.

namespace shale::ops {

[[gnu::noinline]] inline float leaked_sum(const float* values, int count) {
  float lanes[8] = {};
  for (int i = 0; i + 8 <= count; i += 8)
    for (int lane = 0; lane < 8; ++lane) lanes[lane] += values[i + lane];
  float sum = 0;
  for (const float each : lanes) sum += each;
  return sum;
}

float fill_leaky(const float* values, int count) { return leaked_sum(values, count); }

}  // namespace shale::ops
