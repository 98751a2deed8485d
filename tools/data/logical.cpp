#include "data/logical.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "notation/address.hpp"
#include "shale/error.hpp"
#include "shale/logical_arrays.hpp"

namespace shale::tools {

namespace {

// Whether the last axis of an array is the last one of its slice, too.
bool keeps_last_axis(const std::vector<index_entry>& index, index_t rank) {
  using entry = index_entry_kind;
  index_t indexed = 0;
  bool has_ellipsis = false;
  for (const index_entry& item : index) {
    indexed += item.kind() == entry::position || item.kind() == entry::range ? 1 : 0;
    has_ellipsis = has_ellipsis || item.kind() == entry::ellipsis;
  }
  // Axes without an entry follow at the end, or stand at the ellipsis.
  if (indexed < rank && !has_ellipsis) return true;
  for (auto item = index.rbegin(); item != index.rend(); ++item) {
    if (item->kind() != entry::ellipsis) return item->kind() == entry::range;
    if (indexed < rank) return true;
  }
  return true;
}

}  // namespace

std::optional<logical_dtype> usable_logical_dtype(const array& stored) {
  try {
    return logical_dtype_of(stored);
  } catch (const error& failure) {
    const errc code = failure.code();
    if (code != errc::invalid_argument && code != errc::corrupt && code != errc::unsupported) throw;
    return std::nullopt;
  }
}

std::optional<logical_dtype> logical_of_slice(const std::optional<logical_dtype>& whole,
                                              const std::optional<std::vector<index_entry>>& index,
                                              index_t rank) {
  const bool loses = whole && index && has_character_axis(*whole) && !keeps_last_axis(*index, rank);
  return loses ? std::nullopt : whole;
}

bool can_stand_for(const logical_dtype& type, dtype storage, const dims& shape) {
  return storage == storage_dtype(type) && !(has_character_axis(type) && shape.empty());
}

std::optional<logical_dtype> kept_logical_dtype(const std::optional<logical_dtype>& type,
                                                const expr& values) {
  return type && can_stand_for(*type, values.dtype(), values.shape()) ? type : std::nullopt;
}

std::optional<expr> missing_times(const std::optional<logical_dtype>& type, const expr& values) {
  if (!type || has_character_axis(*type)) return std::nullopt;
  return values == expr(not_a_time);
}

std::string lost_logical_dtype(const logical_dtype& type, dtype storage) {
  return fmt::format("logical dtype {}: the elements are {}", name(type), name(storage));
}

void require_same_logical_dtype(const array& present, const std::optional<logical_dtype>& values) {
  if (!values) return;
  const auto own = usable_logical_dtype(present);
  if (own == values) return;
  throw error(errc::invalid_argument,
              fmt::format("'{}' holds {}, the new elements are {}", name_in_address(present.name()),
                          own ? name(*own) : std::string(name(present.dtype())), name(*values)),
              {"they would stand for other values: convert them first, as NumPy's astype does"});
}

}  // namespace shale::tools
