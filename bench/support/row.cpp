#include "support/row.hpp"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace shale::bench {

namespace {

nlohmann::json to_json(const ratio& measured) {
  return {measured.median, measured.low, measured.high};
}

std::uint64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::uint64_t kib = 0;
    if (word == key && status >> kib) return kib * 1024;
  }
  return 0;
}

}  // namespace

bool met(const target& goal) {
  return goal.at_least ? goal.measured.high >= goal.reach : goal.measured.low <= goal.reach;
}

void print(const row& result) {
  nlohmann::json line = {{"work", result.work},
                         {"bytes", result.bytes},
                         {"seconds", result.seconds},
                         {"gb_per_s", result.seconds > 0 && result.bytes > 0
                                          ? static_cast<double>(result.bytes) / result.seconds / 1e9
                                          : 0},
                         {"peak_rss_bytes", result.peak_rss_bytes}};
  if (result.limit) line["limit_ratio"] = to_json(*result.limit);
  for (const auto& [name, times] : result.peers) line["peers"][name] = to_json(times);
  if (result.reach) {
    line["reach"] = {{"against", result.reach->against},
                     {"ratio", to_json(result.reach->measured)},
                     {result.reach->at_least ? "at_least" : "at_most", result.reach->reach}};
    line["met"] = met(*result.reach);
  }
  if (!result.packing.empty()) line["packing"] = result.packing;
  if (!result.note.empty()) line["note"] = result.note;
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

std::uint64_t peak_rss_bytes() { return status_bytes("VmHWM:"); }

// Where the system refuses it, the peak stays that of the whole process.
void reset_peak_rss() { std::ofstream("/proc/self/clear_refs") << "5"; }

std::uint64_t rss_bytes() { return status_bytes("VmRSS:"); }

}  // namespace shale::bench
