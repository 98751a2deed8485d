#include "doctor/facts/segments.hpp"

#include <fmt/format.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "doctor/facts/place.hpp"
#include "shale/error.hpp"

namespace shale::tools {

namespace {

constexpr const char* shared_folder = "/dev/shm";

// The reason why no segment can be made, or "".
std::string try_segment() {
  try {
    // The segment is removed with its handle. If this process is killed, it is reclaimed as every
    // dead segment is. The random part distinguishes processes of other namespaces with the same
    // number.
    create_shared(fmt::format("doctor-{}-{:08x}", ::getpid(), std::random_device()()), 1);
    return {};
  } catch (const error& failure) {
    return std::string(failure.message());
  }
}

known<std::vector<shared_segment>> listed() {
  try {
    return list_shared();
  } catch (const error& failure) {
    return known<std::vector<shared_segment>>::unknown(std::string(failure.message()));
  }
}

}  // namespace

segment_facts look_at_segments() {
  segment_facts facts;
  facts.file_system = mount_of(shared_folder).then([](const mount_point& at) { return at.type; });
  struct statfs about {};
  if (::statfs(shared_folder, &about) == 0) {
    const auto block = static_cast<std::uint64_t>(about.f_bsize);
    facts.size_bytes = about.f_blocks * block;
    facts.free_bytes = about.f_bavail * block;
  } else {
    facts.size_bytes = facts.free_bytes =
        known<std::uint64_t>::unknown(fmt::format("{}: {}", shared_folder, std::strerror(errno)));
  }
  facts.failure = try_segment();
  facts.segments = listed();
  return facts;
}

std::vector<shared_segment> reclaim_segments() {
  std::vector<shared_segment> dead = list_shared();
  std::erase_if(dead, [](const shared_segment& segment) { return !segment.dead; });
  reclaim_shared();
  const std::vector<shared_segment> left = list_shared();
  std::erase_if(dead, [&](const shared_segment& segment) {
    return std::any_of(left.begin(), left.end(), [&](const shared_segment& other) {
      return other.name == segment.name && other.dead;
    });
  });
  return dead;
}

}  // namespace shale::tools
