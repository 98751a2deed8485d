// The helper process for the tests of pins and kills:
//
//   format_peer read PATH pins the newest generation and prints its number; then, for each line of
//                            input, reads everything again and prints "same" or "changed"
//   format_peer write PATH   commits one generation after another, all chunks of which hold the
//                            generation's number, until it is killed

#include <cstdio>
#include <iostream>
#include <string>

#include "format/small_history.hpp"
#include "shale/error.hpp"

namespace shale {
namespace {

constexpr unsigned chunks = 12;

int read(const std::string& path) {
  format::container_file container =
      format::container_file::open(format::posix_files(), path, format::open_access::read);
  const format::generation_view view = container.latest();
  const test::plain_state first = test::observe(view);
  std::cout << view.generation() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const bool same = test::observe(view) == first && test::unsound(view).empty();
    std::cout << (same ? "same" : "changed") << std::endl;
  }
  return 0;
}

int write(const std::string& path) {
  format::container_file container =
      format::container_file::open(format::posix_files(), path, format::open_access::write);
  for (;;) {
    format::transaction change = container.begin(std::chrono::milliseconds{10'000});
    const auto number = static_cast<unsigned>(change.generation());
    test::plain_state ignored;
    test::storyteller story(change, ignored);
    if (!change.find("a")) story.create_chunked("a");
    // Each generation replaces only some chunks, so that generations share the others.
    for (unsigned i = number % 2; i < chunks; i += 2) story.chunk("a", i, number);
    if (number % 3 == 0) story.dense("d", number % 5 * 4000 + 100, number);
    story.note("a", "number", std::to_string(number));
    change.commit();
    std::cout << number << std::endl;
  }
}

}  // namespace
}  // namespace shale

int main(int count, char** words) {
  try {
    if (count == 3 && std::string(words[1]) == "read") return shale::read(words[2]);
    if (count == 3 && std::string(words[1]) == "write") return shale::write(words[2]);
  } catch (const shale::error& failure) {
    std::cout << failure.what() << std::endl;
    return 1;
  }
  return 2;
}
