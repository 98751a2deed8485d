#include "array/transaction/changes/stored_records.hpp"

#include <fmt/format.h>

#include <utility>

#include "array/specification/close_names.hpp"
#include "array/specification/level_records.hpp"
#include "array/specification/new_names.hpp"
#include "core/printable.hpp"
#include "shale/error.hpp"

namespace shale::arrays {

void throw_no_array(shared_transaction& in, std::string_view name) {
  error failure(errc::not_found, "no array " + detail::in_quotes(name),
                {fmt::format("in {}", in.path())});
  suggest_names(failure, name, array_names(*in.inner(), {}, {}, names_compared_max));
  throw failure;
}

format::array_record existing_record(shared_transaction& in, std::string_view name) {
  auto record = in.inner()->find(name);
  if (!record || is_level_record(*record)) throw_no_array(in, name);
  return *std::move(record);
}

void require_free_path(shared_transaction& in, std::string_view name, std::string_view given_up) {
  require_free_path(name, given_up, [&](std::string_view prefix, std::size_t limit) {
    return in.inner()->list(prefix, {}, limit);
  });
}

}  // namespace shale::arrays
