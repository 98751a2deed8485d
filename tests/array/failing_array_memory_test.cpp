// Makes every allocation of the container handles fail in turn. The call throws `out_of_memory` and
// nothing else. Afterwards the file holds one whole generation, no lock stays, and the same call
// works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "shale/container.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/ops.hpp"
#include "support/failing_memory.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::enough_memory;
using test::expect_errors_only;
using testing::HasSubstr;

tensor values() { return tensor::full({300}, 2, dtype::float32); }

// Whether a transaction with an array "dense" answers. If a change has failed half-way, it says so.
bool is_consistent(transaction& change) {
  try {
    EXPECT_TRUE(change.find("dense"));
    return true;
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::out_of_memory);
    EXPECT_THAT(refused.what(), HasSubstr("one of its changes or writes has failed"));
    EXPECT_THROW(change.commit(), error);
    return false;
  }
}

// A container with the arrays "dense" and "chunked", both with the same values.
class FailingArrayMemory : public testing::Test {
 protected:
  FailingArrayMemory() {
    container file = container::create(path_);
    transaction change = file.begin();
    change.create("dense", dense_).write(values());
    change.create("chunked", chunked_).write(values());
    change.set_attribute("dense", "key", "value");
    change.commit();
  }

  // Calls make the file anew if they need to, so syncs are not needed here.
  const test::scratch_directory directory_{"/dev/shm"};
  const std::string path_ = directory_ / "file.shale";
  const array_spec dense_{.dtype = dtype::float32, .shape = {300}};
  const array_spec chunked_{.dtype = dtype::float32,
                            .shape = {300},
                            .kind = array_kind::chunked,
                            .chunk_shape = dims{100},
                            .codec = {.compression = zstd(1)}};
};

TEST_F(FailingArrayMemory, OpeningThrowsErrors) {
  expect_errors_only("open", [&] { container::open(path_); });
  expect_errors_only("open for writing", [&] { container::open(path_, open_mode::write); });
  const std::string none = path_ + ".none";
  expect_errors_only("open_if_exists", [&] {
    if (container::open_if_exists(none)) ADD_FAILURE();
  });
  // A failed call leaves no file, or the next one would say that it exists.
  expect_errors_only("create", [&] {
    container::create(none);
    const enough_memory now;
    std::filesystem::remove(none);
  });
  int made = 0;
  expect_errors_only("open_or_create", [&] {
    std::string fresh;
    {
      const enough_memory now;
      fresh = path_ + std::to_string(made++);
    }
    container::open_or_create(fresh);
  });
}

TEST_F(FailingArrayMemory, ReadingThrowsErrors) {
  const container file = container::open(path_);
  const snapshot newest = file.latest();
  const tensor wanted = values();
  expect_errors_only("uuid", [&] { file.uuid(); });
  expect_errors_only("latest", [&] { file.latest(); });
  expect_errors_only("names", [&] { newest.names(); });
  expect_errors_only("close_names", [&] { newest.close_names("densee"); });
  expect_errors_only("wait_newer", [&] { file.wait_newer(0, no_wait); });
  expect_errors_only("verify", [&] {
    if (!file.verify().findings.empty()) ADD_FAILURE();
  });
  for (const int threads : {1, 3}) {
    executor on({.threads = threads});
    const executor::scope within(on);
    for (const char* name : {"dense", "chunked"}) {
      SCOPED_TRACE(name);
      expect_errors_only("find", [&] { newest.find(name); });
      const array found = newest.at(name);
      expect_errors_only("attributes", [&] { found.attributes(); });
      expect_errors_only("codec", [&] { found.codec(); });
      expect_errors_only("map", [&] {
        if (newest.at(name).kind() == array_kind::dense) newest.at(name).map();
      });
      expect_errors_only("read", [&] {
        const tensor read = found.read();
        const enough_memory now;
        if (!array_equal(read, wanted)) ADD_FAILURE();
      });
      expect_errors_only("read a part", [&] { found.read({{50}, {100}}); });
      expect_errors_only("sum", [&] { eval(sum(found)); });
    }
  }
}

// Runs changes in transactions that are then aborted.
class FailingChangeMemory : public FailingArrayMemory {
 protected:
  ~FailingChangeMemory() override { EXPECT_EQ(file_.latest().generation(), before_); }

  template <class Change>
  void expect_errors_of(const std::string& description, Change change) {
    expect_errors_only(description, [&] {
      std::optional<transaction> begun;
      {
        const enough_memory now;
        begun.emplace(file_.begin());
      }
      change(*begun);
    });
  }

  // Changes the shape of an array. A change that fails changes nothing, and can be made again; or
  // the transaction cannot be committed.
  template <class Change>
  void expect_errors_of_shape(const std::string& description, const char* name, Change make) {
    expect_errors_of(description, [&](transaction& change) {
      try {
        make(change);
      } catch (const error&) {
        const enough_memory now;
        if (is_consistent(change)) {
          const tensor kept = change.find(name)->read();
          if (kept.shape() != wanted_.shape()) {
            // An append to a chunked array could not be undone without memory.
            EXPECT_EQ(description.substr(0, 6), "append");
            EXPECT_EQ(std::string(name), "chunked");
            EXPECT_THROW(change.commit(), error);
            throw;
          }
          EXPECT_TRUE(array_equal(kept, wanted_));
          make(change);
          EXPECT_NE(change.find(name)->shape(), wanted_.shape());
        }
        throw;
      }
    });
  }

  container file_ = container::open(path_, open_mode::write);
  const std::uint64_t before_ = file_.latest().generation();
  const tensor wanted_ = values();
  const expr changed_ = expr(wanted_) + 1;
};

// An array whose creation has failed is not there, unless the transaction cannot be committed.
TEST_F(FailingChangeMemory, OfNewArraysThrowsErrors) {
  expect_errors_only("begin", [&] { file_.begin(no_wait); });
  const auto create = [](transaction& change, auto make) {
    try {
      make();
    } catch (const error&) {
      const enough_memory now;
      if (!is_consistent(change) || change.find("new")) {
        EXPECT_THROW(change.commit(), error);
      }
      throw;
    }
  };
  for (const array_spec& spec : {dense_, chunked_}) {
    expect_errors_of("create", [&](transaction& change) {
      create(change, [&] { change.create("new", spec); });
    });
    expect_errors_of("create with values", [&](transaction& change) {
      create(change, [&] { change.create("new", changed_, {.kind = spec.kind}); });
    });
    expect_errors_of("create a copy", [&](transaction& change) {
      const char* const name = spec.kind == array_kind::dense ? "dense" : "chunked";
      create(change, [&] { change.create_copy("new", *change.find(name)); });
    });
  }
}

// After a failure the old array is there, unless the transaction cannot be committed.
TEST_F(FailingChangeMemory, OfArraysThatAreReplacedThrowsErrors) {
  for (const array_kind kind : {array_kind::dense, array_kind::chunked})
    expect_errors_of("create or replace", [&](transaction& change) {
      try {
        change.create_or_replace("dense", changed_, {.kind = kind});
      } catch (const error&) {
        const enough_memory now;
        bool is_kept = false;
        try {
          const auto found = change.find("dense");
          is_kept = found && array_equal(found->read(), wanted_);
        } catch (const error&) {
          // The transaction cannot be used any more.
        }
        if (!is_kept) {
          EXPECT_THROW(change.commit(), error);
        }
        throw;
      }
    });
}

TEST_F(FailingChangeMemory, OfNamesAndAttributesThrowsErrors) {
  expect_errors_of("names", [&](transaction& change) { change.names(); });
  expect_errors_of("children", [&](transaction& change) { change.children(); });
  expect_errors_of("set_attribute",
                   [&](transaction& change) { change.set_attribute("dense", "k", "v"); });
  expect_errors_of("set_level_attribute",
                   [&](transaction& change) { change.set_level_attribute("level", "k", "v"); });
  expect_errors_of("remove_attribute",
                   [&](transaction& change) { change.remove_attribute("dense", "key"); });
  expect_errors_of("rename", [&](transaction& change) {
    try {
      change.rename("dense", "new");
    } catch (const error&) {
      const enough_memory now;
      if (is_consistent(change)) {
        EXPECT_FALSE(change.find("new"));
        change.rename("dense", "new");
      }
      throw;
    }
  });
  expect_errors_of("remove", [&](transaction& change) { change.remove("dense"); });
}

TEST_F(FailingChangeMemory, OfShapesThrowsErrors) {
  for (const char* name : {"dense", "chunked"}) {
    SCOPED_TRACE(name);
    expect_errors_of_shape("shorten", name,
                           [&](transaction& change) { change.resize(name, {150}); });
    expect_errors_of_shape("lengthen", name,
                           [&](transaction& change) { change.resize(name, {1000}); });
    expect_errors_of_shape("append", name,
                           [&](transaction& change) { change.append(name, wanted_); });
    expect_errors_of_shape("append an expression", name, [&](transaction& change) {
      change.append(name, changed_.narrow(0, 0, 150));
    });
  }
}

TEST_F(FailingChangeMemory, OfElementsThrowsErrors) {
  for (const char* name : {"dense", "chunked"}) {
    SCOPED_TRACE(name);
    expect_errors_of("update", [&](transaction& change) { change.update(name); });
    expect_errors_of("find", [&](transaction& change) { change.find(name); });
    expect_errors_of("write", [&](transaction& change) { change.update(name).write(wanted_); });
    expect_errors_of("write an expression",
                     [&](transaction& change) { change.update(name).write(changed_); });
    expect_errors_of("write a part", [&](transaction& change) {
      change.update(name).write({{50}, {100}}, wanted_.narrow(0, 0, 100));
    });
    expect_errors_of("read it back", [&](transaction& change) {
      change.update(name).write(changed_);
      change.find(name)->read();
    });
  }
}

// A commit either publishes its generation, or leaves the generation before as the newest.
TEST_F(FailingArrayMemory, CommitsAreWholeOrNothing) {
  const tensor wanted = values();
  std::uint64_t committed = container::open(path_).latest().generation();
  int made = 0;
  expect_errors_only("commit", [&] {
    std::optional<container> file;
    std::optional<transaction> change;
    {
      const enough_memory now;
      file = container::open(path_, open_mode::write);
      change = file->begin(no_wait);
      change->update("dense").write(wanted);
      change->update("chunked").write(wanted);
      change->create("new" + std::to_string(made), chunked_).write(wanted);
      change->create("other" + std::to_string(made++), dense_).write(wanted);
    }
    try {
      const std::uint64_t now = change->commit();
      EXPECT_EQ(now, committed + 1);
      committed = now;
    } catch (...) {
      const enough_memory enough;
      change.reset();
      const container other = container::open(path_);
      const std::uint64_t there = other.latest().generation();
      EXPECT_TRUE(there == committed || there == committed + 1) << there;
      EXPECT_TRUE(other.verify().findings.empty());
      committed = there;
      throw;
    }
  });
}

// The same for commits that do not wait. The thread that publishes allocates, too.
TEST_F(FailingArrayMemory, AsyncCommitsAreWholeOrNothing) {
  const tensor wanted = values();
  std::uint64_t committed = container::open(path_).latest().generation();
  int made = 0;
  expect_errors_only("commit_async", [&] {
    std::optional<container> file;
    std::optional<transaction> change;
    {
      const enough_memory now;
      file = container::open(path_, open_mode::write);
      change = file->begin();
      change->update("dense").write(wanted);
      change->update("chunked").write(wanted);
      change->create("new" + std::to_string(made), chunked_).write(wanted);
      change->create("other" + std::to_string(made++), dense_).write(wanted);
    }
    try {
      const pending_commit pending = change->commit_async();
      EXPECT_EQ(pending.generation(), committed + 1);
      pending.wait();
      committed = pending.generation();
    } catch (...) {
      const enough_memory enough;
      change.reset();
      const container other = container::open(path_);
      EXPECT_EQ(other.latest().generation(), committed);
      EXPECT_TRUE(other.verify().findings.empty());
      throw;
    }
  });
}

}  // namespace
}  // namespace shale
