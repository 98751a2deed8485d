// Opens a container after a crash: finds its newest generation, and checks that work can go on.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "format/small_history.hpp"
#include "support/recording_file_system.hpp"

namespace shale::test {

struct sighting {
  std::uint64_t generation = 0;  ///< 0: there is no file
  plain_state state;
};

/// Opens the container of an image, reads and verifies all of it, and commits another generation.
/// That generation must be sound, and must not change the one before.
inline sighting look(const recording_file_system::image& image, const std::string& path) {
  recording_file_system files(image);
  if (image.empty()) return {};
  auto container = format::container_file::open(files, path, format::open_access::write);
  const format::generation_view view = container.latest();
  sighting seen{view.generation(), observe(view)};
  EXPECT_EQ(unsound(view), "");
  format::transaction change = container.begin(std::chrono::milliseconds{0});
  plain_state next = seen.state;
  storyteller story(change, next);
  story.create_chunked("after the crash");
  story.chunk("after the crash", 3, 200);
  story.dense("dense after the crash", 700, 201);
  change.commit();
  const format::generation_view after = container.latest();
  EXPECT_EQ(after.generation(), seen.generation + 1);
  EXPECT_EQ(observe(after), next);
  EXPECT_EQ(unsound(after), "");
  EXPECT_EQ(observe(view), seen.state);
  return seen;
}

}  // namespace shale::test
