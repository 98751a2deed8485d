// Processes at their limits of addresses, mappings and descriptors. A helper process reaches each
// limit.
#include <gtest/gtest.h>

#include "storage/test_support.hpp"

namespace shale {
namespace {

class Limits : public testing::Test {
 protected:
  void expect_so(const std::string& verb) {
    test::expect_found(SHALE_LIMITS_PEER, {verb, directory.path()});
  }

  test::scratch_directory directory;
};

// file.2
TEST_F(Limits, OfAddressSpaceAreErrorsThatLeaveNothing) { expect_so("address-space"); }

// file.2
TEST_F(Limits, OfMappingsAreErrorsThatLeaveNothing) { expect_so("mappings"); }

// file.2
TEST_F(Limits, OfDescriptorsAreErrorsThatLeaveNothing) { expect_so("descriptors"); }

}  // namespace
}  // namespace shale
