// Fuzzes the parser of the command line. Each line of the input is one argument. The real commands
// parse the arguments, and never run.
//
// Property: the arguments choose a command, ask for help, or are refused with a message.
#include <string>
#include <vector>

#include "commands/commands.hpp"
#include "fuzz/require.hpp"
#include "shale/error.hpp"

namespace {

using namespace shale::tools;
using shale::fuzz::require;

constexpr std::size_t words_max = 64;

std::vector<std::string> words_of(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> words{"shale"};
  words.emplace_back();
  for (std::size_t i = 0; i < size && words.size() < words_max; ++i) {
    if (data[i] == '\n') words.emplace_back();
    else if (data[i] != 0) words.back() += static_cast<char>(data[i]);  // no argument holds a 0
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> words = words_of(data, size);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  // The commands are made once, because making them takes longer than parsing.
  static commands all("0");
  try {
    const choice made = all.parse(static_cast<int>(argv.size()), argv.data());
    require(bool(made.run) + !made.answer.empty() + !made.refusal.empty() == 1,
            "a command runs, or help is given, or a refusal says why");
  } catch (const shale::error& failure) {
    require(failure.code() == shale::errc::invalid_argument, "options are the caller's mistake");
  }
  return 0;
}
