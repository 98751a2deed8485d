#include "support/peer_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace shale::bench {

namespace {

// Both ends of a pipe, which no other program inherits.
std::array<int, 2> pipe_ends() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  return ends;
}

}  // namespace

peer_process::peer_process(const std::vector<std::string>& command) {
  const auto to = pipe_ends(), from = pipe_ends();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int failed = posix_spawnp(&process_, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  requests_ = fdopen(to[1], "w");
  answers_ = fdopen(from[0], "r");
  if (failed != 0) throw std::runtime_error("cannot start " + command[0]);
  std::istringstream named(answer_to(""));
  for (std::string name; named >> name;) names_.push_back(name);
}

peer_process::~peer_process() {
  std::fclose(requests_);  // the program ends at the end of its input
  std::fclose(answers_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

std::string peer_process::answer_to(const std::string& request) {
  std::fprintf(requests_, "%s\n", request.c_str());
  std::fflush(requests_);
  std::string answer;
  for (int next = std::fgetc(answers_); next != '\n'; next = std::fgetc(answers_)) {
    if (next == EOF) throw std::runtime_error("the program of the peers has ended");
    answer.push_back(static_cast<char>(next));
  }
  return answer;
}

std::optional<double> peer_process::seconds(const std::string& peer, const std::string& work) {
  const std::string answer = text(peer, work);
  if (answer == "-") return std::nullopt;
  char* end = nullptr;
  const double seconds = std::strtod(answer.c_str(), &end);
  if (end == answer.c_str()) throw peer_failure(peer, work + ": " + answer);
  return seconds;
}

std::string peer_process::text(const std::string& peer, const std::string& question) {
  return answer_to(peer + '\t' + question);
}

}  // namespace shale::bench
