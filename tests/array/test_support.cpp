#include "array/test_support.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace shale::test {

scratch::scratch() {
  std::string name = (std::filesystem::temp_directory_path() / "shale-array-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
}

scratch::~scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

tensor counting(const dims& shape, dtype type) {
  const tensor made = tensor::empty(shape, type);
  visit(type, all_types{}, [&]<class T>(std::type_identity<T>) {
    index_t i = 0;
    for (T& each : made.elements<T>()) {
      const int number = number_at(i++);
      each = std::is_same_v<T, bool> ? convert<T>(number % 3 == 0) : convert<T>(number);
    }
  });
  return made;
}

tensor seeded(const dims& shape, int seed) {
  const tensor made = counting(shape, dtype::float32);
  for (float& each : made.elements<float>()) each = each * 1.5f + static_cast<float>(seed);
  return made;
}

std::vector<dtype> all_dtypes() {
  std::vector<dtype> types;
  for (int code = 1; code < 256; ++code)
    if (const auto type = dtype_from_code(static_cast<std::uint8_t>(code))) types.push_back(*type);
  return types;
}

void flip_byte(const std::string& path, std::uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int old = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(old ^ 0x40));
  if (!file) throw std::runtime_error("cannot change a byte of " + path);
}

std::vector<std::byte> bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> chars((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::byte> bytes(chars.size());
  if (!chars.empty()) std::memcpy(bytes.data(), chars.data(), chars.size());
  return bytes;
}

std::string findings_of(const container& file) {
  std::string text;
  for (const auto& each : file.verify().findings) text += each.text + "\n";
  return text;
}

std::size_t status_bytes(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(std::string(field) + ":"))
      return std::stoul(line.substr(std::strlen(field) + 1)) * 1024;
  throw std::runtime_error("no such line");
}

peer::peer(const std::vector<std::string>& arguments) {
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0)
    throw std::runtime_error("pipe failed");
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), SHALE_ARRAY_PEER);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(to[0], 0);
    ::dup2(from[1], 1);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(to[0]);
  ::close(from[1]);
  input_ = to[1];
  output_ = from[0];
}

peer::~peer() {
  ::close(input_);
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    wait();
  }
  ::close(output_);
}

std::string peer::read_line() {
  std::string line;
  char next = 0;
  while (::read(output_, &next, 1) == 1 && next != '\n') line += next;
  return line;
}

void peer::write_line(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(input_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("the peer does not listen");
}

void peer::kill_now() { ::kill(pid_, SIGKILL); }

int peer::wait() {
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) throw std::runtime_error("waitpid failed");
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace shale::test
