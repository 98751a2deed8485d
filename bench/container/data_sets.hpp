// The values that the suite `container` stores.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "container/settings.hpp"
#include "shale/array.hpp"
#include "shale/container.hpp"
#include "shale/tensor.hpp"

namespace shale::bench {

/// smooth: float32, waves and noise in steps of 1e-3. elevation: int16, copies of an elevation
/// model on a slope, so that no two are equal. noise: float32, normally distributed.
const std::vector<std::string>& data_set_names();

/// 64³ elements, or as many in fewer axes.
dims chunk_shape_of(const std::string& name);

/// A data set in memory. The peers read it from the file NAME.npy in the folder, which is removed
/// with this object.
class data_set {
 public:
  /// Throws   std::runtime_error if the elevation model is not installed
  data_set(const container_settings& chosen, const std::string& name);
  ~data_set();
  data_set(const data_set&) = delete;
  data_set& operator=(const data_set&) = delete;

  const std::string& name() const noexcept { return name_; }
  const tensor& values() const noexcept { return values_; }
  std::uint64_t bytes() const noexcept { return values_.size_bytes(); }

  /// How it is stored: in chunks, by the default codec.
  array_spec spec() const;

  /// Writes all of it into a new container, as the array "values", and commits.
  void store(const std::string& path) const;

 private:
  std::string name_;
  tensor values_;
  std::string file_;
};

/// A data set in a container of Shale, open for reading. The file is removed with this object.
class stored_data {
 public:
  /// Throws   std::runtime_error if the container reads other values than were written
  stored_data(const container_settings& chosen, const data_set& data);
  ~stored_data();
  stored_data(const stored_data&) = delete;
  stored_data& operator=(const stored_data&) = delete;

  const std::string& path() const noexcept { return path_; }
  const array& values() const noexcept { return values_; }

 private:
  std::string path_;
  array values_;
};

/// What the works on one data set need.
struct subject {
  const container_settings& chosen;
  const data_set& data;
  const stored_data& stored;
  std::map<std::string, double> packing;  ///< see `row`
};

/// Asks the peers how many bytes they store.
subject subject_of(const container_settings& chosen, const data_set& data,
                   const stored_data& stored);

}  // namespace shale::bench
