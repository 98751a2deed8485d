#include "shale/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <type_traits>

namespace {

using shale::errc;
using shale::error;

TEST(Error, PrintsFramesMessageCodeAndIndentedDetails) {
  error failure(errc::corrupt, "checksum mismatch",
                {"file survey.shale, root page", "stored 1b, computed 88"});
  failure.add_context("read root").add_context("open survey.shale");
  failure.add_detail("restore the file from a copy");
  EXPECT_STREQ(failure.what(),
               "open survey.shale: read root: checksum mismatch [corrupt]\n"
               "  file survey.shale, root page\n"
               "  stored 1b, computed 88\n"
               "  restore the file from a copy");
  EXPECT_EQ(failure.message(), "checksum mismatch");
  EXPECT_EQ(failure.code(), errc::corrupt);
  EXPECT_EQ(failure.os_errno(), 0);
}

TEST(Error, IndentsEveryLineOfADetail) {
  const error failure(errc::io, "short read", {"first\nsecond"});
  EXPECT_STREQ(failure.what(), "short read [io]\n  first\n  second");
}

// what() would end at the first zero byte.
TEST(Error, ShowsZeroBytesOfItsParts) {
  error failure(errc::not_found, std::string_view("no array 'a\0b'", 14),
                {std::string("file x\0.shale", 13)});
  failure.add_context(std::string_view("open x\0.shale", 13));
  EXPECT_STREQ(failure.what(),
               "open x\\0.shale: no array 'a\\0b' [not_found]\n"
               "  file x\\0.shale");
}

TEST(Error, AppendsTheSystemsTextToItsMessage) {
  const error failure = error::from_errno(errc::out_of_space, "reserve 5 bytes", ENOSPC, {"/x"});
  EXPECT_STREQ(failure.what(), "reserve 5 bytes: No space left on device [out_of_space]\n  /x");
  EXPECT_EQ(failure.message(), "reserve 5 bytes: No space left on device");
  EXPECT_EQ(failure.os_errno(), ENOSPC);
}

TEST(Error, ReplacesATextInAllItsParts) {
  error failure =
      error::from_errno(errc::io, "cannot write a.tmp", EIO, {"file a.tmp, beside a.tmp"});
  failure.add_context("save a.tmp");
  const error before = failure;
  failure.replace_in_text("a.tmp", "a.tmp.npy")
      .replace_in_text("", "x")
      .replace_in_text("b.tmp", "y");
  EXPECT_STREQ(failure.what(),
               "save a.tmp.npy: cannot write a.tmp.npy: Input/output error [io]\n"
               "  file a.tmp.npy, beside a.tmp.npy");
  EXPECT_EQ(failure.message(), "cannot write a.tmp.npy: Input/output error");
  EXPECT_EQ(failure.os_errno(), EIO);
  EXPECT_EQ(before.message(), "cannot write a.tmp: Input/output error");
}

TEST(Error, IsCaughtAsRuntimeErrorWithItsWholeText) {
  try {
    throw error(errc::busy, "locked");
  } catch (const std::runtime_error& failure) {
    EXPECT_STREQ(failure.what(), "locked [busy]");
  }
}

TEST(Error, CopiesNeverThrowAndKeepTheirText) {
  static_assert(std::is_nothrow_copy_constructible_v<error>);
  static_assert(std::is_nothrow_move_constructible_v<error>);
  static_assert(std::is_nothrow_copy_assignable_v<error>);
  error first(errc::io, "broken", {"here"});
  const error copy = first;
  first.add_context("outer").add_detail("there");
  EXPECT_STREQ(copy.what(), "broken [io]\n  here");
  EXPECT_STREQ(first.what(), "outer: broken [io]\n  here\n  there");
  error source = first;
  const error moved = std::move(source);
  EXPECT_STREQ(moved.what(), first.what());
  EXPECT_STREQ(source.what(), first.what());  // NOLINT: moving copies
}

TEST(Error, EveryCodeHasItsEnumeratorsName) {
  EXPECT_EQ(name(errc::invalid_argument), "invalid_argument");
  EXPECT_EQ(name(errc::not_found), "not_found");
  EXPECT_EQ(name(errc::already_exists), "already_exists");
  EXPECT_EQ(name(errc::access_denied), "access_denied");
  EXPECT_EQ(name(errc::out_of_memory), "out_of_memory");
  EXPECT_EQ(name(errc::out_of_space), "out_of_space");
  EXPECT_EQ(name(errc::io), "io");
  EXPECT_EQ(name(errc::corrupt), "corrupt");
  EXPECT_EQ(name(errc::unsupported), "unsupported");
  EXPECT_EQ(name(errc::busy), "busy");
  EXPECT_EQ(name(errc::cancelled), "cancelled");
}

TEST(Error, MapsErrnoToCodes) {
  EXPECT_EQ(shale::code_for_errno(ENOENT), errc::not_found);
  for (const int denied : {EACCES, EPERM, EROFS})
    EXPECT_EQ(shale::code_for_errno(denied), errc::access_denied);
  EXPECT_EQ(shale::code_for_errno(EEXIST), errc::already_exists);
  for (const int full : {ENOSPC, EDQUOT, EFBIG})
    EXPECT_EQ(shale::code_for_errno(full), errc::out_of_space);
  EXPECT_EQ(shale::code_for_errno(ENOMEM), errc::out_of_memory);
  for (const int busy : {EAGAIN, EBUSY}) EXPECT_EQ(shale::code_for_errno(busy), errc::busy);
  for (const int asked : {EINVAL, EISDIR, ENAMETOOLONG})
    EXPECT_EQ(shale::code_for_errno(asked), errc::invalid_argument);
  for (const int other : {EIO, EFAULT, ENXIO, ENOTDIR, 0})
    EXPECT_EQ(shale::code_for_errno(other), errc::io);
}

TEST(WithContext, AddsItsFrameOutermostAndOnlyOnFailure) {
  int built = 0;
  const auto frame = [&] {
    ++built;
    return std::string("chunk 3");
  };
  EXPECT_EQ(shale::with_context(frame, [] { return 7; }), 7);
  EXPECT_EQ(built, 0);
  try {
    shale::with_context("open", [&] {
      return shale::with_context(frame, []() -> int { throw error(errc::io, "torn"); });
    });
    FAIL();
  } catch (const error& failure) {
    EXPECT_STREQ(failure.what(), "open: chunk 3: torn [io]");
  }
  EXPECT_EQ(built, 1);
}

TEST(WithContext, PassesReferencesAndOtherExceptionsThrough) {
  int value = 1;
  int& same = shale::with_context("x", [&]() -> int& { return value; });
  EXPECT_EQ(&same, &value);
  EXPECT_THROW(shale::with_context("x", []() -> int { throw 5; }), int);
}

}  // namespace
