// The command line, one word a line of the input: parsed by the real commands, never run. What must
// hold: the words choose a command, ask for help, or are refused with a message.
#include <memory>
#include <string>
#include <vector>

#include "command_line.hpp"
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

std::unique_ptr<command_line> make_command_line() {
  auto made = std::make_unique<command_line>();
  made->app.require_subcommand(0, 1);
  made->app.set_version_flag("--version", "0", "Print the version and stop");
  for (const auto add : {add_info, add_ls, add_cat, add_stats, add_plot, add_convert, add_create,
                         add_eval, add_set, add_mv, add_rm, add_verify, add_doctor, add_version})
    add(*made);
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> words = words_of(data, size);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  // Made once: parsing forgets what was parsed before, and making it takes longer than parsing.
  static const std::unique_ptr<command_line> made = make_command_line();
  command_line& line = *made;
  line.chosen = nullptr;
  try {
    line.app.parse(static_cast<int>(argv.size()), argv.data());
    require(line.app.get_subcommands().empty() == !line.chosen,
            "a command that is named is chosen");
  } catch (const CLI::Success&) {
    require(!line.app.help().empty(), "help says something");
  } catch (const CLI::ParseError& wrong) {
    require(wrong.get_exit_code() != 0 && *wrong.what() != 0, "a refusal says why");
  } catch (const shale::error& failure) {
    require(failure.code() == shale::errc::invalid_argument, "options are the caller's mistake");
  }
  return 0;
}
