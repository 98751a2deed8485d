#include "shale/logical_arrays.hpp"

#include <fmt/format.h>

#include "core/allocating.hpp"
#include "core/printable.hpp"
#include "shale/error.hpp"

namespace shale {

namespace {

std::string place_of(const array& stored) {
  return fmt::format("array {}, attribute '{}'", detail::in_quotes(stored.name()),
                     logical_dtype_key);
}

}  // namespace

std::optional<logical_dtype> logical_dtype_of(const array& stored) {
  const auto text = stored.attribute_as<std::string>(logical_dtype_key);
  return detail::allocating([&]() -> std::optional<logical_dtype> {
    if (!text) return std::nullopt;
    const auto type = parse_logical_dtype(*text);
    if (!type)
      throw error(errc::unsupported, "the logical dtype of an array is not known",
                  {place_of(stored), "got " + detail::in_quotes(*text),
                   fmt::format("the elements can be read as {}", name(stored.dtype()))});
    try {
      require_storage(*type, stored.dtype(), stored.shape());
    } catch (const error& failure) {
      if (failure.code() != errc::invalid_argument) throw;
      throw error(errc::corrupt, "the logical dtype of an array does not fit it",
                  {place_of(stored), fmt::format("got {}, the array is {} {}", *text,
                                                 name(stored.dtype()), to_string(stored.shape()))});
    }
    return type;
  });
}

void set_logical_dtype(transaction& change, std::string_view array, const logical_dtype& type) {
  const attribute_value value(name(type));
  detail::allocating([&] {
    // If there is no such array, `set_attribute` reports it below.
    if (const auto found = change.find(array))
      with_context([&] { return "array " + detail::in_quotes(array); },
                   [&] { require_storage(type, found->dtype(), found->shape()); });
  });
  change.set_attribute(array, logical_dtype_key, value);
}

}  // namespace shale
