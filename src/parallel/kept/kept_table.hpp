// Keeps values that are costly to make, such as plans of small calls, for the thread that made
// them.
//
// Invariants
//   keep.1  a kept value depends on its key alone
//   keep.2  a thread keeps at most 64 values of one kind; they belong to the thread, so threads
//           never wait for each other
//   keep.3  a value that is in use is not replaced: the user's code that runs with it may need
//           further values
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "parallel/kept/form_key.hpp"
#include "parallel/threads/of_thread.hpp"

namespace shale::parallel {

template <class Value>
class kept_table {
  struct entry {
    std::uint64_t hash = 0;
    std::vector<std::uint64_t> words;
    std::unique_ptr<Value> value;  // null: there is none for this key
    int users = 0;
  };

 public:
  /// A value in use, or null.
  class used {
   public:
    used() = default;
    explicit used(entry& kept) noexcept : entry_(&kept) { ++entry_->users; }
    ~used() {
      if (entry_) --entry_->users;
    }
    used(used&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
    used& operator=(used&& other) noexcept {
      std::swap(entry_, other.entry_);
      return *this;
    }

    explicit operator bool() const noexcept { return entry_ != nullptr; }
    Value& operator*() const noexcept { return *entry_->value; }
    Value* operator->() const noexcept { return entry_->value.get(); }

   private:
    entry* entry_ = nullptr;
  };

  /// The value of a key. If it is not kept, `make()` returns it as a unique_ptr, or null if there
  /// is none.
  /// Cost     a value that is kept: a comparison of keys; nothing is allocated
  /// Returns  null if there is no value, if the thread is ending, if there is no memory for the
  ///          table, or if all values that it could replace are in use
  /// Throws   as make; bad_alloc
  template <class Make>
  static used find(const form_key& key, Make make) {
    kept_table* const table = of_thread<kept_table>::find();
    if (table == nullptr || key.overflown()) return {};
    entry* const found = table->find_entry(key, make);
    return found != nullptr && found->value ? used(*found) : used();
  }

 private:
  using set = std::array<std::unique_ptr<entry>, 2>;  // the first was used last
  static constexpr std::size_t sets = 32;

  template <class Make>
  entry* find_entry(const form_key& key, Make make) {
    set& among = sets_[key.hash() % sets];
    const auto has_key = [&](const std::unique_ptr<entry>& kept) {
      const auto words = key.words();
      return kept && kept->hash == key.hash() &&
             std::equal(kept->words.begin(), kept->words.end(), words.begin(), words.end());
    };
    if (has_key(among[0])) return among[0].get();
    if (!has_key(among[1])) {
      if (among[1] && among[1]->users > 0) return nullptr;
      const auto words = key.words();
      among[1] = std::make_unique<entry>(entry{key.hash(), {words.begin(), words.end()}, make()});
    }
    std::swap(among[0], among[1]);
    return among[0].get();
  }

  std::array<set, sets> sets_;
};

}  // namespace shale::parallel
