#include "shale/t7.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/allocating.hpp"
#include "core/held.hpp"
#include "core/printable.hpp"
#include "interop/elements.hpp"
#include "interop/input_file.hpp"
#include "interop/t7/cursor.hpp"
#include "interop/t7/parser.hpp"
#include "interop/t7/paths.hpp"
#include "interop/t7/shared_storages.hpp"
#include "interop/t7/text_elements.hpp"
#include "shale/executor.hpp"

namespace shale {

struct t7_file::implementation {
  explicit implementation(const std::string& path)
      : file(path),
        tree(interop::t7::read_tree(file)),
        paths(interop::t7::find_paths(tree, file.size_bytes())) {}

  t7_value value_of(const interop::t7::node& node) const;
  std::string text_of(const interop::t7::node& node) const;
  const interop::t7::object& object_of(const t7_value& value) const;
  std::size_t table_of(const t7_value& value) const;
  std::size_t find(std::string_view name) const;
  std::size_t array_of(const t7_value& value) const;
  const interop::t7::object* storage_of(const interop::t7::object& array) const;
  layout layout_of(const interop::t7::object& array) const;
  t7_array describe(std::size_t place, std::string_view name) const;
  storage storage_at(std::size_t place) const;
  tensor read(std::size_t place) const;

  bool is_binary(const interop::t7::object& storage) const {
    return tree.encoding == t7_encoding::binary || item_bytes(storage.dtype) == 1;
  }
  interop::element_place place_of(const interop::t7::object& storage) const {
    return {storage.data, storage.dtype, std::endian::little, layout(dims{storage.count})};
  }
  std::string frame(std::string_view name) const {
    return fmt::format("read {} of {}", detail::in_quotes(name), file.path());
  }
  std::string frame(const t7_value& value) const {
    return fmt::format("read object {} of {}", value.object, file.path());
  }

  interop::input_file file;
  interop::t7::tree tree;
  interop::t7::array_paths paths;
  mutable interop::t7::shared_storages storages;
};

std::string t7_file::implementation::text_of(const interop::t7::node& node) const {
  if (node.is_held) return tree.texts.substr(static_cast<std::size_t>(node.place), node.text_bytes);
  std::string text(node.text_bytes, '\0');
  file.read(std::as_writable_bytes(std::span(text)), node.place);
  return text;
}

t7_value t7_file::implementation::value_of(const interop::t7::node& node) const {
  t7_value value{.kind = node.kind, .number = node.number};
  switch (node.kind) {
    case t7_kind::string:
      value.text = text_of(node);
      break;
    case t7_kind::tensor:
    case t7_kind::storage:
    case t7_kind::object: {
      const interop::t7::object& object = tree.objects[node.place];
      value.text = tree.texts.substr(object.class_place, object.class_bytes);
      value.object = static_cast<std::size_t>(node.place);
      break;
    }
    case t7_kind::table:
    case t7_kind::function:
      value.object = static_cast<std::size_t>(node.place);
      break;
    default:
      break;
  }
  return value;
}

const interop::t7::object& t7_file::implementation::object_of(const t7_value& value) const {
  if (value.object < tree.objects.size() && tree.objects[value.object].kind == value.kind)
    return tree.objects[value.object];
  throw error(errc::invalid_argument, "no value of this file",
              {fmt::format("got object {}, the file has {}", value.object, tree.objects.size())});
}

// The table with the entries of a value: the value itself, or the table that an object holds.
std::size_t t7_file::implementation::table_of(const t7_value& value) const {
  if (value.kind != t7_kind::table && value.kind != t7_kind::object)
    throw error(errc::invalid_argument, "only tables and objects have pairs");
  const interop::t7::object& found = object_of(value);
  if (value.kind == t7_kind::table) return value.object;
  return static_cast<std::size_t>(tree.entries[found.first].value.place);
}

std::size_t t7_file::implementation::find(std::string_view name) const {
  const auto found = paths.objects.find(name);
  if (found != paths.objects.end() && found->second != interop::t7::none) return found->second;
  if (found != paths.objects.end())
    throw error(errc::unsupported, "several tensors have this path",
                {"path " + detail::in_quotes(name),
                 "keys that look alike: t7_file::pairs tells them apart"});
  constexpr std::size_t shown_at_most = 12;
  std::string held;
  for (std::size_t i = 0; i < std::min(paths.names.size(), shown_at_most); ++i)
    held += (i == 0 ? "" : ", ") + detail::in_quotes(paths.names[i]);
  if (paths.names.size() > shown_at_most)
    held += fmt::format(" and {} more", paths.names.size() - shown_at_most);
  throw error(errc::not_found, "no such tensor",
              {"wanted " + detail::in_quotes(name), "there is " + (held.empty() ? "none" : held)});
}

std::size_t t7_file::implementation::array_of(const t7_value& value) const {
  if (value.kind != t7_kind::tensor && value.kind != t7_kind::storage)
    throw error(errc::invalid_argument, "the value is neither a tensor nor a storage");
  object_of(value);
  return value.object;
}

const interop::t7::object* t7_file::implementation::storage_of(
    const interop::t7::object& array) const {
  if (array.kind == t7_kind::storage) return &array;
  return array.storage == interop::t7::none ? nullptr : &tree.objects[array.storage];
}

layout t7_file::implementation::layout_of(const interop::t7::object& array) const {
  if (array.kind == t7_kind::storage) return layout(dims{array.count});
  if (array.rank == 0) return layout(dims{0});
  const index_t* const extents = tree.extents.data() + array.first;
  const dims shape(extents, extents + array.rank);
  const layout row_major(shape);
  // The strides of a tensor without elements are never used, and may be any.
  if (row_major.empty()) return row_major;
  return layout(shape, dims(extents + array.rank, extents + 2 * array.rank), array.offset);
}

t7_array t7_file::implementation::describe(std::size_t place, std::string_view name) const {
  const interop::t7::object& array = tree.objects[place];
  t7_array made{.name = std::string(name),
                .kind = array.kind,
                .dtype = array.dtype,
                .layout = layout_of(array)};
  if (const interop::t7::object* const storage = storage_of(array)) {
    made.storage_bytes = place_of(*storage).bytes();
    made.is_mappable = is_binary(*storage) && interop::mappable(place_of(*storage));
  }
  return made;
}

storage t7_file::implementation::storage_at(std::size_t place) const {
  return storages.get(place, executor::current().memory_bytes() / 4, [&] {
    const interop::t7::object& stored = tree.objects[place];
    return is_binary(stored)
               ? interop::read_elements(file, place_of(stored), access::read_only).storage()
               : interop::t7::read_text_elements(file, stored).as_read_only();
  });
}

tensor t7_file::implementation::read(std::size_t place) const {
  const interop::t7::object& array = tree.objects[place];
  const layout elements = layout_of(array);
  if (elements.empty()) return tensor(storage::allocate(0), array.dtype, elements).as_read_only();
  return tensor(storage_at(array.kind == t7_kind::storage ? place : array.storage), array.dtype,
                elements);
}

t7_file::t7_file(std::shared_ptr<const implementation> opened) noexcept
    : implementation_(std::move(opened)) {}

t7_file t7_file::open(const std::string& path) {
  return detail::reporting([&] { return "open " + path; },
                           [&] { return t7_file(std::make_shared<implementation>(path)); });
}

const t7_file::implementation& t7_file::state() const {
  return detail::held(implementation_, "t7_file");
}

t7_encoding t7_file::encoding() const { return state().tree.encoding; }

t7_value t7_file::root() const {
  const implementation& self = state();
  return detail::reporting([&] { return "read " + self.file.path(); },
                           [&] { return self.value_of(self.tree.root); });
}

std::vector<t7_pair> t7_file::pairs(const t7_value& table) const {
  const implementation& self = state();
  return detail::reporting([&] { return self.frame(table); },
                           [&] {
                             std::vector<t7_pair> all;
                             std::size_t at = self.tree.objects[self.table_of(table)].first;
                             while (at != interop::t7::none) {
                               const interop::t7::entry& pair = self.tree.entries[at];
                               all.push_back({self.value_of(pair.key), self.value_of(pair.value)});
                               at = pair.next;
                             }
                             return all;
                           });
}

const std::vector<std::string>& t7_file::names() const { return state().paths.names; }

t7_other_values t7_file::other_values() const { return state().paths.others; }

bool t7_file::contains(std::string_view name) const {
  const auto& objects = state().paths.objects;
  return objects.find(name) != objects.end();
}

t7_array t7_file::inspect(std::string_view name) const {
  const implementation& self = state();
  return detail::reporting([&] { return self.frame(name); },
                           [&] { return self.describe(self.find(name), name); });
}

t7_array t7_file::inspect(const t7_value& array) const {
  const implementation& self = state();
  return detail::reporting([&] { return self.frame(array); },
                           [&] { return self.describe(self.array_of(array), {}); });
}

tensor t7_file::read(std::string_view name) const {
  const implementation& self = state();
  return detail::reporting([&] { return self.frame(name); },
                           [&] { return self.read(self.find(name)); });
}

tensor t7_file::read(const t7_value& array) const {
  const implementation& self = state();
  return detail::reporting([&] { return self.frame(array); },
                           [&] { return self.read(self.array_of(array)); });
}

}  // namespace shale
