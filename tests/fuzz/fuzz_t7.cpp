// Fuzzes the .t7 files of Torch7, in both encodings.
//
// Properties for any bytes: Opening and reading throw corrupt or unsupported. Otherwise an array is
// what inspecting it says, lies inside its storage, and is the same when it is read by its value.
// Tables can be walked. Memory for elements is bounded by the bytes of the file.
#include <vector>

#include "fuzz/memory_file.hpp"
#include "fuzz/require.hpp"
#include "shale/error.hpp"
#include "shale/memory_pool.hpp"
#include "shale/t7.hpp"
#include "shale/tensor.hpp"

namespace {

using namespace shale;
using fuzz::require;
using fuzz::require_refusal;

constexpr index_t elements_compared_max = 4096;

// Reads every byte of the elements, so that AddressSanitizer sees those outside.
void require_same(const tensor& a, const tensor& b) {
  require(a.dtype() == b.dtype() && a.layout() == b.layout(), "two ways of reading, one array");
  if (a.size() <= elements_compared_max)
    require(equal_bits(a, b), "two ways of reading, the same elements");
}

void read_array(const t7_file& file, const std::string& name) {
  require(file.contains(name), "a file has the arrays that it names");
  try {
    const t7_array about = file.inspect(name);
    const tensor values = file.read(name);
    require(values.dtype() == about.dtype && values.shape() == about.layout.shape(),
            "an array is what inspecting it says");
    require(!values.writable(), "the elements of a file are not written");
    const bool is_stored =
        values.size() == 0 || values.storage().size_bytes() == about.storage_bytes;
    require(is_stored, "a tensor has the storage of the file");
    require_same(values, file.read(name));
  } catch (const error& failure) {
    require_refusal(failure);
  }
}

void read_value(const t7_file& file, const t7_value& value) {
  if (value.kind != t7_kind::tensor && value.kind != t7_kind::storage) return;
  try {
    require_same(file.read(value), file.read(value));
  } catch (const error& failure) {
    require_refusal(failure);
  }
}

// Each table once.
void walk(const t7_file& file) {
  std::vector<t7_value> tables;
  std::vector<bool> known;
  const auto add = [&](const t7_value& value) {
    read_value(file, value);
    if (value.kind != t7_kind::table && value.kind != t7_kind::object) return;
    if (known.size() <= value.object) known.resize(value.object + 1, false);
    if (!known[value.object]) tables.push_back(value);
    known[value.object] = true;
  };
  add(file.root());
  while (!tables.empty()) {
    const t7_value table = tables.back();
    tables.pop_back();
    for (const t7_pair& pair : file.pairs(table)) {
      require(pair.key.kind != t7_kind::nil, "every entry has a key");
      add(pair.key);
      add(pair.value);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  memory_pool& pool = memory_pool::default_pool();
  pool.reset_peak();
  const fuzz::memory_file in_memory({data, size});
  try {
    const t7_file file = t7_file::open(in_memory.path());
    for (const std::string& name : file.names()) read_array(file, name);
    walk(file);
  } catch (const error& failure) {
    require_refusal(failure);
  }
  // An element takes two bytes of text at least, and eight bytes at most.
  require(pool.statistics().peak_live_bytes <= 16 * size + (std::size_t{16} << 20),
          "memory follows the file's bytes");
  return 0;
}
