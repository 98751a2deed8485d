// Tests descriptors in programs whose standard streams are closed: what they print gets into no
// file.
#include "storage/files/file_descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "shale/mapped_file.hpp"
#include "shale/shared_memory.hpp"
#include "storage/mapped/scratch_file.hpp"
#include "support/closed_streams.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale::detail {
namespace {

using test::closed_streams;

constexpr std::size_t some_bytes = 20'000;
constexpr std::byte value{'x'};

void fill(const storage& bytes) { std::memset(bytes.data(), 'x', bytes.size_bytes()); }

// In a child, no expectation of the test is seen.
void require(bool so) {
  if (!so) throw std::runtime_error("not so");
}

bool is_filled(const std::byte* bytes) {
  return std::count(bytes, bytes + some_bytes, value) == std::ptrdiff_t{some_bytes};
}

class ClosedStreams : public testing::Test {
 protected:
  // Runs `body` once for each combination of closed streams, and then looks at its file.
  void expect_filled(const std::function<void(const closed_streams&)>& body) const {
    for (unsigned closed = 1; closed <= closed_streams::all; ++closed) {
      SCOPED_TRACE(closed);
      EXPECT_TRUE(test::runs_without_streams(closed, body));
      EXPECT_EQ(test::read_file(path_), std::string(some_bytes, 'x'));
    }
  }

  test::scratch_directory directory_;
  const std::string path_ = directory_ / "file";
};

TEST_F(ClosedStreams, AreNotTakenByFilesThatAreCreated) {
  for (const auto existing : {existing_file::replace, existing_file::keep})
    expect_filled([&](const closed_streams& streams) {
      const storage bytes = create_file(path_, some_bytes, {.existing = existing});
      fill(bytes);
      streams.print();
      bytes.flush();
    });
}

TEST_F(ClosedStreams, AreNotTakenByFilesThatAreMapped) {
  test::write_file(path_, std::string(some_bytes, 'x'));
  const file_descriptor own = open_descriptor(path_, O_RDWR);
  expect_filled([&](const closed_streams& streams) {
    const storage of_a_path = map_file(path_, {.access = access::read_write});
    streams.print();
    const storage of_a_descriptor = map_file(own.get(), {.access = access::read_write});
    streams.print();
  });
}

TEST_F(ClosedStreams, AreNotTakenByTemporaryFiles) {
  test::write_file(path_, std::string(some_bytes, 'x'));
  expect_filled([&](const closed_streams& streams) {
    const std::vector<std::byte> written(some_bytes, value);
    scratch_file file(some_bytes, directory_.path());
    file.write(written, 0);
    const storage mapped = file.map(some_bytes);
    streams.print();
    std::vector<std::byte> read(some_bytes);
    file.read(read, 0);
    require(is_filled(read.data()) && is_filled(mapped.data()));
  });
}

TEST_F(ClosedStreams, AreNotTakenBySegments) {
  const std::string name = "test-" + std::to_string(::getpid()) + ".ClosedStreams";
  test::write_file(path_, std::string(some_bytes, 'x'));
  expect_filled([&](const closed_streams& streams) {
    const storage made = create_shared(name, some_bytes);
    fill(made);
    streams.print();
    const storage opened = open_shared(name);
    streams.print();
    require(open_shared(name).size_bytes() == some_bytes && is_filled(opened.data()));
  });
  ::unlink(("/dev/shm/shale." + name).c_str());
}

// The limit lets the process have the numbers of the standard streams only.
TEST_F(ClosedStreams, AreNotTakenThoughNoOtherNumberIsLeft) {
  for (unsigned closed = 1; closed <= closed_streams::all; ++closed)
    EXPECT_TRUE(test::runs_without_streams(closed, [&](const closed_streams&) {
      rlimit limit{};
      require(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
      limit.rlim_cur = 3;
      require(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
      require(test::code_of([&] { create_file(path_, some_bytes); }) == errc::io);
      require(::access(path_.c_str(), F_OK) != 0);
    })) << closed;
}

}  // namespace
}  // namespace shale::detail
