// The options of a suite, as script/bench passes them.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/peer_process.hpp"

namespace shale::bench {

/// Pairs of an option and its value.
class options {
 public:
  /// Throws   std::invalid_argument for an option that is not among `known`, or has no value
  options(std::span<char* const> arguments, std::initializer_list<const char*> known);

  /// The value of an option, or `otherwise` if it was not given.
  /// Throws   std::invalid_argument if it should be a number and is none
  std::string text(const std::string& option, const std::string& otherwise) const;
  long long number(const std::string& option, long long otherwise) const;

  /// Starts the program of peers that two options name, the interpreter and the program, with these
  /// arguments. Null if they were not given.
  std::unique_ptr<peer_process> start_peers(const std::vector<std::string>& arguments,
                                            const std::string& python = "--python",
                                            const std::string& program = "--peers") const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace shale::bench
