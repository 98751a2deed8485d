// Tests when a writer syncs superblocks before it trusts them: not if its process has made exactly
// these bytes durable.
#include "format/generations/durable_slots.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

#include "format/bytes/file_layout.hpp"
#include "format/recorded_container.hpp"
#include "support/failures.hpp"

namespace shale::format {
namespace {

constexpr std::chrono::milliseconds at_once{0};

class DurableSlots : public test::recorded_container {
 protected:
  DurableSlots() { container.begin(at_once).commit(); }

  // The syncs of a transaction that changes nothing.
  std::size_t syncs_of_a_commit() {
    const std::size_t before = files.syncs().size();
    container.begin(at_once).commit();
    return files.syncs().size() - before;
  }

  // Writes bytes of a slot as a writer that dies in the middle.
  void tear(std::uint32_t number) {
    std::unique_ptr<open_file> dead;
    ASSERT_GE(files.open(path, open_access::write, dead), 0);
    std::array<std::byte, 8> bytes{};
    bytes.fill(std::byte{0x5a});
    ASSERT_GE(dead->pwrite(bytes, superblock_offsets[number] + 40), 0);
  }
};

TEST_F(DurableSlots, AreNotSyncedAgainByTheirProcess) {
  EXPECT_EQ(syncs_of_a_commit(), 2u);
  EXPECT_EQ(syncs_of_a_commit(), 2u);
  { const transaction aborted = container.begin(at_once); }
  EXPECT_EQ(syncs_of_a_commit(), 2u);
}

TEST_F(DurableSlots, AreSyncedAgainAfterAnotherWriter) {
  container_file other = container_file::open(files, path, open_access::write);
  other.begin(at_once).commit();
  EXPECT_EQ(syncs_of_a_commit(), 3u);
  EXPECT_EQ(syncs_of_a_commit(), 2u);
}

// The older slot decides too: its generation may come back (docs/decisions/0021).
TEST_F(DurableSlots, AreSyncedAgainIfTheOlderOneIsTorn) {
  tear(0);  // the newest generation is 2, in slot 1
  EXPECT_EQ(syncs_of_a_commit(), 3u);
}

}  // namespace
}  // namespace shale::format
