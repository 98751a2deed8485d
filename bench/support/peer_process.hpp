// Peers that are Python packages: one process of the interpreter runs them all, and measures each
// piece of work when it is asked to.
#pragma once

#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace shale::bench {

/// The work of a peer failed. The others can go on.
struct peer_failure : std::runtime_error {
  peer_failure(const std::string& name, const std::string& text)
      : std::runtime_error(name + ", " + text), peer(name) {}
  std::string peer;
};

/// A running program of bench/peers. It reads one request per line from its standard input, and
/// answers each with one line. It ends with this object.
class peer_process {
 public:
  /// Starts `command`, whose first word is the program. Waits until it names its peers.
  /// Throws   std::runtime_error if it does not start, or ends before it has named them
  explicit peer_process(const std::vector<std::string>& command);
  ~peer_process();
  peer_process(const peer_process&) = delete;
  peer_process& operator=(const peer_process&) = delete;

  /// The peers that are installed.
  const std::vector<std::string>& names() const noexcept { return names_; }

  /// The seconds that `peer` takes for one call of `work`, or the number that this name asks for;
  /// nothing if it has no such work.
  /// Throws   peer_failure if the work fails; std::runtime_error if the program has ended
  std::optional<double> seconds(const std::string& peer, const std::string& work);

  /// The text that `peer` answers.
  std::string text(const std::string& peer, const std::string& question);

 private:
  std::string answer_to(const std::string& request);

  int process_ = -1;
  std::FILE* requests_ = nullptr;
  std::FILE* answers_ = nullptr;
  std::vector<std::string> names_;
};

}  // namespace shale::bench
