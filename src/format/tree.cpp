#include "format/tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "shale/error.hpp"

namespace shale::format {

// A changed page. Children that are changed themselves hang here; the reference to them in the page
// is stale until they are written.
struct tree::node {
  explicit node(const page& copied) : data(copied) {
    if (!data.is_leaf()) children.resize(data.count());
  }
  page data;
  std::vector<std::unique_ptr<node>> children;  // a branch's, one an entry; null: not changed
  std::uint64_t offset = 0;                     // its place in the new generation; 0: none yet
};

struct tree::split {
  std::string separator;
  std::unique_ptr<node> right;
};

// A page on the way down, with the bounds of the keys that may stand in it. Bounds point into pages
// further up, which the steps above keep alive.
struct tree::step {
  const page* data = nullptr;
  std::shared_ptr<const page> held;  // an unchanged page
  const node* changed = nullptr;     // or a changed one
  std::string_view lower;
  std::optional<std::string_view> upper;
  std::size_t at = 0;  // entry that the way goes on through
};

namespace {

// The shortest separator: above `left`, not above `right`.
std::string separator_between(std::string_view left, std::string_view right) {
  const auto [l, r] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  return std::string(right.substr(0, static_cast<std::size_t>(r - right.begin()) + 1));
}

// Where to cut a page in two so that the halves differ least.
std::size_t balanced_cut(const page& data) noexcept {
  std::size_t left = 0;
  std::size_t cut = 0;
  while (cut + 1 < data.count() && 2 * (left + data.entry_bytes(cut)) <= data.used_bytes())
    left += data.entry_bytes(cut++);
  const std::size_t with = left + data.entry_bytes(cut);
  // Either side of the middle: the cut after `cut` entries or one further.
  if (cut == 0 || (cut + 1 < data.count() && 2 * with < 2 * data.used_bytes() - 2 * left)) ++cut;
  return cut;
}

}  // namespace

tree::tree(tree_kind kind, page_source& source, page_ref root, page_sink* sink) noexcept
    : kind_(kind), source_(&source), sink_(sink), clean_root_(root) {}
tree::tree(tree&&) noexcept = default;
tree& tree::operator=(tree&&) noexcept = default;
tree::~tree() = default;

bool tree::empty() const noexcept { return !root_ && !clean_root_; }

// ---- reading ----------------------------------------------------------------------------------

tree::step tree::open_root() const {
  step root;
  if (root_) {
    root.changed = root_.get();
    root.data = &root_->data;
  } else if (clean_root_) {
    root.held = source_->load_page(clean_root_);
    root.data = root.held.get();
    if (root.data->tree() != kind_)
      source_->fail(clean_root_,
                    fmt::format("belongs to tree {}, not {}", static_cast<int>(root.data->tree()),
                                static_cast<int>(kind_)));
  }
  return root;
}

tree::step tree::open_child(const step& parent, std::size_t i) const {
  step child;
  child.lower = i == 0 ? parent.lower : parent.data->key(i);
  child.upper =
      i + 1 < parent.data->count() ? std::optional(parent.data->key(i + 1)) : parent.upper;
  if (parent.changed != nullptr && parent.changed->children[i]) {
    child.changed = parent.changed->children[i].get();
    child.data = &child.changed->data;
    return child;
  }
  const page_ref ref = parent.data->child(i);
  child.held = source_->load_page(ref);
  child.data = child.held.get();
  const page& data = *child.data;
  if (data.tree() != kind_ || data.level() + 1 != parent.data->level())
    source_->fail(ref, fmt::format("has level {} of tree {} below level {} of tree {}",
                                   data.level(), static_cast<int>(data.tree()),
                                   parent.data->level(), static_cast<int>(kind_)));
  // Strictly increasing inside (page.1), so the ends suffice; a branch's first key is its lower
  // bound by definition.
  const std::size_t first = data.is_leaf() ? 0 : 1;
  if (first < data.count() &&
      (data.key(first) < child.lower || (!data.is_leaf() && data.key(first) == child.lower) ||
       (child.upper && data.key(data.count() - 1) >= *child.upper)))
    source_->fail(ref, "holds keys outside its parent's bounds");
  return child;
}

// The path to the leaf where `key` would stand; empty for an empty tree.
std::vector<tree::step> tree::descend(std::string_view key) const {
  std::vector<step> path;
  step here = open_root();
  if (here.data == nullptr) return path;
  path.reserve(here.data->level() + 1u);
  while (!here.data->is_leaf()) {
    here.at = here.data->child_for(key);
    path.push_back(std::move(here));
    here = open_child(path.back(), path.back().at);
  }
  here.at = here.data->lower_bound(key);
  path.push_back(std::move(here));
  return path;
}

std::optional<std::vector<std::byte>> tree::find(std::string_view key) const {
  const std::vector<step> path = descend(key);
  if (path.empty()) return std::nullopt;
  const page& leaf = *path.back().data;
  const std::size_t i = path.back().at;
  if (i == leaf.count() || leaf.key(i) != key) return std::nullopt;
  if (leaf.overflows(i)) return source_->load_overflow(leaf.overflow(i));
  const bytes_view value = leaf.value(i);
  return std::vector(value.begin(), value.end());
}

tree::cursor tree::seek(std::string_view key) const {
  cursor found(*this);
  found.path_ = descend(key);
  found.settle();
  return found;
}

tree::cursor tree::seek_floor(std::string_view key) const {
  cursor found(*this);
  found.path_ = descend(key);
  if (found.path_.empty()) return found;
  step& leaf = found.path_.back();
  if (leaf.at < leaf.data->count() && leaf.data->key(leaf.at) == key) return found;
  if (leaf.at > 0) {
    --leaf.at;
    return found;
  }
  // The entry before is the last one of the subtree to the left.
  while (!found.path_.empty() && found.path_.back().at == 0) found.path_.pop_back();
  if (found.path_.empty()) return found;
  --found.path_.back().at;
  while (!found.path_.back().data->is_leaf()) {
    step child = open_child(found.path_.back(), found.path_.back().at);
    child.at = child.data->count() - 1;
    found.path_.push_back(std::move(child));
  }
  return found;
}

tree::cursor::cursor(const tree& in) noexcept : in_(&in) {}
tree::cursor::cursor(cursor&&) noexcept = default;
tree::cursor& tree::cursor::operator=(cursor&&) noexcept = default;
tree::cursor::~cursor() = default;

bool tree::cursor::valid() const noexcept { return !path_.empty(); }

std::string_view tree::cursor::key() const noexcept {
  return path_.back().data->key(path_.back().at);
}

std::vector<std::byte> tree::cursor::value() const {
  if (const auto ref = overflow()) return in_->source_->load_overflow(*ref);
  const bytes_view value = path_.back().data->value(path_.back().at);
  return {value.begin(), value.end()};
}

bytes_view tree::cursor::short_value() const {
  if (const auto ref = overflow())
    in_->source_->fail({path_.back().data->offset(), {}}, "holds a value that is too long");
  return path_.back().data->value(path_.back().at);
}

std::optional<overflow_ref> tree::cursor::overflow() const noexcept {
  const page& leaf = *path_.back().data;
  const std::size_t i = path_.back().at;
  return leaf.overflows(i) ? std::optional(leaf.overflow(i)) : std::nullopt;
}

void tree::cursor::next() {
  ++path_.back().at;
  settle();
}

void tree::cursor::settle() {
  while (!path_.empty() && path_.back().at == path_.back().data->count()) {
    path_.pop_back();
    if (!path_.empty()) ++path_.back().at;
  }
  while (!path_.empty() && !path_.back().data->is_leaf())
    path_.push_back(in_->open_child(path_.back(), path_.back().at));
}

// ---- changing ---------------------------------------------------------------------------------

// tree.1: from now on the generation being made has its own copy.
std::unique_ptr<tree::node> tree::copy_for_change(const page_ref& ref, const page& clean) {
  auto copied = std::make_unique<node>(clean);
  sink_->release({ref.offset, page_bytes});
  return copied;
}

// The changed form of child i, made if need be; `above` describes the parent.
tree::node& tree::change_child(node& parent, std::size_t i, const step& above) {
  if (!parent.children[i]) {
    const step clean = open_child(above, i);
    parent.children[i] = copy_for_change(parent.data.child(i), *clean.held);
  }
  return *parent.children[i];
}

tree::step tree::step_into(const node& at, const step& above, std::size_t i) const {
  step here = open_child(above, i);
  assert(here.changed == at.children[i].get());
  (void)at;
  return here;
}

void tree::release(const node& dropped) {
  if (dropped.offset != 0) sink_->release({dropped.offset, page_bytes});
}

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
    page above(kind_, page_kind::branch, static_cast<std::uint8_t>(root_->data.level() + 1));
    assert(above.level() <= level_max);  // 23 levels of two entries each: 2^24 pages at the least
    above.insert_child(0, {}, {});
    above.insert_child(1, made->separator, {});
    auto grown = std::make_unique<node>(above);
    grown->children[0] = std::move(root_);
    grown->children[1] = std::move(made->right);
    root_ = std::move(grown);
  }
  return is_new;
}

std::optional<tree::split> tree::insert_into(node& at, const step& here, std::string_view key,
                                             bytes_view value, bool& is_new) {
  if (at.data.is_leaf()) return insert_value(at, key, value, is_new);
  const std::size_t i = at.data.child_for(key);
  node& child = change_child(at, i, here);
  std::optional<split> made = insert_into(child, step_into(at, here, i), key, value, is_new);
  return made ? insert_child(at, i + 1, std::move(*made)) : std::nullopt;
}

std::optional<tree::split> tree::insert_value(node& at, std::string_view key, bytes_view value,
                                              bool& is_new) {
  std::size_t i = at.data.lower_bound(key);
  is_new = i == at.data.count() || at.data.key(i) != key;
  const bool is_long =
      page::leaf_cell_header_bytes + key.size() + value.size() > page::cell_bytes_max;
  // Stored first: should it throw, the tree is as it was.
  overflow_ref outside;
  if (is_long) outside = sink_->store_overflow(value);
  if (!is_new) {
    if (at.data.overflows(i)) sink_->release(at.data.overflow(i).where);
    at.data.erase(i);
  }
  const std::size_t entry =
      page::leaf_entry_bytes(key.size(), is_long ? overflow_ref_bytes : value.size());
  const auto put = [&](page& into, std::size_t place) {
    if (is_long) into.insert_overflow(place, key, outside);
    else into.insert_value(place, key, value);
  };
  if (at.data.fits(entry)) {
    put(at.data, i);
    return std::nullopt;
  }
  // Appending leaves full pages behind; anything else halves them.
  const std::size_t count = at.data.count();
  const std::size_t cut = i == count ? count : balanced_cut(at.data);
  page right(kind_, page_kind::leaf, 0);
  right.append(at.data, cut, count);
  at.data.keep(cut);
  if (i > cut || i == count) put(right, i - cut);
  else if (i < cut) put(at.data, i);
  else if (at.data.used_bytes() <= right.used_bytes()) put(at.data, i);
  else put(right, 0);
  return split{separator_between(at.data.key(at.data.count() - 1), right.key(0)),
               std::make_unique<node>(right)};
}

// Puts the right half of a split child at place i of its parent.
std::optional<tree::split> tree::insert_child(node& at, std::size_t i, split made) {
  const auto put = [](node& into, std::size_t place, split&& child) {
    into.data.insert_child(place, child.separator, {});
    into.children.insert(into.children.begin() + static_cast<std::ptrdiff_t>(place),
                         std::move(child.right));
  };
  if (at.data.fits(page::branch_entry_bytes(made.separator.size()))) {
    put(at, i, std::move(made));
    return std::nullopt;
  }
  const std::size_t count = at.data.count();
  const auto take_children = [&](node& right, std::size_t from) {
    const auto first = at.children.begin() + static_cast<std::ptrdiff_t>(from);
    right.children.assign(std::make_move_iterator(first),
                          std::make_move_iterator(at.children.end()));
    at.children.resize(from);
  };
  page right_data(kind_, page_kind::branch, at.data.level());
  if (i == count) {  // appending
    right_data.insert_child(0, {}, {});
    auto right = std::make_unique<node>(right_data);
    right->children[0] = std::move(made.right);
    return split{std::move(made.separator), std::move(right)};
  }
  const std::size_t cut = balanced_cut(at.data);
  std::string separator(at.data.key(cut));
  // The first key of a branch is empty: its bound stands in the parent.
  right_data.insert_child(0, {}, at.data.child(cut));
  right_data.append(at.data, cut + 1, count);
  auto right = std::make_unique<node>(right_data);
  take_children(*right, cut);
  at.data.keep(cut);
  if (i <= cut) put(at, i, std::move(made));
  else put(*right, i - cut, std::move(made));
  return split{std::move(separator), std::move(right)};
}

bool tree::erase(std::string_view key) {
  if (empty() || !find(key)) return false;  // before anything is copied
  if (!root_) {
    root_ = copy_for_change(clean_root_, *open_root().held);
    clean_root_ = {};
  }
  const bool erased = erase_from(*root_, open_root(), key);
  // A root with one child is one level too many.
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

bool tree::erase_from(node& at, const step& here, std::string_view key) {
  if (at.data.is_leaf()) {
    const std::size_t i = at.data.lower_bound(key);
    if (i == at.data.count() || at.data.key(i) != key) return false;
    if (at.data.overflows(i)) sink_->release(at.data.overflow(i).where);
    at.data.erase(i);
    return true;
  }
  const std::size_t i = at.data.child_for(key);
  node& child = change_child(at, i, here);
  if (!erase_from(child, step_into(at, here, i), key)) return false;
  mend(at, here, i);
  return true;
}

// Child i has lost an entry: drops it if it is empty, merges it with a neighbour if both are small.
// A merged page is at most three quarters full, so that pages do not merge and split in turn.
void tree::mend(node& parent, const step& here, std::size_t i) {
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
  node& from = *parent.children[left + 1];
  if (into.data.is_leaf()) {
    into.data.append(from.data, 0, from.data.count());
  } else {
    into.data.insert_child(into.data.count(), separator, from.data.child(0));
    into.data.append(from.data, 1, from.data.count());
    into.children.insert(into.children.end(), std::make_move_iterator(from.children.begin()),
                         std::make_move_iterator(from.children.end()));
  }
  release(from);
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
  const auto walk = [&](const auto& self, const node& at) -> void {
    if (at.offset == 0) ++count;
    for (const auto& child : at.children)
      if (child) self(self, *child);
  };
  if (root_) walk(walk, *root_);
  return count;
}

void tree::place(std::span<const std::uint64_t> offsets) noexcept {
  std::size_t next = 0;
  // Children before parents: the order in which they are written.
  const auto walk = [&](const auto& self, node& at) -> void {
    for (const auto& child : at.children)
      if (child) self(self, *child);
    if (at.offset == 0) at.offset = offsets[next++];
  };
  if (root_) walk(walk, *root_);
  assert(next == offsets.size());
}

page_ref tree::write() { return root_ ? write(*root_) : clean_root_; }

page_ref tree::write(node& at) {
  for (std::size_t i = 0; i < at.children.size(); ++i)
    if (at.children[i]) at.data.set_child(i, write(*at.children[i]));
  assert(at.offset != 0);
  return sink_->write_page(at.data, at.offset);
}

void tree::clear() {
  if (empty()) return;
  // A changed page without a place takes up nothing.
  visit(
      open_root(),
      [this](const extent& range) {
        if (range.offset != 0) sink_->release(range);
      },
      false);
  root_.reset();
  clean_root_ = {};
}

void tree::for_each_extent(const std::function<void(const extent&)>& function) const {
  if (!empty()) visit(open_root(), function, true);
}

void tree::visit(const step& here, const std::function<void(const extent&)>& function,
                 bool read_values) const {
  for (std::size_t i = 0; i < here.data->count(); ++i) {
    if (!here.data->is_leaf()) {
      visit(open_child(here, i), function, read_values);
    } else if (here.data->overflows(i)) {
      const overflow_ref ref = here.data->overflow(i);
      if (read_values) (void)source_->load_overflow(ref);
      function(ref.where);
    }
  }
  function({here.changed != nullptr ? here.changed->offset : here.data->offset(), page_bytes});
}

}  // namespace shale::format
