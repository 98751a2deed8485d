// How a helper process reports its result to a test: by its exit status, with the reason on
// standard error. If this machine does not allow the test, it prints the reason on standard output.
#pragma once

#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace shale::test {

using words = std::vector<std::string>;

/// The exit status of a helper that could not run its test.
inline constexpr int status_unavailable = 77;

/// Thrown if the machine or the user's rights do not allow a helper's work.
struct unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A source position in a test. It replaces std::source_location, which clang 14 cannot use with
/// libstdc++.
struct call_site {
  const char* file = "";
  int line = 0;
  static constexpr call_site current(const char* file = __builtin_FILE(),
                                     int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// Ends the helper with a failure that names `fact` and the line, unless the condition is true.
inline void require(bool so, const std::string& fact, call_site caller = call_site::current()) {
  if (so) return;
  throw std::runtime_error(std::string(caller.file) + ":" + std::to_string(caller.line) +
                           ": not so: " + fact);
}

/// Ends the helper with a failure unless both values are equal.
template <class T, class U>
void require_equal(const T& got, const U& wanted, const std::string& fact,
                   call_site caller = call_site::current()) {
  require(got == wanted,
          fact + ": got " + std::to_string(static_cast<long long>(got)) + ", wanted " +
              std::to_string(static_cast<long long>(wanted)),
          caller);
}

/// The `main` of a helper: `PROGRAM VERB ARGUMENT…` calls the function of that verb.
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
