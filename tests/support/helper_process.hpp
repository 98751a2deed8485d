// How a helper process of a test says what it found: by its exit status, and by why on standard
// error; and that this machine does not let it look, by a line on standard output.
#pragma once

#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace shale::test {

using words = std::vector<std::string>;

/// The exit status of a helper that could not look.
inline constexpr int status_unavailable = 77;

/// Thrown where the machine or the user's rights do not allow what a helper is for.
struct unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A line of a test: std::source_location, which libstdc++ does not have for clang 14.
struct call_site {
  const char* file = "";
  int line = 0;
  static constexpr call_site current(const char* file = __builtin_FILE(),
                                     int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// Ends the helper with a failure that names `what` and the line, unless it is so.
inline void require(bool so, const std::string& what, call_site where = call_site::current()) {
  if (so) return;
  throw std::runtime_error(std::string(where.file) + ":" + std::to_string(where.line) +
                           ": not so: " + what);
}

/// Unless the two are equal.
template <class T, class U>
void require_equal(const T& got, const U& wanted, const std::string& what,
                   call_site where = call_site::current()) {
  require(got == wanted,
          what + ": got " + std::to_string(static_cast<long long>(got)) + ", wanted " +
              std::to_string(static_cast<long long>(wanted)),
          where);
}

/// `main` of a helper: `PROGRAM VERB ARGUMENT…` calls what the verb names.
inline int run_verb(const std::map<std::string, void (*)(const words&)>& verbs, int count,
                    char** arguments) {
  const words all(arguments + 1, arguments + count);
  try {
    verbs.at(all.at(0))(words(all.begin() + 1, all.end()));
    return 0;
  } catch (const unavailable& reason) {
    std::printf("%s\n", reason.what());
    return status_unavailable;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s %s: %s\n", arguments[0], count > 1 ? arguments[1] : "",
                 failure.what());
    return 1;
  }
}

}  // namespace shale::test
