// Reads a tree: look-ups, cursors and walks over all pages. tree_changes.cpp changes it.
//
// A walk keeps one `step` for each page from the root to its position. A step knows the bounds that
// the separators above impose on the keys of its page (tree.3). `open_child` checks each page that
// it loads against these bounds and against the level below its parent. So a damaged or hostile
// file cannot make a walk run in a circle or meet a key twice.
#include "format/pages/tree.hpp"

#include <fmt/format.h>

#include "format/pages/tree_node.hpp"

namespace shale::format {

tree::tree(tree_kind kind, page_source& source, page_ref root, page_sink* sink) noexcept
    : kind_(kind), source_(&source), sink_(sink), clean_root_(root) {}
tree::tree(tree&&) noexcept = default;
tree& tree::operator=(tree&&) noexcept = default;
tree::~tree() = default;

bool tree::empty() const noexcept { return !root_ && !clean_root_; }

// ---- from the root to a leaf ------------------------------------------------------------------

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
  // The keys of a page increase strictly (page.1), so it suffices to compare the first and the
  // last. The first key of a branch is empty, and stands for the lower bound.
  const std::size_t first = data.is_leaf() ? 0 : 1;
  if (first < data.count() &&
      (data.key(first) < child.lower || (!data.is_leaf() && data.key(first) == child.lower) ||
       (child.upper && data.key(data.count() - 1) >= *child.upper)))
    source_->fail(ref, "holds keys outside its parent's bounds");
  return child;
}

// The path to the leaf that contains `key`, or into which it would be inserted. Empty for an empty
// tree.
std::vector<tree::step> tree::descend(std::string_view key) const {
  std::vector<step> path;
  step here = open_root();
  if (here.data == nullptr) return path;
  path.reserve(here.data->level() + 1u);
  while (!here.data->is_leaf()) {
    here.entry = here.data->child_for(key);
    path.push_back(std::move(here));
    here = open_child(path.back(), path.back().entry);
  }
  here.entry = here.data->lower_bound(key);
  path.push_back(std::move(here));
  return path;
}

std::optional<std::vector<std::byte>> tree::find(std::string_view key) const {
  const std::vector<step> path = descend(key);
  if (path.empty()) return std::nullopt;
  const page& leaf = *path.back().data;
  const std::size_t i = path.back().entry;
  if (i == leaf.count() || leaf.key(i) != key) return std::nullopt;
  if (leaf.overflows(i)) return source_->load_overflow(leaf.overflow(i));
  const bytes_view value = leaf.value(i);
  return std::vector(value.begin(), value.end());
}

tree::cursor tree::seek(std::string_view key) const {
  cursor found(*this);
  found.path_ = descend(key);
  found.move_to_entry();
  return found;
}

tree::cursor tree::seek_floor(std::string_view key) const {
  cursor found(*this);
  found.path_ = descend(key);
  if (found.path_.empty()) return found;
  step& leaf = found.path_.back();
  if (leaf.entry < leaf.data->count() && leaf.data->key(leaf.entry) == key) return found;
  if (leaf.entry > 0) {
    --leaf.entry;
    return found;
  }
  // The entry before is the last one of the subtree on the left.
  while (!found.path_.empty() && found.path_.back().entry == 0) found.path_.pop_back();
  if (found.path_.empty()) return found;
  --found.path_.back().entry;
  while (!found.path_.back().data->is_leaf()) {
    step child = open_child(found.path_.back(), found.path_.back().entry);
    child.entry = child.data->count() - 1;
    found.path_.push_back(std::move(child));
  }
  return found;
}

// ---- positions --------------------------------------------------------------------------------

tree::cursor::cursor(const tree& in) noexcept : in_(&in) {}
tree::cursor::cursor(cursor&&) noexcept = default;
tree::cursor& tree::cursor::operator=(cursor&&) noexcept = default;
tree::cursor::~cursor() = default;

bool tree::cursor::valid() const noexcept { return !path_.empty(); }

std::string_view tree::cursor::key() const noexcept {
  return path_.back().data->key(path_.back().entry);
}

std::vector<std::byte> tree::cursor::value() const {
  if (const auto ref = overflow()) return in_->source_->load_overflow(*ref);
  const bytes_view value = path_.back().data->value(path_.back().entry);
  return {value.begin(), value.end()};
}

bytes_view tree::cursor::short_value() const {
  if (const auto ref = overflow())
    in_->source_->fail({path_.back().data->offset(), {}}, "holds a value that is too long");
  return path_.back().data->value(path_.back().entry);
}

std::optional<overflow_ref> tree::cursor::overflow() const noexcept {
  const page& leaf = *path_.back().data;
  const std::size_t i = path_.back().entry;
  return leaf.overflows(i) ? std::optional(leaf.overflow(i)) : std::nullopt;
}

void tree::cursor::next() {
  ++path_.back().entry;
  move_to_entry();
}

void tree::cursor::move_to_entry() {
  while (!path_.empty() && path_.back().entry == path_.back().data->count()) {
    path_.pop_back();
    if (!path_.empty()) ++path_.back().entry;
  }
  while (!path_.empty() && !path_.back().data->is_leaf())
    path_.push_back(in_->open_child(path_.back(), path_.back().entry));
}

// ---- everything -------------------------------------------------------------------------------

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
      function(ref.range);
    }
  }
  function({here.changed != nullptr ? here.changed->offset : here.data->offset(), page_bytes});
}

}  // namespace shale::format
