#include "container/data_sets.hpp"

#include <filesystem>
#include <stdexcept>

#include "shale/shale.hpp"

namespace shale::bench {

namespace {

constexpr const char* model = "/usr/share/matplotlib/mpl-data/sample_data/jacksboro_fault_dem.npz";

// A wave along one axis of three.
expr wave(const expr& values, const dims& shape) {
  return eval(astype(values, dtype::float32)).view(shape);
}

tensor smooth_values(const dims& shape) {
  const expr x = wave(sin(arange(shape[0]) / 100.0), {shape[0], 1, 1});
  const expr y = wave(cos(arange(shape[1]) / 170.0), {1, shape[1], 1});
  const expr z = wave(sin(arange(shape[2]) / 300.0), {1, 1, shape[2]});
  generator numbers(1);
  const expr noise = normal(numbers, shape, 0, 0.001, dtype::float32);
  return eval(round((0.1 * (x + y * z) + noise) * 1000) / 1000);
}

tensor elevation_values(const dims& shape) {
  if (!std::filesystem::exists(model))
    throw std::runtime_error(std::string(model) + " is missing: run script/setup");
  const tensor tile_values = npz_file::open(model).read("elevation");
  const dims times{shape[0] / tile_values.shape(0) + 1, shape[1] / tile_values.shape(1) + 1};
  const expr copies = tile(tile_values, times).narrow(0, 0, shape[0]).narrow(1, 0, shape[1]);
  const tensor rows = eval(arange(shape[0])), columns = eval(arange(shape[1]));
  const expr slope = 0.37 * expr(rows.view({shape[0], 1})) + 0.21 * expr(columns);
  return eval(astype(copies + floor(slope), dtype::int16));
}

tensor values_of(const amounts& amount, const std::string& name) {
  if (name == "smooth") return smooth_values(amount.smooth);
  if (name == "elevation") return elevation_values(amount.elevation);
  generator numbers(2);
  return eval(normal(numbers, amount.noise, 0, 1, dtype::float32));
}

}  // namespace

const std::vector<std::string>& data_set_names() {
  static const std::vector<std::string> names = {"smooth", "elevation", "noise"};
  return names;
}

dims chunk_shape_of(const std::string& name) {
  return name == "elevation" ? dims{512, 512} : dims{64, 64, 64};
}

data_set::data_set(const container_settings& chosen, const std::string& name)
    : name_(name),
      values_(values_of(chosen.amount, name)),
      file_(chosen.folder + "/" + name + ".npy") {
  write_npy(file_, values_);
}

data_set::~data_set() {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

array_spec data_set::spec() const {
  return {.dtype = values_.dtype(),
          .shape = values_.shape(),
          .kind = array_kind::chunked,
          .chunk_shape = chunk_shape_of(name_)};
}

void data_set::store(const std::string& path) const {
  container file = container::create(path);
  transaction change = file.begin();
  change.create("values", spec()).write(values_);
  change.commit();
}

namespace {

array stored_anew(const std::string& path, const data_set& data) {
  data.store(path);
  const array stored = container::open(path).latest().at("values");
  if (!equal_bits(stored.read(), data.values()))
    throw std::runtime_error(path + " reads other values than were written");
  return stored;
}

}  // namespace

stored_data::stored_data(const container_settings& chosen, const data_set& data)
    : path_(chosen.folder + "/" + data.name() + ".shale"), values_(stored_anew(path_, data)) {}

stored_data::~stored_data() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

subject subject_of(const container_settings& chosen, const data_set& data,
                   const stored_data& stored) {
  const auto bytes = static_cast<double>(data.bytes());
  subject made{chosen, data, stored, {}};
  made.packing["shale"] = bytes / static_cast<double>(stored.values().stored_bytes());
  if (chosen.peers == nullptr) return made;
  for (const std::string& peer : chosen.peers->names()) {
    try {
      const auto peer_bytes = chosen.peers->seconds(peer, data.name() + ": stored bytes");
      if (peer_bytes) made.packing[peer] = bytes / *peer_bytes;
    } catch (const peer_failure&) {
      // The rows of the works say it.
    }
  }
  return made;
}

}  // namespace shale::bench
