#include "array/test_support.hpp"

#include <cstring>
#include <fstream>
#include <stdexcept>

namespace shale::test {

tensor counting(const dims& shape, dtype type) {
  const tensor made = tensor::empty(shape, type);
  visit(type, all_types{}, [&]<class T>(std::type_identity<T>) {
    index_t i = 0;
    for (T& value : made.elements<T>()) {
      const int number = number_at(i++);
      value = std::is_same_v<T, bool> ? convert<T>(number % 3 == 0) : convert<T>(number);
    }
  });
  return made;
}

tensor seeded(const dims& shape, int seed) {
  const tensor made = counting(shape, dtype::float32);
  for (float& value : made.elements<float>()) value = value * 1.5f + static_cast<float>(seed);
  return made;
}

std::vector<dtype> all_dtypes() {
  std::vector<dtype> types;
  for (int code = 1; code < 256; ++code)
    if (const auto type = dtype_from_code(static_cast<std::uint8_t>(code))) types.push_back(*type);
  return types;
}

void flip_byte(const std::string& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const int old = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(old ^ 0x40));
  if (!file) throw std::runtime_error("cannot change a byte of " + path);
}

std::vector<std::byte> bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> chars((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::byte> bytes(chars.size());
  if (!chars.empty()) std::memcpy(bytes.data(), chars.data(), chars.size());
  return bytes;
}

std::string findings_of(const container& file) {
  std::string text;
  for (const auto& finding : file.verify().findings) text += finding.text + "\n";
  return text;
}

void fresh_container::write_new(const std::string& name, const array_spec& spec,
                                const expr& values) {
  transaction change = file_.begin();
  change.create(name, spec).write(values);
  change.commit();
}

}  // namespace shale::test
