#include "support/random_layouts.hpp"

namespace shale::test {

random_choices::random_choices(std::uint64_t seed) : engine_(seed) {}

index_t random_choices::operator()(index_t lowest, index_t highest) {
  const auto range = static_cast<std::uint64_t>(highest - lowest) + 1;
  return lowest + static_cast<index_t>(engine_() % range);
}

template dims random_shape(random_choices&, const shape_options&);
template placed_layout random_layout(random_choices&, const dims&, sharing);
template dims random_broadcastable(random_choices&, const dims&);

}  // namespace shale::test
