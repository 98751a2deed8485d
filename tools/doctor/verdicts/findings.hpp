// Facts with their verdicts, as the command shows them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shale::tools {

enum class verdict {
  ok,
  unknown,  ///< the system does not tell
  note,     ///< something is slower or smaller than it could be
  problem,  ///< something fails, or will fail soon
};
std::string_view name(verdict found) noexcept;

struct check {
  std::string topic;  ///< "memory", or a path
  std::string name;
  verdict found = verdict::ok;
  std::string value;
  std::string advice;   ///< what the fact means and what the user can do; empty if all is well
  std::string command;  ///< a shell command that does it; empty if there is none
};

/// Collects the checks of one topic.
class findings {
 public:
  explicit findings(std::string topic) : topic_(std::move(topic)) {}

  void ok(std::string name, std::string value) {
    add(verdict::ok, std::move(name), std::move(value), {}, {});
  }
  void note(std::string name, std::string value, std::string advice, std::string command = {}) {
    add(verdict::note, std::move(name), std::move(value), std::move(advice), std::move(command));
  }
  void problem(std::string name, std::string value, std::string advice, std::string command = {}) {
    add(verdict::problem, std::move(name), std::move(value), std::move(advice), std::move(command));
  }
  void unknown(std::string name, std::string why) {
    add(verdict::unknown, std::move(name), std::move(why), {}, {});
  }

  std::vector<check> done() { return std::move(checks_); }

 private:
  void add(verdict found, std::string name, std::string value, std::string advice,
           std::string command) {
    checks_.push_back(
        {topic_, std::move(name), found, std::move(value), std::move(advice), std::move(command)});
  }

  std::string topic_;
  std::vector<check> checks_;
};

/// "4.0 MiB of 64 MiB", "none of 64 MiB", "all of 64 MiB".
std::string share_of(std::uint64_t part_bytes, std::uint64_t whole_bytes);

/// The part of a limit that is left; 0 if more is used.
std::uint64_t remainder_of(std::uint64_t limit, std::uint64_t used) noexcept;

}  // namespace shale::tools
