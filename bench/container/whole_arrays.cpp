#include <algorithm>
#include <filesystem>

#include "container/coding_limits.hpp"
#include "container/suites.hpp"
#include "container/works.hpp"
#include "shale/shale.hpp"
#include "support/files.hpp"

namespace shale::bench {

namespace {

double write_anew(const data_set& data, const std::string& folder) {
  const std::string path = folder + "/written.shale";
  std::filesystem::remove(path);
  const double seconds = seconds_of([&] { data.store(path); });
  std::filesystem::remove(path);
  return seconds;
}

// The peers make their bytes durable in the second work alone, so that the first one measures the
// programs: in memory, a sync costs nothing.
void write_works(const subject& about, coding_limits& alone) {
  const container_settings& chosen = about.chosen;
  measure({.name = about.data.name() + ": write all",
           .shale = [&] { return write_anew(about.data, chosen.memory_folder); },
           .bytes = about.data.bytes(),
           .limits = {{"encode alone", [&] { return alone.encode_alone(); }},
                      {"shuffle and zstd", [&] { return alone.encode_plainly(); }}},
           .goals = {{"", 2}, {"encode alone", 0.95}},
           .packing = about.packing},
          chosen);
  measure({.name = about.data.name() + ": write all, durable",
           .shale = [&] { return write_anew(about.data, chosen.folder); },
           .bytes = about.data.bytes(),
           .goals = {{"", 2}},
           .packing = about.packing},
          chosen);
}

void read_works(const subject& about, coding_limits& alone) {
  const container_settings& chosen = about.chosen;
  const tensor out = tensor::zeros(about.data.values().shape(), about.data.values().dtype());
  std::vector<goal> goals = {{"", 2}, {"decode alone", 0.95}};
  if (chosen.threads == 1) goals.push_back({"zstd and unshuffle", 0.9});
  measure({.name = about.data.name() + ": read all, warm",
           .shale = [&] { return seconds_of([&] { about.stored.values().read_into(out); }); },
           .bytes = about.data.bytes(),
           .limits = {{"decode alone", [&] { return alone.decode_alone(); }},
                      {"zstd and unshuffle", [&] { return alone.decode_plainly(); }}},
           .goals = goals,
           .packing = about.packing},
          chosen);
  const std::string& path = about.stored.path();
  const std::string limit = "the slower of decoding and the disk";
  measure(
      {.name = about.data.name() + ": read all, cold",
       .shale =
           [&] {
             make_cold(path);
             return seconds_of([&] { container::open(path).latest().at("values").read_into(out); });
           },
       .bytes = about.data.bytes(),
       .limits = {{limit,
                   [&] {
                     const double decoding = alone.decode_alone();
                     make_cold(path);
                     return std::max(decoding, seconds_of([&] { read_plain_file(path); }));
                   }}},
       .goals = {{"", 2}, {limit, 0.95}},
       .packing = about.packing},
      chosen);
}

}  // namespace

void whole_arrays(const subject& about) {
  coding_limits alone(about.chosen, about.data, about.stored.values());
  write_works(about, alone);
  read_works(about, alone);
}

}  // namespace shale::bench
