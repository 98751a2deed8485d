#include "support/contest.hpp"

#include <algorithm>
#include <chrono>
#include <random>
#include <stdexcept>

namespace shale::bench {

namespace {

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The number of values to leave out at each end of n sorted values, so that the median of the
// distribution lies between the others with a probability of at least 95 %. Each value is below the
// median with probability 1/2.
std::size_t outside(std::size_t n) {
  double probability = 1;
  for (std::size_t k = 0; k < n; ++k) probability /= 2;  // no value below
  double below = probability;
  std::size_t left_out = 0;
  while (below <= 0.025) {
    ++left_out;
    probability *= static_cast<double>(n - left_out + 1) / static_cast<double>(left_out);
    below += probability;
  }
  return left_out == 0 ? 0 : left_out - 1;
}

}  // namespace

ratio middle_of(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  const std::size_t left_out = outside(ratios.size());
  return {middle(ratios), ratios[left_out], ratios[ratios.size() - 1 - left_out]};
}

outcome::outcome(std::map<std::string, std::vector<double>> rounds) : rounds_(std::move(rounds)) {}

const std::vector<double>& outcome::at(const std::string& name) const {
  const auto found = rounds_.find(name);
  if (found == rounds_.end()) throw std::logic_error("no contender " + name);
  return found->second;
}

double outcome::median(const std::string& name) const { return middle(at(name)); }

double outcome::largest(const std::string& name) const {
  return *std::max_element(at(name).begin(), at(name).end());
}

ratio outcome::of(const std::string& name, const std::string& other) const {
  std::vector<double> ratios;
  for (std::size_t k = 0; k < at(name).size(); ++k) ratios.push_back(at(name)[k] / at(other)[k]);
  return middle_of(std::move(ratios));
}

const std::string& outcome::best(const std::vector<std::string>& names) const {
  return *std::min_element(names.begin(), names.end(),
                           [&](const auto& a, const auto& b) { return median(a) < median(b); });
}

outcome compete(const std::vector<contender>& contenders, int rounds) {
  std::map<std::string, std::vector<double>> measured;
  std::vector<const contender*> order;
  for (const auto& contender : contenders) {
    contender.round();
    order.push_back(&contender);
  }
  std::minstd_rand random(1);
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const auto* contender : order) measured[contender->name].push_back(contender->round());
  }
  return outcome(std::move(measured));
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double seconds_of_one(const std::function<void()>& call) {
  int calls = 1;
  for (;;) {
    const double taken = seconds_of([&] {
      for (int k = 0; k < calls; ++k) call();
    });
    if (taken > 2e-3) return taken / calls;
    calls *= 2;
  }
}

}  // namespace shale::bench
