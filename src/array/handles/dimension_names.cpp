#include "shale/dimension_names.hpp"

#include <fmt/format.h>

#include <iterator>

#include "core/allocating.hpp"
#include "core/printable.hpp"
#include "shale/error.hpp"

namespace shale {

namespace {

std::string numbers_of(std::size_t names, index_t rank) {
  return fmt::format("got {} names, its rank is {}", names, rank);
}

}  // namespace

std::optional<std::vector<std::string>> dimension_names(const array& stored) {
  auto names = stored.attribute_as<std::vector<std::string>>(dimension_names_key);
  return detail::allocating([&] {
    if (names && std::ssize(*names) != stored.rank())
      throw error(errc::corrupt, "the dimension names of an array do not fit it",
                  {fmt::format("array {}, attribute '{}'", detail::in_quotes(stored.name()),
                               dimension_names_key),
                   numbers_of(names->size(), stored.rank())});
    return names;
  });
}

void set_dimension_names(transaction& change, std::string_view array,
                         const std::vector<std::string>& names) {
  const attribute_value value(names);
  detail::allocating([&] {
    // If there is no such array, `set_attribute` reports it below.
    const auto found = change.find(array);
    if (found && std::ssize(names) != found->rank())
      throw error(errc::invalid_argument, "the dimension names do not fit the array",
                  {"array " + detail::in_quotes(array), numbers_of(names.size(), found->rank())});
  });
  change.set_attribute(array, dimension_names_key, value);
}

}  // namespace shale
