#include "data/array_target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "data/input_files.hpp"
#include "data/logical.hpp"
#include "data/lost_properties.hpp"
#include "data/name_advice.hpp"
#include "notation/attribute.hpp"
#include "shale/dimension_names.hpp"
#include "shale/executor.hpp"
#include "shale/logical_arrays.hpp"
#include "shale/rechunk.hpp"
#include "terminal/interrupt.hpp"

namespace shale::tools {

namespace {

// An array of the same shape keeps its dtype, and a dtype that cannot hold the values is an error.
// An array of another shape keeps its dtype if it can hold the values, or else takes the dtype of
// the values.
dtype chosen_dtype(const contents& source, const std::optional<array>& before) {
  if (source.type) return *source.type;
  const dtype type = source.values.dtype();
  if (!before) return type;
  const dtype present = before->dtype();
  if (can_take(present, type)) return present;
  if (!(before->shape() == source.values.shape())) return type;
  throw error(errc::invalid_argument,
              fmt::format("'{}' holds {}, the new values are {}", name_in_address(before->name()),
                          name(present), name(type)),
              {"that dtype cannot represent all of them",
               fmt::format("--dtype (convert: --as) {} keeps that dtype, {} changes it",
                           name(present), name(type))});
}

// The engine stores new chunks of the shape `chunk` in row-major order. This returns the bytes of
// decoded old chunks that it must keep to decode each one only once; 0 if every old chunk lies in
// one new chunk. New chunks cut old ones along some axes. Before the engine stores the next new
// chunk along the first of these axes, it stores all new chunks along the later axes, and each of
// them needs the old chunks under it.
std::uint64_t bytes_to_keep(const array& from, const dims& chunk) {
  const dims& shape = from.shape();
  const dims& old = from.chunk_shape();
  index_t cut = 0;
  while (cut < shape.size() && (chunk[cut] >= shape[cut] || chunk[cut] % old[cut] == 0)) ++cut;
  if (cut == shape.size()) return 0;
  std::uint64_t bytes = item_bytes(from.dtype());
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    index_t extent = shape[axis];
    if (axis < cut) extent = std::min(extent, chunk[axis]);
    if (axis == cut) extent = std::min(extent, (ceil_div(chunk[axis], old[axis]) + 1) * old[axis]);
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return bytes;
}

// While a call runs, its cache of decoded chunks takes a quarter of the budget at most.
bool is_better_rechunked(const array& from, const writable_array& to) {
  if (from.kind() == array_kind::dense || to.kind() == array_kind::dense) return false;
  return bytes_to_keep(from, to.chunk_shape()) > executor::current().memory_bytes() / 4;
}

// The transaction keeps a mapping of each dense array until it ends. The pages of the mapping are
// removed from resident memory here, so that many arrays need no more memory than one.
void write_whole(const writable_array& made, const contents& source) {
  const array* const whole =
      source.original && source.original->whole ? &*source.original->whole : nullptr;
  if (whole && is_better_rechunked(*whole, made)) {
    rechunk(*whole, made);
    return;
  }
  if (whole) made.copy_from(*whole);
  else made.write(source.values);
  if (made.kind() != array_kind::dense) return;
  const storage written_bytes = made.map().storage();
  written_bytes.evict({0, written_bytes.size_bytes()});
}

// Chooses the logical dtype of a new array. `attributes` are those of the array that it replaces,
// followed by those of the array that it copies.
void settle_logical_dtype(attribute_list& attributes, const contents& source, written& done) {
  const auto is_logical = [](const auto& item) { return item.first == logical_dtype_key; };
  const auto found = std::find_if(attributes.rbegin(), attributes.rend(), is_logical);
  const std::string before = found == attributes.rend() ? "" : attribute_text(found->second);
  const dims& shape = source.values.shape();
  if (source.logical) {
    std::erase_if(attributes, is_logical);
    if (can_stand_for(*source.logical, done.type, shape))
      attributes.emplace_back(logical_dtype_key, attribute_value(name(*source.logical)).stored());
    else done.not_kept.push_back(lost_logical_dtype(*source.logical, done.type));
    return;
  }
  const auto known = parse_logical_dtype(before);
  const bool is_copied =
      source.original && std::any_of(source.original->attributes.begin(),
                                     source.original->attributes.end(), is_logical);
  // If a copy has no logical dtype here, it has lost it, as a slice without the axis of characters
  // does. A logical dtype of a later version may fit the same integers.
  const bool stays = known ? !is_copied && can_stand_for(*known, done.type, shape)
                           : !source.original || done.type == source.original->spec.dtype;
  if (stays || before.empty()) return;
  std::erase_if(attributes, is_logical);
  done.not_kept.push_back(fmt::format("logical dtype {}: the elements are {} {}", before,
                                      name(done.type), to_string(shape)));
}

bool names_dimensions(const std::pair<std::string, std::string>& attribute) {
  return attribute.first == dimension_names_key;
}

// Names the axes of a slice by those of the whole array; new axes have empty names. Names that do
// not fit the array stay as they are.
void slice_dimension_names(attribute_list& attributes, const array& whole, const dims& axes) {
  const auto found = std::find_if(attributes.begin(), attributes.end(), names_dimensions);
  if (found == attributes.end()) return;
  try {
    const std::vector<std::string> names = dimension_names(whole).value();
    std::vector<std::string> kept;
    for (const index_t axis : axes)
      kept.push_back(axis < 0 ? std::string() : names[static_cast<std::size_t>(axis)]);
    found->second = attribute_value(kept).stored();
  } catch (const error& failure) {
    if (failure.code() != errc::corrupt && failure.code() != errc::invalid_argument &&
        failure.code() != errc::unsupported)
      throw;
  }
}

// Drops the names of the axes of an array that gets another rank. A copy may bring its own.
void drop_dimension_names(attribute_list& attributes, const std::optional<origin>& original,
                          written& done) {
  const bool has_new_names = original && std::any_of(original->attributes.begin(),
                                                     original->attributes.end(), names_dimensions);
  if (std::erase_if(attributes, names_dimensions) > 0 && !has_new_names)
    done.not_kept.push_back("dimension names: the new array has another rank");
}

}  // namespace

std::optional<origin> origin_of(const operand& source) {
  if (!source.stored) return std::nullopt;
  origin from{spec_of(*source.stored), source.stored->attributes()};
  if (source.location.index) {
    const dims axes = axes_of_slice(source.stored->rank(), *source.location.index);
    from.spec = sliced(from.spec, axes);
    slice_dimension_names(from.attributes, *source.stored, axes);
  } else {
    from.whole = source.stored;
  }
  return from;
}

written put_array(transaction& change, const std::string& file, const std::string& name,
                  const contents& source, const target_options& options) {
  const std::optional<array> before = change.find(name);
  if (before && !options.force) throw_exists(label(file, name));
  std::optional<array_spec> model;
  attribute_list attributes;
  written done{.type = chosen_dtype(source, before)};
  if (before) {
    model = spec_of(*before);
    attributes = before->attributes();
    if (before->rank() != source.values.rank())
      drop_dimension_names(attributes, source.original, done);
  } else if (source.original) {
    model = source.original->spec;
  }
  chosen_form form = form_for(done.type, source.values.shape(), model, options.form);
  if (before && !source.type && done.type != before->dtype())
    done.not_kept.push_back(fmt::format("dtype {}: the new values are {}",
                                        shale::name(before->dtype()), shale::name(done.type)));
  if (options.form.chooses_codec()) {
    done.choice = choose_codec(source.values, form.spec);
    form.spec.codec = done.choice->codec;
  }
  std::move(form.not_kept.begin(), form.not_kept.end(), std::back_inserter(done.not_kept));
  if (source.original)
    attributes.insert(attributes.end(), source.original->attributes.begin(),
                      source.original->attributes.end());
  settle_logical_dtype(attributes, source, done);
  write_whole(before ? change.create_or_replace(name, form.spec) : change.create(name, form.spec),
              source);
  for (const auto& [key, value] : attributes) change.set_attribute(name, key, value);
  done.stored_bytes = change.find(name)->stored_bytes();
  throw_if_interrupted();
  return done;
}

}  // namespace shale::tools
