// Makes allocations fail. A program with failing_memory.cpp among its sources allocates through it.
#pragma once

#include <functional>
#include <string>

namespace shale::test {

/// Runs `call` with its n-th allocation failing, for every n that occurs: once with that allocation
/// alone, and once with all later ones too. Each time `call` must return, or throw an error with
/// the code out_of_memory. Afterwards it must work.
void expect_errors_only(const std::string& operation, const std::function<void()>& call);

/// While an object of this class lives, no allocation succeeds.
class no_memory {
 public:
  no_memory() noexcept;
  ~no_memory();
  no_memory(const no_memory&) = delete;
  no_memory& operator=(const no_memory&) = delete;
};

/// While an object of this class lives inside such a call, allocations succeed and are not counted.
/// Use it for code that only prepares the call or uses its result.
class enough_memory {
 public:
  enough_memory() noexcept;
  ~enough_memory();
  enough_memory(const enough_memory&) = delete;
  enough_memory& operator=(const enough_memory&) = delete;

 private:
  const int before_;
};

}  // namespace shale::test
