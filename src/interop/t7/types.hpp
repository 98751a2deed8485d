// The numbers and names of the .t7 format that reader and writer share.
// Source   the serialisation of Torch7, as its files show it
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "shale/dtype.hpp"

namespace shale::interop::t7 {

/// Every value begins with one of these numbers, an `int`.
enum class type_id : std::int32_t {
  nil = 0,
  number = 1,
  string = 2,
  table = 3,
  torch = 4,
  boolean = 5,
  plain_function = 6,  ///< old files; not counted among the objects
  old_function = 7,
  function = 8,
};

inline constexpr std::string_view class_prefix = "torch.";
inline constexpr std::string_view tensor_suffix = "Tensor";
inline constexpr std::string_view storage_suffix = "Storage";

/// The element types of Torch: "Float" in torch.FloatTensor and torch.FloatStorage.
struct element_type {
  std::string_view name;
  shale::dtype dtype;
};

inline constexpr std::array<element_type, 8> element_types{{{"Byte", dtype::uint8},
                                                            {"Char", dtype::int8},
                                                            {"Short", dtype::int16},
                                                            {"Int", dtype::int32},
                                                            {"Long", dtype::int64},
                                                            {"Half", dtype::float16},
                                                            {"Float", dtype::float32},
                                                            {"Double", dtype::float64}}};

/// The dtype of the class with that ending; nothing if it is another class.
inline std::optional<dtype> dtype_of_class(std::string_view name, std::string_view ending) {
  if (!name.starts_with(class_prefix) || !name.ends_with(ending)) return std::nullopt;
  name.remove_prefix(class_prefix.size());
  if (name.size() < ending.size()) return std::nullopt;
  name.remove_suffix(ending.size());
  for (const element_type& type : element_types)
    if (type.name == name) return type.dtype;
  return std::nullopt;
}

}  // namespace shale::interop::t7
