#include "interop/t7/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/printable.hpp"
#include "interop/t7/cursor.hpp"
#include "interop/t7/types.hpp"
#include "shale/index.hpp"

namespace shale::interop::t7 {

namespace {

// Classes of Lua have names like nn.SpatialConvolution. The limit keeps bytes that are not a name
// out of messages.
constexpr std::int32_t class_bytes_max = 128;

// The limit of tensors in memory: sums of two positions do not overflow when they count bytes.
constexpr index_t bytes_max = index_t{1} << 62;

constexpr std::string_view version_prefix = "V ";

class parser {
 public:
  explicit parser(const input_file& file) : from_(file) {}

  tree parse() {
    made_.encoding = from_.encoding();
    made_.root = take_node(false);
    while (!open_.empty()) {
      const std::size_t depth = open_.size() - 1;
      if (open_[depth].left == 0) {
        open_.pop_back();
        continue;
      }
      const bool is_key = open_[depth].is_table && open_[depth].left % 2 == 0;
      --open_[depth].left;
      const std::uint64_t begin = from_.position();
      const node taken = take_node(is_key);  // may open further objects
      if (is_key) require_key(taken, begin);
      put(open_[depth], is_key, taken);
    }
    if (!from_.at_end())
      from_.fail(errc::corrupt, "bytes after the object", from_.position(),
                 "Shale reads files of torch.save, which hold one object");
    return std::move(made_);
  }

 private:
  // An object whose values are being read.
  struct open_object {
    std::size_t object;
    bool is_table;
    std::uint64_t left;       // values that follow: keys and values alternate in a table
    std::size_t last = none;  // entry
  };

  void put(open_object& in, bool is_key, const node& taken) {
    if (in.is_table && !is_key) {
      made_.entries[in.last].value = taken;
      return;
    }
    const std::size_t added = made_.entries.size();
    made_.entries.push_back(is_key ? entry{taken, {}, none} : entry{{}, taken, none});
    (in.last == none ? made_.objects[in.object].first : made_.entries[in.last].next) = added;
    in.last = added;
  }

  void require_key(const node& key, std::uint64_t begin) const {
    if (key.kind == t7_kind::nil || (key.kind == t7_kind::number && std::isnan(key.number)))
      from_.fail(errc::corrupt, "nil and NaN are no keys of a table", begin);
  }

  node take_node(bool is_key) {
    const std::uint64_t begin = from_.position();
    const auto type = static_cast<type_id>(from_.take_int());
    switch (type) {
      case type_id::nil:
        return {};
      case type_id::number:
        return {.kind = t7_kind::number, .number = from_.take_double()};
      case type_id::boolean:
        return take_boolean();
      case type_id::string:
        return take_string(is_key);
      case type_id::plain_function:
        return take_function(add_object(t7_kind::function, begin));
      case type_id::table:
      case type_id::torch:
      case type_id::old_function:
      case type_id::function:
        return take_reference(type, begin);
    }
    from_.fail(errc::corrupt, "no type of a value of Torch", begin,
               fmt::format("got {}, wanted 0 to 8", static_cast<std::int32_t>(type)));
  }

  node take_boolean() {
    const std::uint64_t begin = from_.position();
    const std::int32_t value = from_.take_int();
    if (value != 0 && value != 1)
      from_.fail(errc::corrupt, "a boolean is neither 0 nor 1", begin,
                 fmt::format("got {}", value));
    return {.kind = t7_kind::boolean, .number = static_cast<double>(value)};
  }

  // The length of a string, a table or the like.
  std::uint32_t take_length() {
    const std::uint64_t begin = from_.position();
    const std::int32_t length = from_.take_int();
    if (length < 0)
      from_.fail(errc::corrupt, "a negative length", begin, fmt::format("got {}", length));
    return static_cast<std::uint32_t>(length);
  }

  std::size_t hold(std::uint32_t bytes) {
    const std::size_t place = made_.texts.size();
    made_.texts += from_.take_bytes(bytes);
    return place;
  }

  node take_string(bool is_key) {
    node made{.kind = t7_kind::string, .is_held = is_key, .text_bytes = take_length()};
    if (is_key) {
      made.place = hold(made.text_bytes);
    } else {
      made.place = from_.position();
      from_.skip_bytes(made.text_bytes);
    }
    return made;
  }

  std::size_t add_object(t7_kind kind, std::uint64_t begin) {
    made_.objects.push_back({.kind = kind, .begin = begin});
    return made_.objects.size() - 1;
  }

  node node_of(std::size_t place) const {
    return {.kind = made_.objects[place].kind, .place = place};
  }

  static bool fits(type_id type, t7_kind kind) noexcept {
    if (type == type_id::table) return kind == t7_kind::table;
    if (type != type_id::torch) return kind == t7_kind::function;
    return kind == t7_kind::tensor || kind == t7_kind::storage || kind == t7_kind::object;
  }

  // Reads an object. The file gives it an index: the whole object stands at its first place, and
  // later places have the index alone.
  node take_reference(type_id type, std::uint64_t begin) {
    const std::int32_t index = from_.take_int();
    const auto [found, is_new] = numbered_.try_emplace(index, made_.objects.size());
    if (!is_new) {
      const node known = node_of(found->second);
      if (!fits(type, known.kind))
        from_.fail(errc::corrupt, "a reference to an object of another kind", begin,
                   fmt::format("object {}, which begins at byte {}", index,
                               made_.objects[known.place].begin));
      return known;
    }
    const std::size_t place = add_object(t7_kind::table, begin);
    if (type == type_id::torch) return take_torch(place);
    if (type == type_id::table) return take_table(place);
    made_.objects[place].kind = t7_kind::function;
    return take_function(place);
  }

  node take_table(std::size_t place) {
    open_.push_back({place, true, std::uint64_t{2} * take_length()});
    return node_of(place);
  }

  // The byte code is skipped; the variables that it uses follow as a value.
  node take_function(std::size_t place) {
    from_.skip_bytes(take_length());
    open_.push_back({place, false, 1});
    return node_of(place);
  }

  // Reads the class of an object. A version precedes it, except in old files that have no versions.
  std::string_view take_class(object& of) {
    const std::uint64_t begin = from_.position();
    for (int part = 0; part < 2; ++part) {
      of.class_bytes = take_length();
      if (of.class_bytes > class_bytes_max)
        from_.fail(errc::corrupt, "no name of a class: it is too long", begin,
                   fmt::format("got {} bytes, wanted {} at most", of.class_bytes, class_bytes_max));
      of.class_place = hold(of.class_bytes);
      const std::string_view text = class_of(of);
      if (!text.starts_with(version_prefix)) return text;
      if (part == 0) made_.texts.resize(of.class_place);  // a version
    }
    return class_of(of);
  }

  std::string_view class_of(const object& of) const {
    return std::string_view(made_.texts).substr(of.class_place, of.class_bytes);
  }

  node take_torch(std::size_t place) {
    object& made = made_.objects[place];
    const std::string_view name = take_class(made);
    if (const auto type = dtype_of_class(name, tensor_suffix)) {
      made.dtype = *type;
      return take_tensor(place);
    }
    if (const auto type = dtype_of_class(name, storage_suffix)) {
      made.dtype = *type;
      return take_storage(place);
    }
    if (name.starts_with("torch.Cuda") || name.starts_with("torch.Cl"))
      from_.fail(errc::unsupported,
                 fmt::format("{} is kept on a graphics card", detail::in_quotes(name)), made.begin,
                 "in Torch7, convert it by :float(), :double() or the like and save it again");
    return take_object(place);
  }

  // Objects of classes of Lua are stored as a table, unless the class has its own functions to
  // store them. The bytes that such functions write have no known end.
  node take_object(std::size_t place) {
    made_.objects[place].kind = t7_kind::object;
    const std::uint64_t begin = from_.position();
    if (static_cast<type_id>(from_.take_int()) != type_id::table)
      from_.fail(errc::unsupported,
                 fmt::format("objects of the class {} are not stored as tables",
                             detail::in_quotes(class_of(made_.objects[place]))),
                 made_.objects[place].begin, "in Torch7, save their tensors in a table");
    const node held = take_reference(type_id::table, begin);
    made_.objects[place].first = made_.entries.size();
    made_.entries.push_back({{}, held, none});
    return node_of(place);
  }

  node take_storage(std::size_t place) {
    object& made = made_.objects[place];
    made.kind = t7_kind::storage;
    const std::uint64_t begin = from_.position();
    made.count = from_.take_long();
    if (made.count < 0)
      from_.fail(errc::corrupt, "a storage has a negative size", begin,
                 fmt::format("got {}", made.count));
    made.data = from_.position();
    const auto count = static_cast<std::uint64_t>(made.count);
    if (item_bytes(made.dtype) == 1) from_.skip_bytes(count);
    else from_.skip_numbers(count, item_bytes(made.dtype));
    return node_of(place);
  }

  node take_tensor(std::size_t place) {
    object made = made_.objects[place];  // a copy: the list grows below
    made.kind = t7_kind::tensor;
    const std::uint64_t begin = from_.position();
    made.rank = from_.take_int();
    if (made.rank < 0)
      from_.fail(errc::corrupt, "a tensor has a negative number of axes", begin,
                 fmt::format("got {}", made.rank));
    if (made.rank > rank_max)
      from_.fail(errc::unsupported, "a tensor has too many axes", begin,
                 fmt::format("got {}, wanted {} at most", made.rank, rank_max));
    made.first = made_.extents.size();
    for (std::int64_t i = 0; i < 2 * made.rank; ++i) made_.extents.push_back(from_.take_long());
    made.offset = from_.take_long();
    if (made.offset < 1)
      from_.fail(errc::corrupt, "a tensor begins before its storage", begin,
                 fmt::format("got the offset {}, which counts from 1", made.offset));
    --made.offset;
    made_.objects[place].kind = t7_kind::tensor;  // so its own storage cannot refer to it
    made.storage = take_storage_of_tensor(made);
    require_inside(made, begin);
    made_.objects[place] = made;
    return node_of(place);
  }

  // Does not go through take_reference: a tensor in the place of the storage would nest calls.
  std::size_t take_storage_of_tensor(const object& of) {
    const std::uint64_t begin = from_.position();
    const auto type = static_cast<type_id>(from_.take_int());
    if (type == type_id::nil) return none;
    if (type != type_id::torch) from_.fail(errc::corrupt, "a tensor without its storage", begin);
    const auto [found, is_new] = numbered_.try_emplace(from_.take_int(), made_.objects.size());
    const std::size_t place = found->second;
    if (is_new) {
      object& made = made_.objects[add_object(t7_kind::storage, begin)];
      const auto held = dtype_of_class(take_class(made), storage_suffix);
      if (!held) from_.fail(errc::corrupt, "a tensor without its storage", begin);
      made.dtype = *held;
      take_storage(place);
    }
    const object& storage = made_.objects[place];
    if (storage.kind != t7_kind::storage || storage.dtype != of.dtype)
      from_.fail(errc::corrupt, "a tensor has the storage of another type", begin,
                 fmt::format("wanted elements of {}", name(of.dtype)));
    return place;
  }

  // The positions from the first to the last element; nothing if they cannot be counted.
  std::optional<std::pair<index_t, index_t>> reach(const object& of) const {
    std::pair<index_t, index_t> ends{of.offset, of.offset};
    index_t size = static_cast<index_t>(item_bytes(of.dtype));
    for (std::int64_t axis = 0; axis < of.rank; ++axis) {
      const index_t extent = extent_of(of, axis);
      const auto product = checked_mul(size, std::max<index_t>(extent, 1));
      if (extent < 0 || !product || *product > bytes_max) return std::nullopt;
      size = *product;
      const auto span =
          checked_mul(std::max<index_t>(extent - 1, 0), extent_of(of, of.rank + axis));
      if (!span) return std::nullopt;
      index_t& end = *span < 0 ? ends.first : ends.second;
      const auto moved = checked_add(end, *span);
      if (!moved) return std::nullopt;
      end = *moved;
    }
    return ends;
  }

  index_t extent_of(const object& of, std::int64_t position) const {
    return made_.extents[of.first + static_cast<std::size_t>(position)];
  }

  bool is_empty(const object& of) const {
    if (of.rank == 0) return true;
    for (std::int64_t axis = 0; axis < of.rank; ++axis)
      if (extent_of(of, axis) == 0) return true;
    return false;
  }

  void require_inside(const object& of, std::uint64_t begin) const {
    const auto ends = reach(of);
    const index_t held = of.storage == none ? 0 : made_.objects[of.storage].count;
    if (!ends)
      from_.fail(errc::corrupt, "a tensor has sizes or strides that cannot be", begin,
                 "an extent is negative, or its elements cannot be counted");
    if (is_empty(of) || (ends->first >= 0 && ends->second < held)) return;
    from_.fail(errc::corrupt, "a tensor reaches outside its storage", begin,
               fmt::format("its elements have the positions {} to {}, the storage has {} elements",
                           ends->first, ends->second, held));
  }

  cursor from_;
  tree made_;
  std::vector<open_object> open_;  // the innermost is the last
  std::map<std::int32_t, std::size_t> numbered_;
};

}  // namespace

tree read_tree(const input_file& file) { return parser(file).parse(); }

}  // namespace shale::interop::t7
