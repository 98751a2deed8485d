// Parses the command line and chooses a subcommand.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace shale::tools {

struct command_line;

/// The meaning of a command line. Exactly one member is not empty.
struct choice {
  std::function<int()> run;  ///< the subcommand, which returns the exit code
  std::string answer;        ///< help or the version, for stdout
  std::string refusal;       ///< the reason why the command line is invalid
};

class commands {
 public:
  explicit commands(const std::string& version);
  ~commands();
  commands(const commands&) = delete;
  commands& operator=(const commands&) = delete;

  /// Parses a command line; an earlier one has no influence.
  /// Throws   invalid_argument
  choice parse(int argc, char** argv);

 private:
  std::unique_ptr<command_line> line_;
};

}  // namespace shale::tools
