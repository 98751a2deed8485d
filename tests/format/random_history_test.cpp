// Tests random histories of a container: commits, aborts, writers that die at any call, failing
// syncs, pages that the kernel drops, and readers that keep their views. Then the power is cut at
// any point of the history.
//
// A model that knows nothing about the format decides which results are right. In the model,
// commits form a tree. A reader must see a commit that has begun, and that is the last reported one
// or a descendant of it.

#include <gtest/gtest.h>

#include <cerrno>
#include <deque>
#include <random>

#include "format/after_crash.hpp"
#include "shale/error.hpp"
#include "support/long_run.hpp"

namespace shale::format {
namespace {

using test::fault;
using test::look;
using test::observe;
using test::plain_state;
using test::recording_file_system;
using test::run_long;
using test::sighting;

constexpr std::chrono::milliseconds at_once{0};
const std::string path = "/box/random.shale";

class told_commits {
 public:
  static constexpr std::size_t never = SIZE_MAX;

  /// Records that a commit begins after that many changes of the file. `parent` is -1 for the
  /// first.
  int begin(int parent, std::uint64_t generation, const plain_state& state, std::size_t changes) {
    all_.push_back({parent, generation, state, changes, never});
    return static_cast<int>(all_.size()) - 1;
  }
  void report(int commit, std::size_t changes) { at(commit).reported = changes; }

  const plain_state& state(int commit) const {
    return all_[static_cast<std::size_t>(commit)].state;
  }
  std::uint64_t generation(int commit) const {
    return all_[static_cast<std::size_t>(commit)].generation;
  }

  /// The commit with this content after that many changes; -1 if no reader may see it then.
  int identify(std::uint64_t generation, const plain_state& state, std::size_t changes) const {
    int reported = -1;
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (all_[i].reported <= changes) reported = static_cast<int>(i);
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (all_[i].generation == generation && all_[i].began <= changes &&
          descends(static_cast<int>(i), reported) && all_[i].state == state)
        return static_cast<int>(i);
    return -1;
  }

  /// Whether the file need not exist after that many changes.
  bool may_be_absent(std::size_t changes) const { return all_.front().reported > changes; }

 private:
  struct told {
    int parent;
    std::uint64_t generation;
    plain_state state;
    std::size_t began;
    std::size_t reported;
  };

  told& at(int commit) { return all_[static_cast<std::size_t>(commit)]; }

  bool descends(int commit, int ancestor) const {
    if (ancestor < 0) return true;
    for (; commit >= 0; commit = all_[static_cast<std::size_t>(commit)].parent)
      if (commit == ancestor) return true;
    return false;
  }

  std::deque<told> all_;
};

class Life {
 public:
  explicit Life(std::uint64_t seed) : random_(seed) {
    const int first = commits_.begin(-1, 1, {}, files_.changes());
    writer_ = container_file::create(files_, path, {.id = uuid{}});
    commits_.report(first, files_.changes());
  }

  void live(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      switch (pick(12)) {
        case 0:
          abort();
          break;
        case 1:
        case 2:
          die();
          break;
        case 3:
        case 4:
          fail_a_sync();
          break;
        case 5:
          readers_.push_back(come());
          break;
        case 6:
          if (!readers_.empty())
            readers_.erase(readers_.begin() + static_cast<std::ptrdiff_t>(pick(readers_.size())));
          break;
        default:
          reopen();
          commit();
          break;
      }
      look_around();
    }
  }

  /// Cuts the power, or kills all processes, after some of the changes.
  void crash(int samples) {
    const std::size_t total = files_.changes();
    recording_file_system::replay device(files_);
    do {
      if (pick(total) >= static_cast<std::size_t>(samples)) continue;
      expect_possible(device.count(), device.after_kill());
      expect_possible(device.count(), device.after_power_cut(nullptr));
      for (int i = 0; i < 2; ++i) expect_possible(device.count(), device.after_power_cut(&random_));
    } while (device.next() && !testing::Test::HasFailure());
  }

 private:
  struct reader {
    container_file opened;
    generation_view view;
    int commit;
  };

  std::size_t pick(std::size_t below) { return random_() % below; }

  // Opens a reader, which must see a commit that is allowed.
  reader come() {
    container_file opened = container_file::open(files_, path, open_access::read);
    generation_view view = opened.latest();
    const int commit = commits_.identify(view.generation(), observe(view), files_.changes());
    EXPECT_GE(commit, 0) << "generation " << view.generation();
    return {std::move(opened), std::move(view), commit};
  }

  // All readers still see the same content. The newest commit is allowed and sound.
  void look_around() {
    for (const reader& open : readers_)
      if (open.commit >= 0) {
        EXPECT_EQ(observe(open.view), commits_.state(open.commit)) << open.view.generation();
      }
    EXPECT_EQ(test::unsound(come().view), "");
  }

  void change_something(transaction& change, plain_state& state) {
    test::storyteller story(change, state);
    for (std::size_t left = 1 + pick(5); left > 0; --left) {
      const auto seed = static_cast<unsigned>(random_() % 250);
      std::string name = "n" + std::to_string(pick(5));
      const auto found = state.find(name);
      const bool chunked = found != state.end() && found->second.dense.empty();
      if (found == state.end()) {
        if (pick(2) == 0) story.dense(name, 1 + pick(20'000), seed);
        else story.create_chunked(name);
      } else if (pick(6) == 0) {
        story.erase(name);
      } else if (pick(6) == 0) {
        const std::string other = "m" + std::to_string(pick(3));
        if (!state.contains(other)) story.rename(name, other);
      } else if (pick(6) == 0) {
        story.note(name, "note", std::string(pick(3) * 2500, static_cast<char>('a' + pick(20))));
      } else if (!chunked && pick(2) == 0) {
        story.dense_page(name, pick((found->second.dense.size() + 4095) / 4096), seed);
      } else if (!chunked) {
        story.dense(name, 1 + pick(20'000), seed);
      } else if (!found->second.chunks.empty() && pick(4) == 0) {
        story.erase_chunk(name, found->second.chunks.begin()->first);
      } else if (pick(3) == 0) {
        story.resize(name, static_cast<index_t>(pick(40 * test::chunk_elements)));
      } else {
        const std::size_t chunks =
            static_cast<std::size_t>(found->second.length) / test::chunk_elements;
        for (std::size_t i = 1 + pick(4); i > 0 && chunks > 0; --i)
          story.chunk(name, pick(chunks), seed + 1);
      }
    }
  }

  // Runs one transaction; returns whether its commit was reported.
  bool commit() {
    try {
      transaction change = writer_->begin(at_once);
      const int parent = come_back_to(change.generation() - 1);
      plain_state state = commits_.state(parent);
      change_something(change, state);
      const int made = commits_.begin(parent, change.generation(), state, files_.changes());
      change.commit();
      commits_.report(made, files_.changes());
      return true;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::io) << failure.what();
      EXPECT_NE(std::string(failure.what()).find(path), std::string::npos) << failure.what();
      return false;
    }
  }

  // The base of a writer while no call may be made: the commit that was seen last.
  int come_back_to(std::uint64_t generation) {
    EXPECT_EQ(commits_.generation(newest_), generation);
    return newest_;
  }

  void abort() {
    reopen();
    try {
      transaction change = writer_->begin(at_once);
      plain_state state = commits_.state(come_back_to(change.generation() - 1));
      change_something(change, state);
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::io) << failure.what();  // a reader holds a lost generation
    }
  }

  void die() {
    reopen();
    files_.fail_call(files_.calls() + pick(120), fault::death);
    commit();
    writer_.reset();
    files_.fail_call(UINT64_MAX, fault::none);
    reopen();
  }

  void fail_a_sync() {
    reopen();
    files_.fail_sync(static_cast<int>(pick(3)));
    if (!commit() && pick(3) > 0) {
      // Both slots can be lost at once only if they were never synced again.
      files_.evict_lost();
    }
    files_.fail_sync(1'000'000);
    reopen();
  }

  // Starts a new writer if the last one cannot go on, and finds the newest commit.
  void reopen() {
    if (!writer_ || writer_->poisoned())
      writer_ = container_file::open(files_, path, open_access::write);
    const reader now = come();
    newest_ = std::max(now.commit, 0);
    // Readers of lost commits leave, because writers refuse while they hold them.
    std::erase_if(readers_, [&](const reader& open) {
      return open.view.generation() > now.view.generation();
    });
  }

  void expect_possible(std::size_t changes, const recording_file_system::image& image) {
    if (image.empty()) {
      EXPECT_TRUE(commits_.may_be_absent(changes)) << changes;
      return;
    }
    const sighting seen = look(image, path);
    EXPECT_GE(commits_.identify(seen.generation, seen.state, changes), 0)
        << "generation " << seen.generation << " after " << changes << " changes";
  }

  std::mt19937_64 random_;
  recording_file_system files_;
  told_commits commits_;
  std::optional<container_file> writer_;
  std::vector<reader> readers_;
  int newest_ = 0;
};

TEST(RandomHistory, ShowsOnlyWhatMayBeSeenAndSurvivesAnyCrash) {
  const std::uint64_t seeds = run_long() ? 2000 : 12;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    try {
      Life life(seed);
      life.live(24);
      life.crash(run_long() ? 60 : 25);
    } catch (const error& failure) {
      ADD_FAILURE() << failure.what();
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace shale::format
