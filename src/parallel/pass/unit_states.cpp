#include "parallel/pass/unit_states.hpp"

#include "shale/error.hpp"

namespace shale::parallel {

unit_states::unit_states(const plan& units, const fold_states& states, bool scans)
    : states_(states), groups_(units) {
  if (scans) chain_.emplace(groups_, states);
  else tree_.emplace(groups_, states);
}

void unit_states::run(unit& here, const region& box, const unit_body& body,
                      const unit_body& write) {
  here.results = groups_.results(box);
  if (chain_) scan(here, body, write);
  else fold(here, box, body);
}

void unit_states::fold(unit& here, const region& box, const unit_body& body) {
  const storage partial = states_.make(here.results);
  here.states = const_cast<std::byte*>(partial.data());
  body.run(body.context, here);
  tree_->insert(here.number, box, partial);
}

void unit_states::scan(unit& here, const unit_body& body, const unit_body& write) {
  storage own;
  if (chain_->has_successor(here.number)) {
    own = states_.make(here.results);
    here.states = const_cast<std::byte*>(own.data());
    body.run(body.context, here);
  }
  const storage before = chain_->take(here.number, own, here.results);
  // The unit must fail, because otherwise results that it has not computed would be stored. The
  // loop reports the failure that came first, not this one.
  if (!before) throw error(errc::cancelled, "the pass has failed");
  here.states = const_cast<std::byte*>(before.data());
  here.step = unit_step::scan;
  write.run(write.context, here);
}

}  // namespace shale::parallel
