// Contenders measured in turn, round after round: what else the machine does meanwhile hits all of
// them alike, and what is compared are the ratios inside each round.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace shale::bench {

struct contender {
  std::string name;
  std::function<double()>
      round;  ///< does the work once; the seconds it took, or what else is compared
};

/// The median of the rounds' ratios, and an interval that holds the true median with 95 %
/// probability (order statistics: nothing is assumed about the distribution).
struct ratio {
  double median = 0;
  double low = 0;
  double high = 0;
};

/// Of the ratios of single rounds.
ratio middle_of(std::vector<double> ratios);

/// The rounds of all contenders, in the order they were measured.
class outcome {
 public:
  explicit outcome(std::map<std::string, std::vector<double>> rounds);

  double median(const std::string& name) const;
  double largest(const std::string& name) const;

  /// name / other, round by round.
  ratio of(const std::string& name, const std::string& other) const;

  /// The name with the lowest median among `names`.
  const std::string& best(const std::vector<std::string>& names) const;

 private:
  const std::vector<double>& at(const std::string& name) const;

  std::map<std::string, std::vector<double>> rounds_;
};

/// Runs every contender once to warm up, then `rounds` times, each round in another order.
outcome compete(const std::vector<contender>& contenders, int rounds);

/// Seconds that `work` takes.
double seconds_of(const std::function<void()>& work);

}  // namespace shale::bench
