// Represents the pages of a tree in memory. Only the sources of `tree` include this.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "format/pages/tree.hpp"

namespace shale::format {

// A changed page. It owns those of its children that are changed themselves. The references to them
// in the page are stale until `write`.
struct tree::node {
  explicit node(const page& copied) : data(copied) {
    if (!data.is_leaf()) children.resize(data.count());
  }
  page data;
  std::vector<std::unique_ptr<node>>
      children;              // one for each entry of a branch; null: that child is unchanged
  std::uint64_t offset = 0;  // its place in the new generation; 0: none yet
};

// One page of a path from the root to a leaf, with the bounds of the keys that it may hold. The
// bounds point into pages further up, which the steps before this one keep alive.
struct tree::step {
  const page* data = nullptr;
  std::shared_ptr<const page> held;  // an unchanged page
  const node* changed = nullptr;     // or a changed one
  std::string_view lower;
  std::optional<std::string_view> upper;
  std::size_t entry = 0;  // the entry that the path goes on through
};

}  // namespace shale::format
