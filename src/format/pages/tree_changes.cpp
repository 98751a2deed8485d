// Changes a tree, and writes its changed pages.
//
// The idea is copy-on-write. The pages of committed generations stay as they are (tree.1). The
// first change below a page copies it into a `node` in memory, together with all pages on the path
// from the root, and releases the old places. Later changes in the same transaction change the node
// directly. A node owns the nodes of its changed children; an unchanged child is still only a
// reference. So the nodes always form the upper part of the tree, and memory grows with the number
// of changed pages.
//
// Inserting into a full page splits it, and the parent gets the right half and a separator.
// Splitting the root adds a level. Erasing removes empty pages and merges small neighbours.
//
// Writing has two passes. First every node gets a place (`unplaced`, `place`). Then `write` goes
// bottom-up: it writes the children, stores their checksums in the parent's cells, and then writes
// the parent (tree.4). The last checksum is that of the root, which makes the tree a Merkle tree.
// The two passes are separate because the space map changes its own tree while it gives out places
// (space.5).
#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "format/pages/tree_node.hpp"
#include "shale/error.hpp"

namespace shale::format {

// The right half of a page that was too full, and the key that separates it from the left half.
struct tree::split {
  std::string separator;
  std::unique_ptr<node> right;
};

namespace {

// The shortest key that is above `left` and not above `right`.
std::string separator_between(std::string_view left, std::string_view right) {
  const auto [l, r] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  return std::string(right.substr(0, static_cast<std::size_t>(r - right.begin()) + 1));
}

// The number of entries in the left part if a page is cut so that its two parts differ least in
// bytes. Both parts get at least one entry.
//
// Entries go to the left part one by one while it keeps at most half of the bytes. The middle of
// the page then lies in the next entry, so the best cut is before that entry or after it. In front
// of it, the larger part is the right one, with used - left bytes. Behind it, the larger part is
// the left one, with left + next bytes. The cut whose larger part is smaller is taken.
std::size_t balanced_cut(const page& data) noexcept {
  const std::size_t used = data.used_bytes();
  std::size_t left = 0;
  std::size_t cut = 0;
  while (cut + 1 < data.count() && 2 * (left + data.entry_bytes(cut)) <= used)
    left += data.entry_bytes(cut++);
  const bool is_last = cut + 1 == data.count();
  const bool better_behind = left + data.entry_bytes(cut) < used - left;
  return cut == 0 || (!is_last && better_behind) ? cut + 1 : cut;
}

}  // namespace

// ---- copies -----------------------------------------------------------------------------------

// tree.1: copies a page of an older generation, and releases its place in the new generation.
std::unique_ptr<tree::node> tree::copy_for_change(const page_ref& ref, const page& clean) {
  auto copied = std::make_unique<node>(clean);
  sink_->release({ref.offset, page_bytes});
  return copied;
}

// The node of child i. If the child is still unchanged, this copies it. `above` is the step of the
// parent.
tree::node& tree::change_child(node& parent, std::size_t i, const step& above) {
  if (!parent.children[i]) {
    const step clean = open_child(above, i);
    parent.children[i] = copy_for_change(parent.data.child(i), *clean.held);
  }
  return *parent.children[i];
}

// The step to child i, which `change_child` has made changeable.
tree::step tree::step_into(const step& above, std::size_t i) const {
  step here = open_child(above, i);
  assert(here.changed != nullptr);
  return here;
}

void tree::release(const node& dropped) {
  if (dropped.offset != 0) sink_->release({dropped.offset, page_bytes});
}

// ---- inserting --------------------------------------------------------------------------------

bool tree::insert(std::string_view key, bytes_view value) {
  if (key.empty() || key.size() > key_bytes_max)
    throw error(errc::invalid_argument, "a key of a tree has 1 to 1024 bytes",
                {fmt::format("got {} bytes", key.size())});
  if (value.size() > value_bytes_max)
    throw error(
        errc::invalid_argument, "a stored value is too long",
        {fmt::format("got {} bytes, at most {} are possible", value.size(), value_bytes_max)});
  if (!root_) {
    if (clean_root_) {
      root_ = copy_for_change(clean_root_, *open_root().held);
      clean_root_ = {};
    } else {
      root_ = std::make_unique<node>(page(kind_, page_kind::leaf, 0));
    }
  }
  bool is_new = false;
  std::optional<split> made = insert_into(*root_, open_root(), key, value, is_new);
  if (made) {
    // A tree with that many levels has at least 2^24 pages.
    if (root_->data.level() >= level_max)
      throw error(errc::unsupported, "a tree has as many levels as it may have",
                  {fmt::format("{} levels above its leaves; write its arrays into a new container",
                               level_max)});
    page above(kind_, page_kind::branch, static_cast<std::uint8_t>(root_->data.level() + 1));
    above.insert_child(0, {}, {});
    above.insert_child(1, made->separator, {});
    auto grown = std::make_unique<node>(above);
    grown->children[0] = std::move(root_);
    grown->children[1] = std::move(made->right);
    root_ = std::move(grown);
  }
  return is_new;
}

std::optional<tree::split> tree::insert_into(node& subtree, const step& here, std::string_view key,
                                             bytes_view value, bool& is_new) {
  if (subtree.data.is_leaf()) return insert_value(subtree, key, value, is_new);
  const std::size_t i = subtree.data.child_for(key);
  node& child = change_child(subtree, i, here);
  std::optional<split> made = insert_into(child, step_into(here, i), key, value, is_new);
  return made ? insert_child(subtree, i + 1, std::move(*made)) : std::nullopt;
}

std::optional<tree::split> tree::insert_value(node& target, std::string_view key, bytes_view value,
                                              bool& is_new) {
  std::size_t i = target.data.lower_bound(key);
  is_new = i == target.data.count() || target.data.key(i) != key;
  const bool is_long =
      page::leaf_cell_header_bytes + key.size() + value.size() > page::cell_bytes_max;
  // A long value is stored first: if this throws, the tree is unchanged.
  overflow_ref outside;
  if (is_long) outside = sink_->store_overflow(value);
  if (!is_new) {
    if (target.data.overflows(i)) sink_->release(target.data.overflow(i).range);
    target.data.erase(i);
  }
  const std::size_t entry =
      page::leaf_entry_bytes(key.size(), is_long ? overflow_ref_bytes : value.size());
  const auto put = [&](page& into, std::size_t place) {
    if (is_long) into.insert_overflow(place, key, outside);
    else into.insert_value(place, key, value);
  };
  if (target.data.fits(entry)) {
    put(target.data, i);
    return std::nullopt;
  }
  // If the new key is the last one, only it goes to the new page: keys that arrive in order leave
  // full pages after it. Other insertions cut a full page in the middle.
  const std::size_t count = target.data.count();
  const std::size_t cut = i == count ? count : balanced_cut(target.data);
  page right(kind_, page_kind::leaf, 0);
  right.append(target.data, cut, count);
  target.data.keep(cut);
  if (i > cut || i == count) put(right, i - cut);
  else if (i < cut) put(target.data, i);
  else if (target.data.used_bytes() <= right.used_bytes()) put(target.data, i);
  else put(right, 0);
  return split{separator_between(target.data.key(target.data.count() - 1), right.key(0)),
               std::make_unique<node>(right)};
}

// Puts the right half of a split child at place i of its parent.
std::optional<tree::split> tree::insert_child(node& parent, std::size_t i, split made) {
  const auto put = [](node& into, std::size_t place, split&& child) {
    into.data.insert_child(place, child.separator, {});
    into.children.insert(into.children.begin() + static_cast<std::ptrdiff_t>(place),
                         std::move(child.right));
  };
  if (parent.data.fits(page::branch_entry_bytes(made.separator.size()))) {
    put(parent, i, std::move(made));
    return std::nullopt;
  }
  const std::size_t count = parent.data.count();
  const auto take_children = [&](node& right, std::size_t begin) {
    const auto first = parent.children.begin() + static_cast<std::ptrdiff_t>(begin);
    right.children.assign(std::make_move_iterator(first),
                          std::make_move_iterator(parent.children.end()));
    parent.children.resize(begin);
  };
  page right_data(kind_, page_kind::branch, parent.data.level());
  if (i == count) {  // appending
    right_data.insert_child(0, {}, {});
    auto right = std::make_unique<node>(right_data);
    right->children[0] = std::move(made.right);
    return split{std::move(made.separator), std::move(right)};
  }
  const std::size_t cut = balanced_cut(parent.data);
  std::string separator(parent.data.key(cut));
  // The first key of a branch is empty, because the parent holds its lower bound.
  right_data.insert_child(0, {}, parent.data.child(cut));
  right_data.append(parent.data, cut + 1, count);
  auto right = std::make_unique<node>(right_data);
  take_children(*right, cut);
  parent.data.keep(cut);
  if (i <= cut) put(parent, i, std::move(made));
  else put(*right, i - cut, std::move(made));
  return split{std::move(separator), std::move(right)};
}

// ---- erasing ----------------------------------------------------------------------------------

bool tree::erase(std::string_view key) {
  if (empty() || !find(key)) return false;  // before anything is copied
  if (!root_) {
    root_ = copy_for_change(clean_root_, *open_root().held);
    clean_root_ = {};
  }
  const bool erased = erase_from(*root_, open_root(), key);
  // A root with one child is not needed: the child becomes the root.
  while (root_ && !root_->data.is_leaf() && root_->data.count() == 1) {
    release(*root_);
    std::unique_ptr<node> child = std::move(root_->children[0]);
    if (!child) clean_root_ = root_->data.child(0);
    root_ = std::move(child);
  }
  if (root_ && root_->data.empty()) {
    release(*root_);
    root_.reset();
  }
  return erased;
}

bool tree::erase_from(node& subtree, const step& here, std::string_view key) {
  if (subtree.data.is_leaf()) {
    const std::size_t i = subtree.data.lower_bound(key);
    if (i == subtree.data.count() || subtree.data.key(i) != key) return false;
    if (subtree.data.overflows(i)) sink_->release(subtree.data.overflow(i).range);
    subtree.data.erase(i);
    return true;
  }
  const std::size_t i = subtree.data.child_for(key);
  node& child = change_child(subtree, i, here);
  if (!erase_from(child, step_into(here, i), key)) return false;
  rebalance(subtree, here, i);
  return true;
}

// Called after child i has lost an entry. Removes the child if it is empty. Merges it with a
// neighbour if it is less than a quarter full and the result is at most three quarters full: this
// margin keeps pages from merging and splitting in turn.
void tree::rebalance(node& parent, const step& here, std::size_t i) {
  node& child = *parent.children[i];
  if (child.data.empty()) {
    release(child);
    remove_child(parent, i);
    return;
  }
  if (child.data.used_bytes() >= page::body_bytes / 4 || parent.data.count() < 2) return;
  const std::size_t left = i > 0 ? i - 1 : i;
  const std::size_t other = i > 0 ? i - 1 : i + 1;
  const std::string separator(parent.data.key(left + 1));
  const std::size_t extra = child.data.is_leaf() ? 0 : separator.size();
  const std::size_t other_bytes = open_child(here, other).data->used_bytes();
  if (child.data.used_bytes() + other_bytes + extra > page::body_bytes / 4 * 3) return;
  (void)change_child(parent, other, here);
  node& into = *parent.children[left];
  node& right = *parent.children[left + 1];
  if (into.data.is_leaf()) {
    into.data.append(right.data, 0, right.data.count());
  } else {
    into.data.insert_child(into.data.count(), separator, right.data.child(0));
    into.data.append(right.data, 1, right.data.count());
    into.children.insert(into.children.end(), std::make_move_iterator(right.children.begin()),
                         std::make_move_iterator(right.children.end()));
  }
  release(right);
  remove_child(parent, left + 1);
}

void tree::remove_child(node& parent, std::size_t i) {
  parent.data.erase(i);
  parent.children.erase(parent.children.begin() + static_cast<std::ptrdiff_t>(i));
  if (i == 0 && !parent.data.empty()) {  // the new first child takes over the lower bound
    const page_ref first = parent.data.child(0);
    parent.data.erase(0);
    parent.data.insert_child(0, {}, first);
  }
}

// ---- writing ----------------------------------------------------------------------------------

std::size_t tree::unplaced() const noexcept {
  std::size_t count = 0;
  const auto walk = [&](const auto& self, const node& visited) -> void {
    if (visited.offset == 0) ++count;
    for (const auto& child : visited.children)
      if (child) self(self, *child);
  };
  if (root_) walk(walk, *root_);
  return count;
}

void tree::place(std::span<const std::uint64_t> offsets) noexcept {
  std::size_t next = 0;
  // Children get places before their parents, as they are written.
  const auto walk = [&](const auto& self, node& visited) -> void {
    for (const auto& child : visited.children)
      if (child) self(self, *child);
    if (visited.offset == 0) visited.offset = offsets[next++];
  };
  if (root_) walk(walk, *root_);
  assert(next == offsets.size());
}

page_ref tree::write() { return root_ ? write(*root_) : clean_root_; }

page_ref tree::write(node& changed) {
  for (std::size_t i = 0; i < changed.children.size(); ++i)
    if (changed.children[i]) changed.data.set_child(i, write(*changed.children[i]));
  assert(changed.offset != 0);
  return sink_->write_page(changed.data, changed.offset);
}

void tree::clear() {
  if (empty()) return;
  // A changed page without a place takes up no space.
  visit(
      open_root(),
      [this](const extent& range) {
        if (range.offset != 0) sink_->release(range);
      },
      false);
  root_.reset();
  clean_root_ = {};
}

}  // namespace shale::format
