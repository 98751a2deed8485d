// Tests the choice of OpenBLAS's kernels. It is made before main, so other choices need another
// process, or another processor: this program also runs on emulated ones.
#include "ops/linalg/blas_kernels.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <string>

#include "shale/linalg.hpp"
#include "support/command_lines.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace shale::test {
namespace {

using ops::vector_width;

std::string kernels_in_use() {
  const std::string text = ops::blas_kernels();
  return text.substr(0, text.find(' '));
}

#ifdef __x86_64__

// The widest vectors by the processor's own instruction; the library asks the compiler's runtime.
vector_width width_by_cpuid() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const auto has = [](unsigned word, unsigned bit) { return (word >> bit & 1) != 0; };
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return vector_width::sse;
  if (!has(c, 27) || !has(c, 28)) return vector_width::sse;  // OSXSAVE, AVX
  unsigned saved = 0, upper = 0;                             // the registers that the system saves
  __asm__("xgetbv" : "=a"(saved), "=d"(upper) : "c"(0));
  if ((saved & 0x6) != 0x6) return vector_width::sse;
  const bool has_fma = has(c, 12);
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || !has(b, 5) || !has_fma)
    return vector_width::avx;
  const bool avx512 = has(b, 16) && has(b, 17) && has(b, 28) && has(b, 30) && has(b, 31);
  return avx512 && (saved & 0xe0) == 0xe0 ? vector_width::avx512 : vector_width::avx2;
}

// blas.1
TEST(BlasKernels, UseTheWidestVectorsOfTheProcessor) {
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) GTEST_SKIP() << "the environment has chosen";
  EXPECT_GE(ops::width_of_kernels(kernels_in_use()), width_by_cpuid()) << ops::blas_kernels();
  EXPECT_EQ(blas_name().rfind("OpenBLAS ", 0), 0u) << blas_name();
  EXPECT_NE(blas_name().find(", " + kernels_in_use()), std::string::npos) << blas_name();
}

#endif

TEST(BlasKernels, WidthOfUnknownTypesIsTheNarrowest) {
  EXPECT_EQ(ops::width_of_kernels("Prescott"), vector_width::sse);
  EXPECT_EQ(ops::width_of_kernels("Nehalem"), vector_width::sse);
  EXPECT_EQ(ops::width_of_kernels("none"), vector_width::sse);
  EXPECT_EQ(ops::width_of_kernels("Sandybridge"), vector_width::avx);
  EXPECT_EQ(ops::width_of_kernels("Zen"), vector_width::avx2);
  EXPECT_EQ(ops::width_of_kernels("SkylakeX"), vector_width::avx512);
}

// blas.1, blas.2
TEST(BlasKernels, AreThoseThatTheEnvironmentAsksFor) {
  const auto asked = lines_of("OPENBLAS_CORETYPE=Core2 '" SHALE_REPORT_KERNELS "'");
  ASSERT_EQ(asked.size(), 4u);
  EXPECT_NE(asked[1].find(", Core2 (OPENBLAS_CORETYPE is Core2)"), std::string::npos) << asked[1];
  EXPECT_EQ(asked[2], "Core2");
  EXPECT_EQ(asked[3], "64.0");

  const auto free = lines_of("env -u OPENBLAS_CORETYPE '" SHALE_REPORT_KERNELS "'");
  ASSERT_EQ(free.size(), 4u);
  EXPECT_EQ(free[1].find("OPENBLAS_CORETYPE"), std::string::npos) << free[1];
  EXPECT_EQ(free[2], "not set");
  EXPECT_EQ(free[3], "64.0");
}

#ifdef __x86_64__

// blas.2, blas.3
TEST(BlasKernels, ThatTheCpuCannotRunAreAnError) {
  // No processor has both the instructions of Bulldozer and those of SkylakeX.
  const std::string type = __builtin_cpu_supports("fma4") ? "SkylakeX" : "Bulldozer";
  std::string in_lower_case = type;
  for (char& letter : in_lower_case) letter = static_cast<char>(std::tolower(letter));
  for (const std::string& written : {type, in_lower_case}) {
    const auto told =
        lines_of("OPENBLAS_CORETYPE=" + written + " '" + std::string(SHALE_REPORT_KERNELS) + "'");
    ASSERT_EQ(told.size(), 4u);
    for (const std::size_t line : {1, 3}) {
      EXPECT_EQ(told[line].rfind("refused: OPENBLAS_CORETYPE asks for kernels", 0), 0u)
          << told[line];
      EXPECT_NE(told[line].find("[unsupported]"), std::string::npos) << told[line];
      EXPECT_NE(told[line].find("wanted " + type), std::string::npos) << told[line];
      EXPECT_NE(told[line].find("unset OPENBLAS_CORETYPE"), std::string::npos) << told[line];
    }
    EXPECT_EQ(told[2], written);
  }
}

#endif

}  // namespace
}  // namespace shale::test
