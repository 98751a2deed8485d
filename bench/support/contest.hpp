// Measures contenders in turn, in many rounds. Other work of the machine affects all contenders of
// a round alike, so the ratios inside a round are compared.
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
  bool is_peer = false;
};

/// The median of the ratios of all rounds, and an interval that contains the true median with a
/// probability of 95 %. It is computed from order statistics, so it assumes nothing about the
/// distribution.
struct ratio {
  double median = 0;
  double low = 0;
  double high = 0;
};

/// The median and the interval for the given ratios of single rounds.
ratio middle_of(std::vector<double> ratios);

/// The rounds of all contenders, in the order in which they were measured.
class outcome {
 public:
  explicit outcome(std::map<std::string, std::vector<double>> rounds);

  double median(const std::string& name) const;
  double largest(const std::string& name) const;

  /// The ratio of `name` to `other` in each round, and its median.
  ratio of(const std::string& name, const std::string& other) const;

  /// The contender among `names` with the lowest median.
  const std::string& best(const std::vector<std::string>& names) const;

 private:
  const std::vector<double>& at(const std::string& name) const;

  std::map<std::string, std::vector<double>> rounds_;
};

/// Runs every contender once to warm up, then `rounds` times. Each round has another order.
outcome compete(const std::vector<contender>& contenders, int rounds);

/// Seconds that `work` takes.
double seconds_of(const std::function<void()>& work);

/// Seconds of one call, from a series of calls that takes about two milliseconds.
double seconds_of_one(const std::function<void()>& call);

}  // namespace shale::bench
