// The subcommands that there are, and which of them a command line chooses.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace shale::tools {

struct command_line;

/// What a command line asks for.
struct choice {
  std::function<int()> run;  ///< the subcommand, which returns the exit code; or else
  std::string answer;        ///< help or the version, for stdout; or else
  std::string refusal;       ///< lines that say why it cannot be understood
};

class commands {
 public:
  explicit commands(const std::string& version);
  ~commands();
  commands(const commands&) = delete;
  commands& operator=(const commands&) = delete;

  /// What was parsed before is forgotten.
  /// Throws   invalid_argument
  choice parse(int argc, char** argv);

 private:
  std::unique_ptr<command_line> line_;
};

}  // namespace shale::tools
