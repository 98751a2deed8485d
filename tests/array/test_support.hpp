// Functions for the tests of this floor: deterministic elements, damage, and the helper program.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "shale/container.hpp"
#include "shale/convert.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "support/child_process.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale::test {

/// A number for position `i` that differs from its neighbours in every dtype.
constexpr int number_at(index_t i) { return static_cast<int>((i * 7 + i / 64 * 3) % 97) + 1; }

/// Row-major elements number_at(i), converted to the dtype without using the engine.
tensor counting(const dims& shape, dtype type);

/// Like `counting` for float32, but different for each `seed`.
tensor seeded(const dims& shape, int seed);

/// All dtypes.
std::vector<dtype> all_dtypes();

void flip_byte(const std::string& path, std::uint64_t offset);
std::vector<std::byte> bytes_of_file(const std::string& path);

/// Findings of a verification as one text, so that a failure shows them.
std::string findings_of(const container& file);

/// A progress sink that calls a function at the first report of the engine.
class calling_sink final : public progress_sink {
 public:
  explicit calling_sink(std::function<void()> body) : body_(std::move(body)) {}
  void advance(std::uint64_t, std::uint64_t) override {
    if (!called_.exchange(true)) body_();
  }
  bool called() const { return called_; }

 private:
  std::function<void()> body_;
  std::atomic<bool> called_ = false;
};

/// A base for fixtures: a new container in a folder that is removed after the test.
class fresh_container : public testing::Test {
 protected:
  /// One transaction that creates an array and writes all of it.
  void write_new(const std::string& name, const array_spec& spec, const expr& values);
  array at(const std::string& name) const { return file_.latest().at(name); }

  scratch_directory directory_;
  std::string path_ = directory_ / "arrays.shale";
  container file_ = container::create(path_);
};

/// The helper program, run as a separate process. Its name is not that of the storage floor's,
/// because the mutations link tests of all floors into one program.
class array_peer : public child_process {
 public:
  explicit array_peer(const std::vector<std::string>& arguments)
      : child_process(SHALE_ARRAY_PEER, arguments) {}
};

}  // namespace shale::test
