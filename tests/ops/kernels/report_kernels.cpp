// Prints, in three lines, what this process chose: the instruction set and whether SHALE_ISA was
// refused; the BLAS; and the value of OPENBLAS_CORETYPE. It is a program of its own, because a
// process chooses only once.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "ops/kernels/dispatch.hpp"
#include "shale/error.hpp"
#include "shale/linalg.hpp"

int main() {
  std::string refusal = "accepted";
  try {
    shale::ops::check_isa();
  } catch (const shale::error& failure) {
    refusal = name(failure.code());
  }
  std::printf("%s %s\n", std::string(name(shale::ops::active_isa())).c_str(), refusal.c_str());
  std::printf("%s\n", shale::blas_name().c_str());
  const char* const type = std::getenv("OPENBLAS_CORETYPE");
  std::printf("%s\n", type != nullptr ? type : "not set");
}
