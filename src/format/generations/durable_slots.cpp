#include "format/generations/durable_slots.hpp"

#include <mutex>

namespace shale::format {

void durable_slots::note(const slots& both) {
  const std::lock_guard lock(mutex_);
  sectors_.emplace(sectors{both[0].sector, both[1].sector});
}

bool durable_slots::are(const slots& both) const {
  const sectors present{both[0].sector, both[1].sector};
  const std::lock_guard lock(mutex_);
  return sectors_ && *sectors_ == present;
}

}  // namespace shale::format
