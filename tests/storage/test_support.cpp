#include "storage/test_support.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

extern char** environ;

namespace shale::test {

scratch_directory::scratch_directory() {
  const char* const base = std::getenv("TMPDIR");
  path_ = std::string(base != nullptr ? base : "/tmp") + "/shale-storage-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no scratch directory");
}

scratch_directory::~scratch_directory() {
  ::nftw(
      path_.c_str(), [](const char* each, const struct stat*, int, FTW*) { return ::remove(each); },
      16, FTW_DEPTH | FTW_PHYS);
}

void write_pattern(const std::string& path, std::size_t bytes) {
  std::vector<char> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<char>(pattern(i));
  std::ofstream(path, std::ios::binary).write(all.data(), static_cast<std::streamsize>(bytes));
}

std::vector<unsigned char> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  const std::string text = all.str();
  return {text.begin(), text.end()};
}

std::size_t file_size(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) throw std::runtime_error("no file " + path);
  return static_cast<std::size_t>(about.st_size);
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* const all = ::opendir("/proc/self/fd");
  while (::readdir(all) != nullptr) ++count;
  ::closedir(all);
  return count;
}

std::size_t mappings_of(const std::string& what) {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find(what) != std::string::npos) ++count;
  return count;
}

std::size_t address_space_bytes() {
  std::ifstream about("/proc/self/statm");
  std::size_t pages = 0;
  about >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

peer::peer(const std::vector<std::string>& arguments) {
  int to[2];
  int from[2];
  if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], 0);
  posix_spawn_file_actions_adddup2(&actions, from[1], 1);
  std::vector<std::string> words{SHALE_STORAGE_PEER};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& each : words) argv.push_back(each.data());
  argv.push_back(nullptr);
  const int failure = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(to[0]);
  ::close(from[1]);
  input_ = to[1];
  output_ = from[0];
  if (failure != 0) throw std::runtime_error("no peer process");
}

peer::~peer() {
  if (pid_ > 0) {
    kill_now();
    wait();
  }
  ::close(input_);
  ::close(output_);
}

std::string peer::read_line() {
  std::string line;
  for (char c; ::read(output_, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

void peer::write_line(const std::string& line) {
  const std::string all = line + "\n";
  if (::write(input_, all.data(), all.size()) < 0) throw std::runtime_error("the peer is gone");
}

void peer::kill_now() { ::kill(pid_, SIGKILL); }

int peer::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int run_peer(const std::vector<std::string>& arguments) {
  peer other(arguments);
  return other.wait();
}

}  // namespace shale::test
