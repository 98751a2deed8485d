// Every verdict of `shale doctor` on made-up facts.
#include "doctor/verdicts/diagnosis.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace shale::tools {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t gib = std::uint64_t{1} << 30;

const check& find(const std::vector<check>& checks, std::string_view name) {
  const auto found = std::find_if(checks.begin(), checks.end(),
                                  [&](const check& item) { return item.name == name; });
  static const check none{"", "", verdict::unknown, "no such check", "", ""};
  EXPECT_NE(found, checks.end()) << name;
  return found == checks.end() ? none : *found;
}

verdict verdict_on(const std::vector<check>& checks, std::string_view name) {
  return find(checks, name).found;
}

// A verdict that something is wrong comes with advice; a verdict that all is well has none.
void expect_advice(const std::vector<check>& checks) {
  for (const check& item : checks) {
    const bool is_quiet = item.found == verdict::ok || item.found == verdict::unknown;
    EXPECT_EQ(item.advice.empty(), is_quiet) << item.topic << ": " << item.name;
    EXPECT_TRUE(!is_quiet || item.command.empty()) << item.topic << ": " << item.name;
    EXPECT_FALSE(item.value.empty()) << item.topic << ": " << item.name;
  }
}

// Counts the checks of each verdict but ok.
struct tally {
  std::ptrdiff_t unknown = 0;
  std::ptrdiff_t notes = 0;
  std::ptrdiff_t problems = 0;
  bool operator==(const tally&) const = default;
};

tally count(const std::vector<check>& checks) {
  expect_advice(checks);
  const auto of = [&](verdict counted) {
    return std::count_if(checks.begin(), checks.end(),
                         [&](const check& item) { return item.found == counted; });
  };
  return {of(verdict::unknown), of(verdict::note), of(verdict::problem)};
}

constexpr tally all_is_well{};
constexpr tally one_note{0, 1, 0};
constexpr tally one_problem{0, 0, 1};
constexpr tally one_unknown{1, 0, 0};

// ---- a machine where all is well --------------------------------------------------------------

version_facts good_versions() {
  return {.shale = "0.1.0",
          .format = 1,
          .compiler = "gcc 12",
          .libraries = {{"zstd", "1.5"}, {"oneTBB", "2021"}},
          .kernel = "Linux 6.1.0-13-amd64 x86_64"};
}

processor_facts good_processor() {
  processor_facts facts;
  facts.model = std::string("A processor");
  facts.kernels = std::string("avx512");
  facts.features = {"avx2", "fma"};
  facts.blas = std::string("OpenBLAS 0.3.21, Haswell");
  facts.online = facts.usable = facts.threads = 16;
  facts.quota = no_limit<double>;
  return facts;
}

memory_facts good_memory() {
  memory_facts facts;
  facts.total_bytes = 64 * gib;
  facts.available_bytes = 60 * gib;
  facts.group_limit_bytes = no_limit<std::uint64_t>;
  facts.group_used_bytes = 1 * gib;
  facts.budget_bytes = 30 * gib;
  facts.pressure = memory_pressure{};
  facts.overcommit = std::uint64_t{0};
  facts.commit_limit_bytes = 40 * gib;
  facts.committed_bytes = 5 * gib;
  return facts;
}

limit_facts good_limits() {
  limit_facts facts;
  facts.address_space_bytes = facts.data_bytes = facts.file_bytes = no_limit<std::uint64_t>;
  facts.descriptors = 1024;
  facts.descriptors_hard = 4096;
  facts.address_space_used_bytes = 1 * gib;
  facts.data_used_bytes = 100 * mib;
  facts.descriptors_used = std::uint64_t{5};
  facts.mappings_used = std::uint64_t{80};
  facts.mappings_max = std::uint64_t{65530};
  return facts;
}

huge_page_facts good_huge_pages() {
  return {.enabled = std::string("madvise"), .defrag = std::string("madvise")};
}

pool_trial good_trial() {
  pool_trial trial;
  trial.bytes = 64 * mib;
  trial.huge_bytes = 64 * mib;
  trial.first_seconds = 0.004;
  trial.again_seconds = 0.001;
  return trial;
}

segment_facts good_segments() {
  segment_facts facts;
  facts.file_system = std::string("tmpfs");
  facts.size_bytes = 30 * gib;
  facts.free_bytes = 29 * gib;
  facts.segments = std::vector<shared_segment>{};
  return facts;
}

place_facts good_place() {
  place_facts facts;
  facts.path = facts.folder = "/data";
  facts.is_folder = true;
  facts.mount = mount_point{"/data", "xfs", "/dev/sdb", false};
  facts.reading = facts.writing = mapping_support::mapped;
  facts.size_bytes = 1000 * gib;
  facts.free_bytes = 500 * gib;
  facts.files = 1'000'000;
  facts.free_files = 900'000;
  facts.trial.locks = facts.trial.reserves = facts.trial.punches = true;
  facts.trial.mapped_bytes = 4 * mib;
  facts.trial.huge_bytes = 4 * mib;
  facts.leftovers = std::vector<leftover>{};
  return facts;
}

TEST(Diagnosis, OfGoodFactsIsGood) {
  EXPECT_EQ(count(diagnose(good_versions())), all_is_well);
  EXPECT_EQ(count(diagnose(good_processor())), all_is_well);
  EXPECT_EQ(count(diagnose(good_memory())), all_is_well);
  EXPECT_EQ(count(diagnose(good_limits())), all_is_well);
  EXPECT_EQ(count(diagnose(good_huge_pages(), good_trial())), all_is_well);
  EXPECT_EQ(count(diagnose(good_segments())), all_is_well);
  EXPECT_EQ(count(diagnose(good_place())), all_is_well);
}

// ---- what makes a verdict, one fact at a time ---------------------------------------------------

// The verdict on `name` when one fact has been changed, all others being well.
template <class Facts, class Change>
verdict changed(Facts facts, std::string_view name, const tally& wanted, Change change) {
  change(facts);
  const std::vector<check> checks = diagnose(facts);
  EXPECT_EQ(count(checks), wanted) << name;
  return verdict_on(checks, name);
}

TEST(Diagnosis, OfKernels) {
  const auto on = [](const char* kernel, const tally& wanted) {
    return changed(good_versions(), "kernel", wanted,
                   [&](version_facts& facts) { facts.kernel = kernel; });
  };
  EXPECT_EQ(on("Linux 5.14.0 aarch64", all_is_well), verdict::ok);
  EXPECT_EQ(on("Linux 5.13.19 x86_64", one_note), verdict::note);
  EXPECT_EQ(on("Linux 4.18.0-553.el8 x86_64", one_note), verdict::note);
  EXPECT_EQ(on("gVisor x86_64", one_unknown), verdict::unknown);
}

TEST(Diagnosis, OfProcessors) {
  const auto on = [](std::string_view name, const tally& wanted, auto change) {
    return changed(good_processor(), name, wanted, change);
  };
  using facts = processor_facts;
  EXPECT_EQ(
      on("model", one_unknown, [](facts& f) { f.model = known<std::string>::unknown("no /proc"); }),
      verdict::unknown);
  EXPECT_EQ(on("kernels", one_note, [](facts& f) { f.forced = "avx2"; }), verdict::note);
  EXPECT_EQ(on("threads", one_note, [](facts& f) { f.starts_threads = false; }), verdict::note);
  EXPECT_EQ(on("kernels", one_problem,
               [](facts& f) {
                 f.forced = "sse9";
                 f.kernels = known<std::string>::unknown("no such instruction set");
               }),
            verdict::problem);
  const auto asked_for = [](facts& f) {
    f.blas = std::string("OpenBLAS 0.3.21, Core2 (OPENBLAS_CORETYPE is Core2)");
  };
  EXPECT_EQ(on("matrix products", one_note, asked_for), verdict::note);
  processor_facts old_kernels = good_processor();
  asked_for(old_kernels);
  EXPECT_EQ(find(diagnose(old_kernels), "matrix products").command, "unset OPENBLAS_CORETYPE");
  old_kernels.features.clear();  // a processor of that model's age
  EXPECT_EQ(find(diagnose(old_kernels), "matrix products").found, verdict::ok);
  EXPECT_EQ(on("matrix products", all_is_well,
               [](facts& f) {
                 f.blas = std::string(
                     "OpenBLAS 0.3.21, Haswell (by the CPU's features; OpenBLAS would take "
                     "Prescott)");
               }),
            verdict::ok);
  const auto refused = [](facts& f) {
    f.blas = known<std::string>::unknown("OPENBLAS_CORETYPE asks for kernels that cannot run here");
  };
  EXPECT_EQ(on("matrix products", one_problem, refused), verdict::problem);
  processor_facts without_products = good_processor();
  refused(without_products);
  EXPECT_EQ(find(diagnose(without_products), "matrix products").command, "unset OPENBLAS_CORETYPE");
  EXPECT_EQ(on("processors", one_note, [](facts& f) { f.usable = 2; }), verdict::note);
  EXPECT_EQ(on("processor time", one_note, [](facts& f) { f.quota = 1.5; }), verdict::note);
  EXPECT_EQ(on("processor time", all_is_well, [](facts& f) { f.quota = 16.0; }), verdict::ok);
  EXPECT_EQ(on("processor time", one_unknown,
               [](facts& f) { f.quota = known<double>::unknown("no group"); }),
            verdict::unknown);
  processor_facts little = good_processor();
  little.quota = 1.5;
  EXPECT_NE(find(diagnose(little), "processor time").advice.find("--threads 2"), std::string::npos);
}

TEST(Diagnosis, OfMemory) {
  const auto on = [](std::string_view name, const tally& wanted, auto change) {
    return changed(good_memory(), name, wanted, change);
  };
  using facts = memory_facts;
  const auto unknown = known<std::uint64_t>::unknown("no /proc");
  EXPECT_EQ(on("available", one_problem, [](facts& f) { f.available_bytes = 127 * mib; }),
            verdict::problem);
  EXPECT_EQ(on("available", one_unknown, [&](facts& f) { f.available_bytes = unknown; }),
            verdict::unknown);
  EXPECT_EQ(on("control group", all_is_well, [](facts& f) { f.group_limit_bytes = 128 * mib; }),
            verdict::ok);
  EXPECT_EQ(on("control group", one_problem, [](facts& f) { f.group_limit_bytes = 127 * mib; }),
            verdict::problem);
  EXPECT_EQ(on("control group", one_unknown, [&](facts& f) { f.group_limit_bytes = unknown; }),
            verdict::unknown);
  EXPECT_EQ(on("budget", one_note, [](facts& f) { f.budget_bytes = 255 * mib; }), verdict::note);
  EXPECT_EQ(on("budget", one_note, [](facts& f) { f.group_throttle_bytes = 30 * gib; }),
            verdict::note);
  EXPECT_EQ(on("budget", one_note, [](facts& f) { f.group_throttle_bytes = 1 * gib; }),
            verdict::note);
  EXPECT_EQ(on("budget", all_is_well, [](facts& f) { f.group_throttle_bytes = 31 * gib; }),
            verdict::ok);
}

TEST(Diagnosis, OfMemoryPressure) {
  const auto on = [](const memory_pressure& now, const tally& wanted) {
    return changed(good_memory(), "pressure", wanted,
                   [&](memory_facts& facts) { facts.pressure = now; });
  };
  EXPECT_EQ(on({.some_10 = 9.9, .some_60 = 9.9, .full_10 = 0.9, .full_60 = 0.9}, all_is_well),
            verdict::ok);
  EXPECT_EQ(on({.some_10 = 10}, one_note), verdict::note);
  EXPECT_EQ(on({.some_60 = 10}, one_note), verdict::note);
  EXPECT_EQ(on({.full_10 = 1}, one_note), verdict::note);
  EXPECT_EQ(on({.full_60 = 9.9}, one_note), verdict::note);
  EXPECT_EQ(on({.full_10 = 10}, one_problem), verdict::problem);
  EXPECT_EQ(on({.some_10 = 50, .full_60 = 10}, one_problem), verdict::problem);
  EXPECT_EQ(changed(good_memory(), "pressure", one_unknown,
                    [](memory_facts& facts) {
                      facts.pressure = known<memory_pressure>::unknown("no /proc/pressure");
                    }),
            verdict::unknown);
}

TEST(Diagnosis, OfOvercommit) {
  const auto on = [](const tally& wanted, auto change) {
    return changed(good_memory(), "overcommit", wanted, change);
  };
  using facts = memory_facts;
  EXPECT_EQ(on(all_is_well, [](facts& f) { f.overcommit = std::uint64_t{1}; }), verdict::ok);
  EXPECT_EQ(on(one_note, [](facts& f) { f.overcommit = std::uint64_t{2}; }), verdict::note);
  EXPECT_EQ(on(one_note,
               [](facts& f) {
                 f.overcommit = std::uint64_t{2};
                 f.committed_bytes = known<std::uint64_t>::unknown("not said");
               }),
            verdict::note);
  EXPECT_EQ(on(one_problem,
               [](facts& f) {
                 f.overcommit = std::uint64_t{2};
                 f.committed_bytes = 40 * gib - 255 * mib;
               }),
            verdict::problem);
  EXPECT_EQ(on(one_problem,
               [](facts& f) {
                 f.overcommit = std::uint64_t{2};
                 f.committed_bytes = 50 * gib;  // more than the limit, as root may
               }),
            verdict::problem);
  EXPECT_EQ(
      on(one_unknown, [](facts& f) { f.overcommit = known<std::uint64_t>::unknown("no /proc"); }),
      verdict::unknown);
}

TEST(Diagnosis, OfLimits) {
  const auto on = [](std::string_view name, const tally& wanted, auto change) {
    return changed(good_limits(), name, wanted, change);
  };
  using facts = limit_facts;
  EXPECT_EQ(on("address space", one_note, [](facts& f) { f.address_space_bytes = 2 * gib; }),
            verdict::note);
  EXPECT_EQ(on("address space", one_problem, [](facts& f) { f.address_space_bytes = 2 * gib - 1; }),
            verdict::problem);
  EXPECT_EQ(on("data", one_note, [](facts& f) { f.data_bytes = 2 * gib; }), verdict::note);
  EXPECT_EQ(on("data", one_problem, [](facts& f) { f.data_bytes = 1 * gib; }), verdict::problem);
  EXPECT_EQ(on("file size", one_note, [](facts& f) { f.file_bytes = 100 * gib; }), verdict::note);
  EXPECT_EQ(
      on("open files", all_is_well, [](facts& f) { f.descriptors = no_limit<std::uint64_t>; }),
      verdict::ok);
  EXPECT_EQ(on("open files", all_is_well, [](facts& f) { f.descriptors = 205; }), verdict::ok);
  EXPECT_EQ(on("open files", one_note, [](facts& f) { f.descriptors = 204; }), verdict::note);
  EXPECT_EQ(on("open files", one_note, [](facts& f) { f.descriptors = 37; }), verdict::note);
  EXPECT_EQ(on("open files", one_problem, [](facts& f) { f.descriptors = 36; }), verdict::problem);
  EXPECT_EQ(on("mappings", all_is_well, [](facts& f) { f.mappings_max = std::uint64_t{30080}; }),
            verdict::ok);
  EXPECT_EQ(on("mappings", one_note, [](facts& f) { f.mappings_max = std::uint64_t{30079}; }),
            verdict::note);
  EXPECT_EQ(on("mappings", one_problem, [](facts& f) { f.mappings_max = std::uint64_t{1079}; }),
            verdict::problem);
  EXPECT_EQ(on("mappings", one_unknown,
               [](facts& f) { f.mappings_max = known<std::uint64_t>::unknown("no /proc"); }),
            verdict::unknown);
  limit_facts few = good_limits();
  few.descriptors = 100;
  EXPECT_EQ(find(diagnose(few), "open files").command, "ulimit -n 4096");
  few.descriptors_hard = no_limit<std::uint64_t>;
  EXPECT_EQ(find(diagnose(few), "open files").command, "ulimit -n unlimited");
  few.descriptors_hard = few.descriptors;
  EXPECT_EQ(find(diagnose(few), "open files").command, "");
  EXPECT_NE(find(diagnose(few), "open files").advice.find("LimitNOFILE"), std::string::npos);
}

TEST(Diagnosis, OfHugePages) {
  struct row {
    const char* name;
    tally wanted;
    verdict found;
    void (*change)(huge_page_facts&, pool_trial&);
  };
  using facts = huge_page_facts;
  for (const row& entry : {
           row{"huge pages",
               {0, 2, 0},
               verdict::note,
               [](facts&f, pool_trial&t) {
                 f.enabled = std::string("never");
                 t.huge_bytes = std::uint64_t{0};
               }},
           row{"huge pages", one_note, verdict::note,
               [](facts&f, pool_trial&) { f.disabled_for_process = true; }},
           row{"huge pages",
               {1, 0, 0},
               verdict::unknown,
               [](facts&f, pool_trial&) { f.enabled = known<std::string>::unknown("no /sys"); }},
           row{"huge pages", all_is_well, verdict::ok,
               [](facts&f, pool_trial&) { f.enabled = std::string("always"); }},
           row{"defrag", one_note, verdict::note,
               [](facts&f, pool_trial&) { f.defrag = std::string("never"); }},
           row{"defrag", one_note, verdict::note,
               [](facts&f, pool_trial&) { f.defrag = std::string("defer"); }},
           row{"defrag", all_is_well, verdict::ok,
               [](facts&f, pool_trial&) { f.defrag = std::string("defer+madvise"); }},
           row{"defrag", one_unknown, verdict::unknown,
               [](facts&f, pool_trial&) { f.defrag = known<std::string>::unknown("no /sys"); }},
           row{"on huge pages", one_note, verdict::note,
               [](facts&, pool_trial&t) { t.huge_bytes = 57 * mib; }},
           row{"on huge pages", all_is_well, verdict::ok,
               [](facts&, pool_trial&t) { t.huge_bytes = 58 * mib; }},
           row{"on huge pages", one_unknown, verdict::unknown,
               [](facts&, pool_trial&t) {
                 t.huge_bytes = known<std::uint64_t>::unknown("no smaps");
               }},
           row{"all clear", one_problem, verdict::problem,
               [](facts&, pool_trial&t) { t.all_clear = false; }},
           row{"trial", one_problem, verdict::problem,
               [](facts&, pool_trial&t) { t.failure = "out of memory"; }},
           row{"trial", one_unknown, verdict::unknown,
               [](facts&, pool_trial&t) { t = pool_trial(); }},
       }) {
    huge_page_facts settings = good_huge_pages();
    pool_trial trial = good_trial();
    entry.change(settings, trial);
    const std::vector<check> checks = diagnose(settings, trial);
    EXPECT_EQ(count(checks), entry.wanted) << entry.name;
    EXPECT_EQ(verdict_on(checks, entry.name), entry.found) << entry.name;
  }
}

TEST(Diagnosis, OfSharedMemory) {
  const auto on = [](std::string_view name, const tally& wanted, auto change) {
    return changed(good_segments(), name, wanted, change);
  };
  using facts = segment_facts;
  const auto unknown = known<std::uint64_t>::unknown("/dev/shm: No such file or directory");
  EXPECT_EQ(on("/dev/shm", one_problem, [&](facts& f) { f.size_bytes = f.free_bytes = unknown; }),
            verdict::problem);
  EXPECT_EQ(on("/dev/shm", one_problem, [](facts& f) { f.free_bytes = mib - 1; }),
            verdict::problem);
  EXPECT_EQ(on("/dev/shm", one_note, [](facts& f) { f.size_bytes = f.free_bytes = 64 * mib; }),
            verdict::note);
  EXPECT_EQ(on("/dev/shm", all_is_well, [](facts& f) { f.size_bytes = f.free_bytes = 65 * mib; }),
            verdict::ok);
  EXPECT_EQ(on("new segments", one_problem, [](facts& f) { f.failure = "read-only"; }),
            verdict::problem);
  EXPECT_EQ(on("segments", one_unknown,
               [](facts& f) {
                 f.segments = known<std::vector<shared_segment>>::unknown("not permitted");
               }),
            verdict::unknown);
}

TEST(Diagnosis, OfSegments) {
  const auto on = [](const shared_segment& segment, const tally& wanted) {
    return changed(good_segments(), "segment", wanted, [&](segment_facts& facts) {
      facts.segments = std::vector<shared_segment>{segment};
    });
  };
  const auto creator = shared_lifetime::creator;
  EXPECT_EQ(on({"a", mib, creator, true, false}, all_is_well), verdict::ok);
  EXPECT_EQ(on({"a", mib, shared_lifetime::counted, true, false}, all_is_well), verdict::ok);
  EXPECT_EQ(on({"a", mib, shared_lifetime::manual, false, false}, one_note), verdict::note);
  EXPECT_EQ(on({"a", mib, creator, true, true}, one_problem), verdict::problem);
  EXPECT_EQ(on({"a", mib, creator, false, true}, one_problem), verdict::problem);
}

TEST(Diagnosis, OfFileSystems) {
  const auto on = [](std::string_view name, const tally& wanted, auto change) {
    return changed(good_place(), name, wanted, change);
  };
  using facts = place_facts;
  EXPECT_EQ(on("file system", one_unknown,
               [](facts& f) { f.mount = known<mount_point>::unknown("no /proc"); }),
            verdict::unknown);
  EXPECT_EQ(on("mapping", one_note,
               [](facts& f) {
                 f.reading = mapping_support::copied;
                 f.writing = mapping_support::refused;
               }),
            verdict::note);
  EXPECT_EQ(on("mapping", one_note, [](facts& f) { f.reading = mapping_support::copied; }),
            verdict::note);
  EXPECT_EQ(on("mapping", one_problem, [](facts& f) { f.reading = mapping_support::refused; }),
            verdict::problem);
  EXPECT_EQ(on("mapping", one_unknown,
               [](facts& f) { f.reading = known<mapping_support>::unknown("no answer"); }),
            verdict::unknown);
}

TEST(Diagnosis, OfFiles) {
  const auto on = [](const tally& wanted, const file_facts& file) {
    return changed(good_place(), "file", wanted, [&](place_facts& facts) { facts.file = file; });
  };
  EXPECT_EQ(on(all_is_well, {}), verdict::ok);
  EXPECT_EQ(on(one_note, {.not_opened = "", .not_written = "Permission denied"}), verdict::note);
  EXPECT_EQ(on(one_problem, {.not_opened = "damaged", .not_written = "Permission denied"}),
            verdict::problem);
}

TEST(Diagnosis, OfSpace) {
  const auto on = [](std::string_view name, const tally& wanted, auto change) {
    return changed(good_place(), name, wanted, change);
  };
  using facts = place_facts;
  EXPECT_EQ(on("free space", one_problem, [](facts& f) { f.free_bytes = 64 * mib - 1; }),
            verdict::problem);
  EXPECT_EQ(on("free space", one_note, [](facts& f) { f.free_bytes = gib - 1; }), verdict::note);
  EXPECT_EQ(on("free files", one_problem, [](facts& f) { f.free_files = 99; }), verdict::problem);
  place_facts archive = good_place();
  archive.mount = mount_point{"/data", "squashfs", "/dev/loop0", true};
  archive.free_bytes = archive.free_files = 0;
  archive.failure = "Read-only file system";
  // A read-only file system need not have free space, but nothing can be written there.
  EXPECT_EQ(count(diagnose(archive)), one_note);
  place_facts btrfs = good_place();
  btrfs.files = btrfs.free_files = 0;
  EXPECT_EQ(count(diagnose(btrfs)), all_is_well);
}

TEST(Diagnosis, OfWhatWorksInAPlace) {
  const auto on = [](std::string_view name, const tally& wanted, auto change) {
    return changed(good_place(), name, wanted, change);
  };
  using facts = place_facts;
  const auto unknown = known<bool>::unknown("not tried");
  EXPECT_EQ(on("writing", one_note, [](facts& f) { f.failure = "Permission denied"; }),
            verdict::note);
  EXPECT_EQ(on("writing", one_note,
               [](facts& f) {
                 f.mount = mount_point{"/data", "ext4", "/dev/loop0", true};
                 f.failure = "Read-only file system";
               }),
            verdict::note);
  EXPECT_EQ(on("locks", one_problem, [](facts& f) { f.trial.locks = false; }), verdict::problem);
  EXPECT_EQ(on("locks", one_unknown, [&](facts& f) { f.trial.locks = unknown; }), verdict::unknown);
  EXPECT_EQ(on("reserving space", one_note, [](facts& f) { f.trial.reserves = false; }),
            verdict::note);
  EXPECT_EQ(on("reserving space", one_unknown, [&](facts& f) { f.trial.reserves = unknown; }),
            verdict::unknown);
  EXPECT_EQ(on("freeing space", one_note, [](facts& f) { f.trial.punches = false; }),
            verdict::note);
  EXPECT_EQ(on("on huge pages", one_note, [](facts& f) { f.trial.huge_bytes = 2 * mib - 1; }),
            verdict::note);
  EXPECT_EQ(on("on huge pages", all_is_well, [](facts& f) { f.trial.huge_bytes = 2 * mib; }),
            verdict::ok);
  EXPECT_EQ(on("on huge pages", one_unknown,
               [](facts& f) { f.trial.huge_bytes = known<std::uint64_t>::unknown("no smaps"); }),
            verdict::unknown);
  place_facts memory = good_place();
  memory.mount = mount_point{"/a b's", "tmpfs", "tmpfs", false};
  memory.trial.huge_bytes = std::uint64_t{0};
  EXPECT_EQ(find(diagnose(memory), "on huge pages").command,
            "mount -o remount,huge=within_size '/a b'\\''s'");
}

place_facts place_with_leftover(leftover_state state) {
  leftover file;
  file.path = "/data/.x.npy.0123456789abcdef.partial";
  file.name = {"x.npy", false, true};
  file.bytes = 4096;
  file.state = state;
  file.why = "no process has it open";
  place_facts facts = good_place();
  facts.leftovers.value->push_back(file);
  return facts;
}

TEST(Diagnosis, OfLeftovers) {
  const auto on = [](std::string_view name, leftover_state state, const tally& wanted) {
    const std::vector<check> checks = diagnose(place_with_leftover(state));
    EXPECT_EQ(count(checks), wanted) << name;
    return verdict_on(checks, name);
  };
  EXPECT_EQ(on("leftover", leftover_state::abandoned, one_problem), verdict::problem);
  EXPECT_EQ(on("being written", leftover_state::written, all_is_well), verdict::ok);
  EXPECT_EQ(on("leftover", leftover_state::unclear, one_note), verdict::note);
  EXPECT_EQ(changed(good_place(), "leftovers", one_unknown,
                    [](place_facts& facts) {
                      facts.leftovers = known<std::vector<leftover>>::unknown("not permitted");
                    }),
            verdict::unknown);
  EXPECT_EQ(find(diagnose(place_with_leftover(leftover_state::abandoned)), "leftover").command,
            "shale doctor --gc /data");
}

TEST(Diagnosis, OfNothingKnownIsUnknownAndNoProblem) {
  // In a container without /proc and /sys, only the facts from system calls remain.
  limit_facts limits;
  limits.address_space_bytes = limits.data_bytes = limits.file_bytes = no_limit<std::uint64_t>;
  limits.descriptors = 1024;
  memory_facts memory;
  memory.budget_bytes = 1 * gib;
  for (const auto& checks :
       {diagnose(memory), diagnose(limits), diagnose(huge_page_facts(), pool_trial())}) {
    const tally found = count(checks);
    EXPECT_EQ(found.problems, 0);
    EXPECT_EQ(found.notes, 0);
    EXPECT_GT(found.unknown, 0);
  }
}

TEST(Findings, SayShares) {
  EXPECT_EQ(share_of(0, 64 * mib), "none of 64 MiB");
  EXPECT_EQ(share_of(4 * mib, 64 * mib), "4.0 MiB of 64 MiB");
  EXPECT_EQ(share_of(64 * mib, 64 * mib), "all of 64 MiB");
  EXPECT_EQ(name(verdict::ok), "ok");
  EXPECT_EQ(name(verdict::unknown), "unknown");
  EXPECT_EQ(name(verdict::note), "note");
  EXPECT_EQ(name(verdict::problem), "problem");
}

}  // namespace
}  // namespace shale::tools
