#include "support/options.hpp"

#include <algorithm>
#include <stdexcept>

namespace shale::bench {

options::options(std::span<char* const> arguments, std::initializer_list<const char*> known) {
  for (std::size_t k = 0; k < arguments.size(); k += 2) {
    const std::string option = arguments[k];
    if (std::find(known.begin(), known.end(), option) == known.end())
      throw std::invalid_argument("unknown option " + option);
    if (k + 1 == arguments.size()) throw std::invalid_argument(option + " needs a value");
    values_[option] = arguments[k + 1];
  }
}

std::string options::text(const std::string& option, const std::string& otherwise) const {
  const auto found = values_.find(option);
  return found == values_.end() ? otherwise : found->second;
}

long long options::number(const std::string& option, long long otherwise) const {
  const auto found = values_.find(option);
  return found == values_.end() ? otherwise : std::stoll(found->second);
}

std::unique_ptr<peer_process> options::start_peers(const std::vector<std::string>& arguments,
                                                   const std::string& python,
                                                   const std::string& program) const {
  std::vector<std::string> command = {text(python, ""), text(program, "")};
  if (command[0].empty() || command[1].empty()) return nullptr;
  command.insert(command.end(), arguments.begin(), arguments.end());
  return std::make_unique<peer_process>(command);
}

}  // namespace shale::bench
