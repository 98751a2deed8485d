// A unit for AVX2 that breaks rule isa.1: beside its entry it defines an inline function, which the
// linker may take in place of the baseline's. isa_test.cpp must detect that.

namespace shale::ops {

using eight_floats [[gnu::vector_size(32)]] = float;

[[gnu::noinline]] inline float leaked_sum(const float* values, int count) {
  eight_floats lanes{};
  for (int i = 0; i + 8 <= count; i += 8) {
    eight_floats next;
    __builtin_memcpy(&next, values + i, sizeof next);
    lanes += next;
  }
  float sum = 0;
  for (int lane = 0; lane < 8; ++lane) sum += lanes[lane];
  return sum;
}

float fill_leaky(const float* values, int count) { return leaked_sum(values, count); }

}  // namespace shale::ops
