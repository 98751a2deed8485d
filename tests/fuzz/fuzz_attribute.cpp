// Fuzzes the stored bytes of attributes. The whole input is one attribute as a file has it.
//
// Properties: A reader throws corrupt or unsupported, or it gets a value of one kind, which can be
// read as one type at least, and which is stored and read again as the same value. A value that is
// a list has no more elements than bytes.
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/require.hpp"
#include "shale/attribute_value.hpp"
#include "shale/error.hpp"

namespace {

using namespace shale;
using fuzz::require;

// The number of types among `T` that the value can be read as.
template <class T>
int readable_as(const attribute_value& value) {
  try {
    static_cast<void>(value.as<T>());
    return 1;
  } catch (const error& failure) {
    require(failure.code() == errc::invalid_argument, "another kind is the caller's mistake");
    return 0;
  }
}

template <class T>
int readable_as_list(const attribute_value& value, std::size_t bytes) {
  if (readable_as<std::vector<T>>(value) == 0) return 0;
  require(value.as<std::vector<T>>().size() <= bytes, "a list has no more elements than bytes");
  return 1;
}

void look_at(const attribute_value& value, std::size_t bytes) {
  require(name(value.kind()) != "unknown", "a value has a kind that is known");
  int types = readable_as<bool>(value) + readable_as<std::int64_t>(value) +
              readable_as<std::uint64_t>(value) + readable_as<double>(value) +
              readable_as<std::string>(value);
  types += readable_as_list<bool>(value, bytes) + readable_as_list<std::int64_t>(value, bytes) +
           readable_as_list<std::uint64_t>(value, bytes) + readable_as_list<double>(value, bytes) +
           readable_as_list<std::string>(value, bytes);
  const bool has_content =
      value.kind() == attribute_kind::json || value.kind() == attribute_kind::bytes;
  require(has_content ? value.content().size() <= bytes : types > 0, "a value can be read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view stored(reinterpret_cast<const char*>(data), size);
  try {
    const attribute_value value = attribute_value::of_stored(stored);
    look_at(value, size);
    const std::string again = value.stored();
    require(attribute_value::of_stored(again) == value,
            "what was stored is read as the same value");
    require(attribute_value::of_stored(again).stored() == again, "a value has one stored form");
  } catch (const error& failure) {
    fuzz::require_refusal(failure);
  }
  return 0;
}
