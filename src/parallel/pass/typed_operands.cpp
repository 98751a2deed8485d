#include "parallel/pass/typed_operands.hpp"

#include <string>

#include "shale/error.hpp"

namespace shale::parallel {

std::vector<loop_operand> typed_operands(std::span<const detail::apply_operand> operands) {
  std::vector<loop_operand> result;
  result.reserve(operands.size());
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const auto& operand = operands[k];
    if (operand.values.dtype() != operand.type)
      throw error(
          errc::invalid_argument,
          "an operand's dtype differs from the type of the callable's parameter",
          {"operand " + std::to_string(k) + " is " + std::string(name(operand.values.dtype())) +
               ", its parameter is " + std::string(name(operand.type)),
           "change the parameter's type, or convert with astype"});
    result.push_back({operand.values, operand.written, operand.written});
  }
  return result;
}

}  // namespace shale::parallel
