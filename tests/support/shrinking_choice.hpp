// A source of random numbers for RapidCheck properties (see random_layouts.hpp), with which
// counterexamples shrink.
#pragma once

#include <rapidcheck.h>

#include "shale/index.hpp"

namespace shale::test {

/// Draws at the nominal size, whatever the size of the case: with small sizes RapidCheck would
/// always draw `lowest`, and generators that try again would never end.
inline index_t shrinking_choice(index_t lowest, index_t highest) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<index_t>(lowest, highest + 1));
}

}  // namespace shale::test
