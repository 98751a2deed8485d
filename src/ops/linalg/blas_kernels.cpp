#include "ops/linalg/blas_kernels.hpp"

#include <fmt/format.h>
#include <strings.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "shale/error.hpp"

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

// The features of a CPU beyond SSE2 that kernels need, one bit for each.
enum feature : unsigned {
  sse3 = 1 << 0,
  ssse3 = 1 << 1,
  sse4_1 = 1 << 2,
  sse4_2 = 1 << 3,
  sse4a = 1 << 4,
  avx = 1 << 5,
  fma4 = 1 << 6,
  fma = 1 << 7,
  avx2 = 1 << 8,
  avx512 = 1 << 9,  // F, CD, BW, DQ and VL
  avx512_bf16 = 1 << 10,
};

// The kernel types of OpenBLAS 0.3.21 that need more than SSE2, and the instruction sets for which
// its build compiles them (Makefile.x86_64 and the names of its kernel files).
struct kernel_type {
  const char* name;
  vector_width width;
  unsigned needed;
};
constexpr kernel_type kernel_types[] = {
    {"Prescott", vector_width::sse, sse3},
    {"Opteron_SSE3", vector_width::sse, sse3},
    {"Barcelona", vector_width::sse, sse3 | sse4a},
    {"Bobcat", vector_width::sse, sse3 | ssse3 | sse4a},
    {"Atom", vector_width::sse, sse3 | ssse3},
    {"Nano", vector_width::sse, sse3 | ssse3},
    {"Core2", vector_width::sse, sse3 | ssse3},
    {"Penryn", vector_width::sse, sse3 | ssse3 | sse4_1},
    {"Dunnington", vector_width::sse, sse3 | ssse3 | sse4_1},
    {"Nehalem", vector_width::sse, sse3 | ssse3 | sse4_1 | sse4_2},
    {"Sandybridge", vector_width::avx, avx},
    {"Bulldozer", vector_width::avx, avx | fma4},
    {"Piledriver", vector_width::avx, avx | fma4 | fma},
    {"Steamroller", vector_width::avx, avx | fma4 | fma},
    {"Excavator", vector_width::avx, avx | fma4 | fma},
    {"Haswell", vector_width::avx2, avx | fma | avx2},
    {"Zen", vector_width::avx2, avx | fma | avx2},
    {"SkylakeX", vector_width::avx512, avx | fma | avx2 | avx512},
    {"Cooperlake", vector_width::avx512, avx | fma | avx2 | avx512 | avx512_bf16},
    {"SapphireRapids", vector_width::avx512, avx | fma | avx2 | avx512 | avx512_bf16},
};

// The kernel type that OpenBLAS chose by the model, if another one has replaced it.
const char* replaced = nullptr;

// The kernel type that the environment asks for, if the CPU cannot run its kernels.
const kernel_type* refused = nullptr;

// The environment that OpenBLAS saw. It is kept, because another thread may still read it.
char** shown_environment = nullptr;

// The kernel type of that name. Like OpenBLAS, it ignores the case of letters. Null if the type
// needs no more than SSE2, or if there is no such type: OpenBLAS then chooses by the CPU's model.
const kernel_type* find_type(const char* name) noexcept {
  for (const kernel_type& known : kernel_types)
    if (::strcasecmp(known.name, name) == 0) return &known;
  return nullptr;
}

#ifdef __x86_64__
unsigned cpu_features() noexcept {
  __builtin_cpu_init();
  unsigned found = 0;
  if (__builtin_cpu_supports("sse3")) found |= sse3;
  if (__builtin_cpu_supports("ssse3")) found |= ssse3;
  if (__builtin_cpu_supports("sse4.1")) found |= sse4_1;
  if (__builtin_cpu_supports("sse4.2")) found |= sse4_2;
  if (__builtin_cpu_supports("sse4a")) found |= sse4a;
  if (__builtin_cpu_supports("avx")) found |= avx;
  if (__builtin_cpu_supports("fma4")) found |= fma4;
  if (__builtin_cpu_supports("fma")) found |= fma;
  if (__builtin_cpu_supports("avx2")) found |= avx2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    found |= avx512;
  if (__builtin_cpu_supports("avx512bf16")) found |= avx512_bf16;
  return found;
}
#else
// Other processors have other kernel types, which this module leaves alone.
unsigned cpu_features() noexcept { return ~0u; }
#endif

vector_width width_of(unsigned features) noexcept {
#ifdef __x86_64__
  if ((features & avx) == 0) return vector_width::sse;
  if ((features & avx2) == 0 || (features & fma) == 0) return vector_width::avx;
  return (features & avx512) != 0 ? vector_width::avx512 : vector_width::avx2;
#else
  static_cast<void>(features);
  return vector_width::sse;
#endif
}

// The entry of the environment that makes OpenBLAS choose kernels of a width.
char* entry_for(vector_width width) noexcept {
  static char sandybridge[] = "OPENBLAS_CORETYPE=Sandybridge";
  static char haswell[] = "OPENBLAS_CORETYPE=Haswell";
  static char skylakex[] = "OPENBLAS_CORETYPE=SkylakeX";
  return width == vector_width::avx512 ? skylakex
         : width == vector_width::avx2 ? haswell
                                       : sandybridge;
}

// Whether an entry of the environment sets OPENBLAS_CORETYPE.
bool sets_the_variable(const char* entry) noexcept {
  return std::strncmp(entry, variable, sizeof(variable) - 1) == 0 &&
         entry[sizeof(variable) - 1] == '=';
}

// Lets OpenBLAS choose its kernels while the environment sets OPENBLAS_CORETYPE to another value,
// or does not set it. OpenBLAS has no other way to ask for a kernel type. Threads of a host program
// may read the environment meanwhile, so no byte of it is changed: for the time of the call,
// another environment takes its place.
void choose_with(char* entry_or_null) noexcept {
  std::size_t count = 0;
  while (environ[count] != nullptr) ++count;
  shown_environment = static_cast<char**>(std::malloc((count + 2) * sizeof(char*)));
  if (shown_environment == nullptr) return;
  std::size_t shown = 0;
  if (entry_or_null != nullptr) shown_environment[shown++] = entry_or_null;
  for (std::size_t i = 0; i < count; ++i)
    if (!sets_the_variable(environ[i])) shown_environment[shown++] = environ[i];
  shown_environment[shown] = nullptr;

  char** const before = environ;
  environ = shown_environment;
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  if (environ == shown_environment) environ = before;
  else if (entry_or_null != nullptr)
    ::unsetenv(variable);  // another thread has copied it meanwhile
}

// OpenBLAS's own constructor is not linked (see blas_buffer.cpp); this one does its work.
__attribute__((constructor(101))) void choose_blas_kernels() noexcept {
  if (openblas_read_env != nullptr) openblas_read_env();
  if (gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr) return;
  const unsigned features = cpu_features();
  const char* const wanted = environ != nullptr ? std::getenv(variable) : nullptr;
  const kernel_type* const type = wanted != nullptr ? find_type(wanted) : nullptr;
  if (type != nullptr && (type->needed & ~features) != 0) {
    // Even the initialization of these kernels could use instructions that the CPU does not have.
    refused = type;
    return choose_with(nullptr);
  }
  gotoblas_dynamic_init();
  if (environ == nullptr || wanted != nullptr) return;
  const char* const by_model = openblas_get_corename();
  const vector_width width = width_of(features);
  if (width_of_kernels(by_model) >= width) return;
  choose_with(entry_for(width));
  if (std::string_view(openblas_get_corename()) != by_model) replaced = by_model;
}

}  // namespace

vector_width width_of_kernels(std::string_view type) noexcept {
  for (const kernel_type& known : kernel_types)
    if (type == known.name) return known.width;
  return vector_width::sse;
}

void check_blas_kernels() {
  if (refused == nullptr) return;
  throw error(
      errc::unsupported, "OPENBLAS_CORETYPE asks for kernels that cannot run here",
      {fmt::format("wanted {}, usable on this CPU: {}", refused->name, openblas_get_corename()),
       "unset OPENBLAS_CORETYPE to take the best kernels for this CPU"});
}

std::string blas_kernels() {
  check_blas_kernels();
  const std::string type = openblas_get_corename();
  if (replaced != nullptr)
    return type + " (by the CPU's features; OpenBLAS would take " + replaced + ")";
  if (const char* const wanted = std::getenv(variable); wanted != nullptr)
    return type + " (" + variable + " is " + wanted + ")";
  return type;
}

}  // namespace shale::ops
