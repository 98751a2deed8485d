// Prints, in four lines, what this process chose: the instruction set and whether SHALE_ISA was
// refused; the BLAS, or "refused" if OPENBLAS_CORETYPE is; the value of OPENBLAS_CORETYPE; and how
// a product ends. It is a program of its own, because a process chooses only once.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "ops/kernels/dispatch/dispatch.hpp"
#include "shale/dtype.hpp"
#include "shale/error.hpp"
#include "shale/linalg.hpp"
#include "shale/ops.hpp"
#include "shale/tensor.hpp"

namespace {

// What `ask` returns, or the text of the error that it throws, in one line.
template <class Ask>
std::string answer(Ask ask) {
  try {
    return ask();
  } catch (const shale::error& failure) {
    std::string text = failure.what();
    for (char& byte : text)
      if (byte == '\n') byte = ' ';
    return "refused: " + text;
  }
}

}  // namespace

int main() {
  std::string refusal = "accepted";
  try {
    shale::ops::check_isa();
  } catch (const shale::error& failure) {
    refusal = name(failure.code());
  }
  std::printf("%s %s\n", std::string(name(shale::ops::active_isa())).c_str(), refusal.c_str());
  std::printf("%s\n", answer(shale::blas_name).c_str());
  const char* const type = std::getenv("OPENBLAS_CORETYPE");
  std::printf("%s\n", type != nullptr ? type : "not set");
  const std::string product = answer([] {
    const auto ones = shale::tensor::ones({64, 64}, shale::dtype::float32);
    return matmul(ones, ones).at({5, 7}).to_string();
  });
  std::printf("%s\n", product.c_str());
}
