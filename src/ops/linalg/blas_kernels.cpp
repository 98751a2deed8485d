#include "ops/linalg/blas_kernels.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

// These are internal functions of OpenBLAS, which its headers do not declare. They are missing if
// OpenBLAS was built with one kernel type only.
extern "C" {
__attribute__((weak)) void gotoblas_dynamic_init();
__attribute__((weak)) void gotoblas_dynamic_quit();
__attribute__((weak)) void openblas_read_env();
char* openblas_get_corename();
}

namespace shale::ops {

namespace {

constexpr char variable[] = "OPENBLAS_CORETYPE";

// The kernel type that OpenBLAS chose by the model, if another one has replaced it.
const char* replaced = nullptr;

// The environment that OpenBLAS saw; kept, because another thread may still read it.
char** shown_environment = nullptr;

// Other processors than x86-64 have other kernel types, which this module leaves alone.
vector_width width_of_cpu() noexcept {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx")) return vector_width::sse;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return vector_width::avx;
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                          __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has_avx512 ? vector_width::avx512 : vector_width::avx2;
#else
  return vector_width::sse;
#endif
}

// The variable's entry that makes OpenBLAS choose kernels of a width.
char* entry_for(vector_width width) noexcept {
  static char avx[] = "OPENBLAS_CORETYPE=Sandybridge";
  static char avx2[] = "OPENBLAS_CORETYPE=Haswell";
  static char avx512[] = "OPENBLAS_CORETYPE=SkylakeX";
  return width == vector_width::avx512 ? avx512 : width == vector_width::avx2 ? avx2 : avx;
}

// Lets OpenBLAS choose again with one more variable in the environment. OpenBLAS has no other way
// to ask for a kernel type. Threads of a host program may read the environment meanwhile, so it is
// replaced as a whole for the time of the call, and no byte of it is changed.
void choose_with(char* entry) noexcept {
  std::size_t count = 0;
  while (environ[count] != nullptr) ++count;
  shown_environment = static_cast<char**>(std::malloc((count + 2) * sizeof(char*)));
  if (shown_environment == nullptr) return;
  shown_environment[0] = entry;
  std::copy_n(environ, count + 1, shown_environment + 1);

  char** const before = environ;
  environ = shown_environment;
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  if (environ == shown_environment) environ = before;
  else ::unsetenv(variable);  // another thread has made a copy of it meanwhile
}

// OpenBLAS's own constructor is not linked (see blas_buffer.cpp); this one does its work.
__attribute__((constructor(101))) void choose_blas_kernels() noexcept {
  if (openblas_read_env != nullptr) openblas_read_env();
  if (gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr) return;
  gotoblas_dynamic_init();
  if (environ == nullptr || std::getenv(variable) != nullptr) return;
  const char* const by_model = openblas_get_corename();
  const vector_width width = width_of_cpu();
  if (width_of_kernels(by_model) >= width) return;
  choose_with(entry_for(width));
  if (std::string_view(openblas_get_corename()) != by_model) replaced = by_model;
}

}  // namespace

vector_width width_of_kernels(std::string_view type) noexcept {
  for (const char* each : {"SkylakeX", "Cooperlake", "SapphireRapids"})
    if (type == each) return vector_width::avx512;
  for (const char* each : {"Haswell", "Zen"})
    if (type == each) return vector_width::avx2;
  for (const char* each : {"Sandybridge", "Bulldozer", "Piledriver", "Steamroller", "Excavator"})
    if (type == each) return vector_width::avx;
  return vector_width::sse;
}

std::string blas_kernels() {
  const std::string type = openblas_get_corename();
  if (replaced != nullptr)
    return type + " (by the CPU's features; OpenBLAS would take " + replaced + ")";
  if (const char* const wanted = std::getenv(variable); wanted != nullptr)
    return type + " (" + variable + " is " + wanted + ")";
  return type;
}

}  // namespace shale::ops
