// A base for fixtures: a new container whose writes are all recorded.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "format/container/container_file.hpp"
#include "support/recording_file_system.hpp"

namespace shale::test {

class recorded_container : public testing::Test {
 protected:
  const std::string path = "/box/recorded.shale";
  recording_file_system files;
  format::container_file container =
      format::container_file::create(files, path, {.id = format::uuid{}});
};

}  // namespace shale::test
