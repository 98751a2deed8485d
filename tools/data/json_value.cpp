#include "data/json_value.hpp"

#include <cmath>
#include <complex>
#include <nlohmann/json.hpp>

namespace shale::tools {

namespace {

// JSON has no infinities. Most languages can read them back from this text.
nlohmann::json real_json(double number) {
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  if (std::isnan(number)) return nullptr;
  return number;
}

}  // namespace

nlohmann::json to_json(const scalar& value) {
  switch (kind(value.dtype())) {
    case dtype_kind::boolean:
      return value.as<bool>();
    case dtype_kind::signed_integer:
      return value.as<std::int64_t>();
    case dtype_kind::unsigned_integer:
      return value.as<std::uint64_t>();
    case dtype_kind::floating:
      return real_json(value.as<double>());
    case dtype_kind::complex: {
      const auto number = value.as<std::complex<double>>();
      return nlohmann::json::array({real_json(number.real()), real_json(number.imag())});
    }
  }
  return nullptr;
}

nlohmann::json to_json(const dims& values) {
  nlohmann::json json = nlohmann::json::array();
  for (const index_t value : values) json.push_back(value);
  return json;
}

}  // namespace shale::tools
