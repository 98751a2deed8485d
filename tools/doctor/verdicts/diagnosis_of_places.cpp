// The verdicts on shared memory and on the places where files lie.
#include <fmt/format.h>

#include "doctor/verdicts/diagnosis.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

// The word with the quotes that a shell needs.
std::string quoted(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:@%/";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// ---- shared memory --------------------------------------------------------------------------

void judge_shared_folder(findings& list, const segment_facts& facts) {
  if (!facts.size_bytes || !facts.free_bytes)
    return list.problem("/dev/shm", facts.size_bytes.why,
                        "Processes cannot share tensors without it: mount a tmpfs there.");
  const std::string value =
      fmt::format("{}{} free of {}", facts.file_system ? *facts.file_system + ", " : "",
                  format_bytes(*facts.free_bytes), format_bytes(*facts.size_bytes));
  const char* const larger = "mount -o remount,size=50% /dev/shm";
  if (*facts.free_bytes < mebibyte)
    list.problem(
        "/dev/shm", value,
        "No segment fits: make room, or make it larger. In Docker: --shm-size. As root:", larger);
  else if (*facts.size_bytes <= 64 * mebibyte)
    list.note("/dev/shm", value, "Few segments fit. In Docker: --shm-size. As root:", larger);
  else list.ok("/dev/shm", value);
}

std::string_view lifetime_text(shared_lifetime lifetime) {
  switch (lifetime) {
    case shared_lifetime::creator:
      return "until its creator ends";
    case shared_lifetime::counted:
      return "until its last user ends";
    default:
      return "until it is removed";
  }
}

void judge_segment(findings& list, const shared_segment& segment) {
  const std::string bytes = format_bytes(segment.bytes);
  const std::string living =
      fmt::format("{}: {}, {}, {}", segment.name, bytes, segment.attached ? "in use" : "not in use",
                  lifetime_text(segment.lifetime));
  if (segment.dead)
    list.problem("segment", fmt::format("{}: {}, its owner was killed", segment.name, bytes),
                 segment.attached ? "Its name can be removed. Its memory stays until the last "
                                    "process that uses it ends."
                                  : "Its memory can be freed.",
                 "shale doctor --gc");
  else if (!segment.attached)
    list.note("segment", living,
              "No process uses it, and it stays until remove_shared removes it.");
  else list.ok("segment", living);
}

// ---- places ---------------------------------------------------------------------------------

void judge_file_system(findings& list, const place_facts& facts) {
  if (!facts.mount) return list.unknown("file system", facts.mount.why);
  list.ok("file system", fmt::format("{} at {}{}", facts.mount->type, facts.mount->folder,
                                     facts.mount->read_only ? ", read-only" : ""));
}

void judge_file(findings& list, const file_facts& facts) {
  if (!facts.not_opened.empty())
    list.problem("file", "cannot be used: " + facts.not_opened,
                 "Every command that reads it fails. `shale info` tells more.");
  else if (!facts.not_written.empty())
    list.note("file", "can be read, but not changed: " + facts.not_written,
              "Commands that write into it fail.");
  else list.ok("file", "can be opened");
}

void judge_mapping(findings& list, const place_facts& facts) {
  if (!facts.reading) return list.unknown("mapping", facts.reading.why);
  const bool is_shared = facts.writing && *facts.writing == mapping_support::mapped;
  switch (*facts.reading) {
    case mapping_support::mapped:
      return list.ok("mapping", "files are mapped");
    case mapping_support::copied:
      return list.note("mapping",
                       is_shared ? "files are read into memory, and mapped for writing"
                                 : "files are read into memory; no sharing for writing",
                       "Arrays take as much memory as they have bytes. Put large files on a local "
                       "disk; in Docker, on a volume.");
    case mapping_support::refused:
      return list.problem("mapping", "the kernel generates these files while they are read",
                          "Copy them to a disk.");
  }
}

void judge_space(findings& list, const place_facts& facts) {
  // Such a file system is not meant to have free space.
  if (facts.size_bytes == 0 || (facts.mount && facts.mount->read_only)) return;
  const std::string value =
      fmt::format("{} of {}", format_bytes(facts.free_bytes), format_bytes(facts.size_bytes));
  if (facts.free_bytes < 64 * mebibyte)
    list.problem("free space", value, "Commits may fail with out_of_space: make room.");
  else if (facts.free_bytes < 1024 * mebibyte)
    list.note("free space", value, "Replacing an array needs room for the old and the new one.");
  else list.ok("free space", value);
  if (facts.files > 0 && facts.free_files < 100)
    list.problem("free files", format_count(facts.free_files),
                 "The file system has no room for more files (inodes): remove some.");
}

// An operation of the file system, with the texts for its presence and its absence.
struct ability {
  const char* name;
  const char* present;
  const char* absent;
  const char* advice;
};

void judge_ability(findings& list, const known<bool>& works, verdict otherwise,
                   const ability& checked) {
  if (!works) list.unknown(checked.name, works.why);
  else if (*works) list.ok(checked.name, checked.present);
  else if (otherwise == verdict::problem)
    list.problem(checked.name, checked.absent, checked.advice);
  else list.note(checked.name, checked.absent, checked.advice);
}

void judge_huge_mapping(findings& list, const place_facts& facts) {
  const place_trial& trial = facts.trial;
  if (trial.mapped_bytes == 0) return;
  if (!trial.huge_bytes) return list.unknown("on huge pages", trial.huge_bytes.why);
  const std::string value = share_of(*trial.huge_bytes, trial.mapped_bytes) + " of a new file";
  if (*trial.huge_bytes >= trial.mapped_bytes / 2) list.ok("on huge pages", value);
  else if (facts.mount && facts.mount->type == "tmpfs")
    list.note("on huge pages", value, "Mappings are faster with them. As root:",
              fmt::format("mount -o remount,huge=within_size {}", quoted(facts.mount->folder)));
  else
    list.note("on huge pages", value,
              "Mappings are faster on file systems with large folios: XFS, or ext4 since Linux "
              "6.16.");
}

void judge_place_trial(findings& list, const place_facts& facts) {
  if (!facts.failure.empty()) {
    const bool is_read_only = facts.mount && facts.mount->read_only;
    return list.note("writing", facts.failure,
                     is_read_only ? "Files there can be read. To write, mount it read-write or use "
                                    "another place."
                                  : "Shale could not try which operations work there.");
  }
  const place_trial& trial = facts.trial;
  judge_ability(list, trial.locks, verdict::problem,
                {"locks", "exclude other processes", "have no effect",
                 "Containers do not open there: mount it with locks, or use another file system."});
  judge_ability(list, trial.reserves, verdict::note,
                {"reserving space", "works", "does not work (fallocate)",
                 "Space is reserved by writing zeros, which is slow."});
  judge_ability(list, trial.punches, verdict::note,
                {"freeing space", "works", "does not work inside files",
                 "Freed space is overwritten with zeros instead of given back."});
  judge_huge_mapping(list, facts);
}

void judge_leftover(findings& list, const place_facts& facts, const leftover& file) {
  const std::string value = fmt::format("{}: {}, {}", file.path.substr(file.path.rfind('/') + 1),
                                        format_bytes(file.bytes), file.why);
  switch (file.state) {
    case leftover_state::abandoned:
      return list.problem("leftover", value, "Its writer was killed. It can be removed.",
                          fmt::format("shale doctor --gc {}", quoted(facts.path)));
    case leftover_state::written:
      return list.ok("being written", value);
    case leftover_state::unclear:
      return list.note("leftover", value, "If no process is writing it any more, remove it.");
  }
}

}  // namespace

std::vector<check> diagnose(const segment_facts& facts) {
  findings list("shared memory");
  judge_shared_folder(list, facts);
  if (facts.failure.empty()) list.ok("new segments", "can be made");
  else
    list.problem("new segments", facts.failure,
                 "/dev/shm must be a tmpfs that this user may write to, and /proc be mounted.");
  if (!facts.segments) list.unknown("segments", facts.segments.why);
  else if (facts.segments->empty()) list.ok("segments", "none");
  else
    for (const shared_segment& segment : *facts.segments) judge_segment(list, segment);
  return list.done();
}

std::vector<check> diagnose(const place_facts& facts) {
  findings list(facts.path);
  judge_file_system(list, facts);
  judge_mapping(list, facts);
  if (facts.file) judge_file(list, *facts.file);
  if (facts.reading && *facts.reading == mapping_support::refused) return list.done();
  judge_space(list, facts);
  judge_place_trial(list, facts);
  if (!facts.leftovers) list.unknown("leftovers", facts.leftovers.why);
  else if (facts.leftovers->empty()) list.ok("leftovers", "none of killed writers");
  else
    for (const leftover& file : *facts.leftovers) judge_leftover(list, facts, file);
  return list.done();
}

}  // namespace shale::tools
