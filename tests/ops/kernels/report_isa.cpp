// Says which kernels this process took and whether SHALE_ISA was refused: a program of its own,
// because a process chooses once.
#include <cstdio>
#include <string>

#include "ops/dispatch.hpp"
#include "shale/error.hpp"

int main() {
  std::string refusal = "accepted";
  try {
    shale::ops::check_isa();
  } catch (const shale::error& failure) {
    refusal = name(failure.code());
  }
  std::printf("%s %s\n", std::string(name(shale::ops::active_isa())).c_str(), refusal.c_str());
}
