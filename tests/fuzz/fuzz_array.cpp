// Fuzzes arrays through the public API. The harness makes a container of dense and chunked arrays
// with many dtypes and codecs. An input changes its bytes: one byte of mode, and then the changes
// that container_changes.hpp describes.
//
// The mode has three bits:
//   1  corrects every checksum afterwards
//   2  also writes into every array
//   4  replaces each compressed chunk by another zstd frame, with the value of the first change
//
// Properties: A reader throws corrupt or unsupported, or it gets a result, and the same result when
// it reads again. Its memory is bounded by the bytes of the file. Without bit 1, the result is the
// content of some generation.
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "fuzz/container_changes.hpp"
#include "fuzz/memory_file.hpp"
#include "fuzz/require.hpp"
#include "shale/container.hpp"
#include "shale/convert.hpp"
#include "shale/executor.hpp"
#include "shale/memory_pool.hpp"
#include "support/observed_part.hpp"

namespace {

using namespace shale;
using fuzz::content;
using fuzz::require;
using fuzz::require_refusal;

// ---- the sound container
// ----------------------------------------------------------------------------

struct plain_array {
  dtype type;
  dims shape;
  std::vector<std::byte> elements;
  std::vector<std::pair<std::string, std::string>> attributes;

  bool operator==(const plain_array&) const = default;
};
using plain_state = std::map<std::string, plain_array>;

struct sound_container {
  fuzz::original file;
  std::vector<plain_state> states;  // by generation
};

executor& alone() {
  static executor one({.threads = 1, .memory_bytes = 64u << 20});
  return one;
}

// Most rows compress well. The values in one corner do not.
tensor elements(const dims& shape, dtype type, int seed) {
  const tensor made = tensor::empty(shape, type);
  visit(type, all_types{}, [&]<class T>(std::type_identity<T>) {
    int i = seed;
    for (T& value : made.elements<T>()) {
      const int number = i % 5 == 0 ? i * 7919 % 101 : i / 9;
      value = convert<T>(std::is_same_v<T, bool> ? number % 2 : number % 100);
      ++i;
    }
  });
  return made;
}

class storyteller {
 public:
  storyteller(transaction& in, plain_state& told) : change_(in), told_(told) {}

  void create(const std::string& name, const array_spec& spec, int seed) {
    const tensor values = elements(spec.shape, spec.dtype, seed);
    change_.create(name, spec).write(values);
    told_[name] = {spec.dtype,
                   spec.shape,
                   {values.data(), values.data() + values.size_bytes()},  // row-major
                   {}};
  }

  void note(const std::string& name, const std::string& key, const std::string& value) {
    change_.set_attribute(name, key, value);
    told_[name].attributes.emplace_back(key, value);
  }

 private:
  transaction& change_;
  plain_state& told_;
};

array_spec chunked(dtype type, const dims& shape, const dims& chunk, const codec_spec& codec) {
  return {.dtype = type,
          .shape = shape,
          .kind = array_kind::chunked,
          .chunk_shape = chunk,
          .codec = codec,
          .fill_value = 1};
}

void tell(int step, storyteller&& story) {
  if (step == 0) {
    story.create("dense", {.dtype = dtype::int16, .shape = {9, 40}}, 1);
    story.create("packed", chunked(dtype::int32, {21, 30}, {8, 16}, {}), 2);
    story.note("packed", "history", std::string(1500, 'h'));  // too long for a cell
    story.note("packed", "unit", "m");
    return;
  }
  story.create("bits", chunked(dtype::float64, {300}, {128}, {.shuffle = shuffle_mode::bit}), 3);
  story.create("delta", chunked(dtype::uint16, {5, 7, 11}, {4, 4, 4}, {.delta = true}), 4);
  story.create("flags", {.dtype = dtype::boolean, .shape = {100}}, 5);
  story.create("none", {.dtype = dtype::complex64, .shape = {0, 3}}, 6);
  story.create("one", {.dtype = dtype::bfloat16, .shape = {}}, 7);
  story.create("quick", chunked(dtype::float32, {200}, {64}, {.compression = lz4()}), 9);
  story.create("raw", chunked(dtype::int8, {200}, {50}, {.compression = {}}), 8);
}

sound_container make_sound() {
  std::string folder = (std::filesystem::temp_directory_path() / "fuzz-array-XXXXXX").string();
  require(::mkdtemp(folder.data()) != nullptr, "there is room for a sound container");
  const std::string path = folder + "/sound.shale";
  std::vector<plain_state> states{{}, {}};
  {
    container file = container::create(path);
    for (int step = 0; step < 2; ++step) {
      states.push_back(states.back());
      transaction change = file.begin();
      tell(step, {change, states.back()});
      change.commit();
    }
  }
  std::ifstream stored(path, std::ios::binary);
  const std::vector<char> chars{std::istreambuf_iterator<char>(stored), {}};
  std::filesystem::remove_all(folder);
  content bytes(chars.size());
  std::memcpy(bytes.data(), chars.data(), chars.size());
  return {fuzz::original(std::move(bytes)), std::move(states)};
}

const sound_container& sound() {
  static const sound_container made = make_sound();
  return made;
}

// Stores frames of `count` equal bytes in all chunks that have room for them.
void repack(content& bytes, std::size_t count) {
  constexpr std::uint32_t magic = 0xfd2fb528;
  const std::vector<std::byte> elements(count, std::byte{5});
  content frame(ZSTD_compressBound(count));
  frame.resize(ZSTD_compress(frame.data(), frame.size(), elements.data(), count, 1));
  for (const fuzz::site& covered : sound().file.sites()) {
    if (!covered.has_length || covered.reference + 16 > bytes.size()) continue;
    const std::uint64_t offset = covered.range.offset;
    const bool fits = offset <= bytes.size() && covered.range.bytes <= bytes.size() - offset &&
                      covered.range.bytes >= frame.size();
    if (!fits || fuzz::number_at<std::uint32_t>(bytes, offset) != magic) continue;
    std::copy(frame.begin(), frame.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    fuzz::put(bytes, covered.reference + 8, frame.size(), 8);
  }
}

// ---- what a reader and a writer make of it
// --------------------------------------------------------------

plain_array observe(const array& stored) {
  const tensor values = stored.read(test::observed_part(stored));
  require(values.dtype() == stored.dtype(), "elements have the array's dtype");
  return {values.dtype(),
          values.shape(),
          {values.data(), values.data() + values.size_bytes()},
          stored.attributes()};
}

void look_at(const array& stored) {
  std::uint64_t count = 1;
  for (const index_t extent : stored.shape()) {
    require(extent >= 0, "no length is negative");
    count *= static_cast<std::uint64_t>(extent);
  }
  require(stored.rank() <= rank_max, "no rank is beyond the limit");
  require(stored.size_bytes() == count * item_bytes(stored.dtype()), "sizes are products");
  (void)stored.fill_value();
  (void)stored.codec();
  (void)stored.modified();
  for (const auto& [key, bytes] : stored.attributes()) {
    try {
      const auto value = stored.typed_attribute(key);
      require(value && attribute_value::of_stored(value->stored()) == *value,
              "an attribute is found by its key, and can be stored again");
    } catch (const error& failure) {
      require_refusal(failure);  // the other attributes can be read
    }
  }
  const plain_array seen = observe(stored);
  require(seen == observe(stored), "one generation, one content");
  if (stored.kind() != array_kind::dense || stored.size_bytes() == 0) return;
  const tensor mapped = stored.map();
  require(mapped.shape() == stored.shape(), "a mapping has the array's shape");
  if (seen.shape == stored.shape())
    require(std::memcmp(mapped.data(), seen.elements.data(), seen.elements.size()) == 0,
            "a mapping has the array's elements");
}

// A walk over all levels meets each array once.
void look_at_levels(const snapshot& now) {
  std::vector<std::string> names;
  std::vector<std::string> levels{""};
  while (!levels.empty()) {
    const std::string level = std::move(levels.back());
    levels.pop_back();
    for (const level_entry& child : now.children(level)) {
      require(child.name.starts_with(level), "a child is below its level");
      (child.is_level ? levels : names).push_back(child.name);
    }
  }
  std::sort(names.begin(), names.end());
  require(names == now.names(), "levels have all arrays, each once");
  for (const std::string& level : now.levels_with_attributes()) (void)now.attributes(level);
}

plain_state read(const snapshot& now) {
  plain_state seen;
  for (const std::string& name : now.names()) {
    const array stored = now.at(name);
    require(stored.name() == name, "an array knows its name");
    look_at(stored);
    require(seen.emplace(name, observe(stored)).second, "names are there once");
  }
  return seen;
}

void read(const std::string& path, bool is_corrected) {
  try {
    const container file = container::open(path);
    // Damage becomes a finding, and the check of the other arrays continues.
    const bool is_sound = file.verify().findings.empty();
    const snapshot now = file.latest();
    look_at_levels(now);
    if (is_corrected) {
      for (const std::string& name : now.names()) {
        try {
          look_at(now.at(name));
        } catch (const error& failure) {
          require_refusal(failure);  // the next array may be whole
        }
      }
      return;
    }
    const plain_state seen = read(now);
    const auto& states = sound().states;
    require(now.generation() < states.size(), "a generation that was committed");
    require(seen == states[now.generation()], "no wrong value");
    (void)is_sound;
  } catch (const error& failure) {
    require_refusal(failure);
  }
}

void write(const std::string& path) {
  try {
    container file = container::open(path, open_mode::write);
    transaction change = file.begin(no_wait);
    for (const std::string& name : file.latest().names()) {
      const array stored = *change.find(name);
      const region part = test::observed_part(stored);
      change.update(name).write(part, elements(part.shape, stored.dtype(), 11));
      const array now = *change.find(name);
      require(now.shape() == stored.shape(), "a write keeps the shape");
      (void)observe(now);
    }
    change.create("new", {.dtype = dtype::int16, .shape = {30}})
        .write(elements({30}, dtype::int16, 1));
    change.commit();
    require(file.latest().find("new").has_value(), "what was committed is there");
  } catch (const error& failure) {
    // A hostile catalog may have an array of that name already, or the largest generation number.
    if (failure.code() == errc::already_exists || failure.code() == errc::out_of_space) return;
    require_refusal(failure);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const shale::executor::scope within(alone());
  if (size == 0) return 0;
  const bool is_corrected = (data[0] & 1) != 0;
  content bytes = sound().file.bytes();
  if ((data[0] & 4) != 0 && size > 8) repack(bytes, data[6] | std::size_t{data[7]} << 8);
  sound().file.change(bytes, {data + 1, size - 1}, is_corrected);
  memory_pool& pool = memory_pool::default_pool();
  pool.reset_peak();
  const std::size_t before = pool.statistics().live_bytes;
  const fuzz::memory_file file({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  read(file.path(), is_corrected);
  if ((data[0] & 2) != 0) {
    write(file.path());
    if (is_corrected) read(file.path(), true);
  }
  // A zstd frame may unpack to 32768 times its size, so a small file may need up to 64 MiB.
  require(pool.statistics().peak_live_bytes <= before + (std::size_t{64} << 20),
          "memory follows the bytes of the file");
  return 0;
}
