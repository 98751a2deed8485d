#include "support/row.hpp"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace shale::bench {

namespace {

nlohmann::json to_json(const ratio& what) { return {what.median, what.low, what.high}; }

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

bool met(const target& what) {
  return what.at_least ? what.measured.high >= what.reach : what.measured.low <= what.reach;
}

void print(const row& what) {
  nlohmann::json line = {{"work", what.work},
                         {"bytes", what.bytes},
                         {"seconds", what.seconds},
                         {"gb_per_s", what.seconds > 0 && what.bytes > 0
                                          ? static_cast<double>(what.bytes) / what.seconds / 1e9
                                          : 0},
                         {"peak_rss_bytes", what.peak_rss_bytes}};
  if (what.limit) line["limit_ratio"] = to_json(*what.limit);
  for (const auto& [name, times] : what.peers) line["peers"][name] = to_json(times);
  if (what.reach) {
    line["reach"] = {{"against", what.reach->against},
                     {"ratio", to_json(what.reach->measured)},
                     {what.reach->at_least ? "at_least" : "at_most", what.reach->reach}};
    line["met"] = met(*what.reach);
  }
  if (!what.note.empty()) line["note"] = what.note;
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

std::uint64_t peak_rss_bytes() { return status_bytes("VmHWM:"); }

std::uint64_t rss_bytes() { return status_bytes("VmRSS:"); }

}  // namespace shale::bench
