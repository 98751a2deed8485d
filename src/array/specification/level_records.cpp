#include "array/specification/level_records.hpp"

#include "format/catalog/array_name.hpp"

namespace shale::arrays {

namespace {

constexpr std::string_view reserved_name = ".attributes";

}  // namespace

std::string level_record_name(std::string_view level) {
  if (level.empty()) return std::string(reserved_name);
  if (level.ends_with('/')) level.remove_suffix(1);
  // No array can be below a level that is longer than this, and no array can have the name that
  // this function then returns, because that is too long as well.
  std::string name(level.substr(0, format::name_bytes_max));
  name += '/';
  name += reserved_name;
  return name;
}

std::string_view level_of_record(std::string_view name) noexcept {
  return name.substr(0, std::max(name.size(), reserved_name.size() + 1) - reserved_name.size() - 1);
}

bool is_reserved_name(std::string_view name) noexcept {
  return name == reserved_name ||
         (name.ends_with(reserved_name) && name[name.size() - reserved_name.size() - 1] == '/');
}

bool is_level_record(const format::array_record& record) noexcept {
  return is_reserved_name(record.name) && record.is_dense() && record.dtype == dtype::boolean &&
         record.shape.size() == 1 && record.shape[0] == 0;
}

format::array_record make_level_record(std::string name) {
  format::array_record record;
  record.name = std::move(name);
  record.dtype = dtype::boolean;
  record.shape = dims{0};
  record.layout = format::dense_layout{};
  record.fill_value.resize(1);
  return record;
}

}  // namespace shale::arrays
