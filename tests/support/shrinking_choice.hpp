// A source of choices for RapidCheck properties (see random_layouts.hpp): counterexamples shrink.
#pragma once

#include <rapidcheck.h>

#include "shale/index.hpp"

namespace shale::test {

/// At the nominal size whatever the case's: small cases of RapidCheck would draw `lowest` always,
/// and generators that try again would never end.
inline index_t shrinking_choice(index_t lowest, index_t highest) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<index_t>(lowest, highest + 1));
}

}  // namespace shale::test
