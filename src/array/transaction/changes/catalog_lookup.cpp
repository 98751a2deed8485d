#include "array/transaction/changes/catalog_lookup.hpp"

#include <fmt/format.h>

#include <utility>

#include "array/specification/close_names.hpp"
#include "array/specification/level_records.hpp"
#include "array/specification/new_names.hpp"
#include "core/printable.hpp"
#include "shale/error.hpp"

namespace shale::arrays {

void throw_no_array(transaction_state& owner, std::string_view name) {
  error failure(errc::not_found, "no array " + detail::in_quotes(name),
                {fmt::format("in {}", owner.path())});
  suggest_names(failure, name, array_names(*owner.inner, {}, {}, names_compared_max));
  throw failure;
}

format::array_record existing_record(transaction_state& owner, std::string_view name) {
  auto record = owner.inner->find(name);
  if (!record || is_level_record(*record)) throw_no_array(owner, name);
  return *std::move(record);
}

void require_free_path(transaction_state& owner, std::string_view name, std::string_view given_up) {
  require_free_path(name, given_up, [&](std::string_view prefix, std::size_t limit) {
    return owner.inner->list(prefix, {}, limit);
  });
}

}  // namespace shale::arrays
