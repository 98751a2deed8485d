#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "array/test_support.hpp"
#include "shale/array.hpp"
#include "shale/container.hpp"
#include "shale/mapped_file.hpp"
#include "shale/memory_pool.hpp"
#include "shale/writable_array.hpp"
#include "support/system_page.hpp"

namespace shale {
namespace {

using test::code_of;
using test::counting;
using test::findings_of;
using test::text_of;

// Whether `address` lies in a mapping of the file, with these permissions.
bool is_mapped_from(const void* address, const std::string& path, const char* permissions) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0, last = 0;
    char allowed[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &first, &last, allowed) != 3) continue;
    if (wanted < first || wanted >= last) continue;
    return line.ends_with(path) && std::string(allowed) == permissions;
  }
  return false;
}

// The mapped bytes of the file, without the live page, which waking and waiting map.
std::size_t mapped_bytes_of(const std::string& path) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::ifstream maps("/proc/self/maps");
  std::size_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0, last = 0;
    if (!line.ends_with(path) || std::sscanf(line.c_str(), "%lx-%lx", &first, &last) != 2) continue;
    if (last - first > page) bytes += last - first;
  }
  return bytes;
}

class DenseArray : public test::fresh_container {
 protected:
  void write(const std::string& name, const tensor& values) {
    write_new(name, {.dtype = values.dtype(), .shape = values.shape()}, values);
  }
};

TEST_F(DenseArray, HoldsEveryDtype) {
  transaction change = file_.begin();
  for (const dtype type : test::all_dtypes())
    change.create(std::string(name(type)), {.dtype = type, .shape = {37, 11}})
        .write(region::all({37, 11}), counting({37, 11}, type));
  change.commit();
  for (const dtype type : test::all_dtypes()) {
    const array stored = at(std::string(name(type)));
    EXPECT_EQ(stored.dtype(), type);
    EXPECT_EQ(stored.shape(), (dims{37, 11}));
    EXPECT_TRUE(equal_bits(stored.map(), counting({37, 11}, type))) << name(type);
    EXPECT_TRUE(equal_bits(stored.read(), counting({37, 11}, type))) << name(type);
  }
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseArray, StartsAsZeros) {
  write_new("old", {.shape = {300'000}}, expr(3.5f));
  for (int round = 0; round < 3; ++round) {  // enough rounds to reuse the old array's space
    transaction change = file_.begin();
    if (round == 0) change.remove("old");
    change.commit();
  }
  transaction change = file_.begin();
  change.create("new", {.shape = {300'000}});
  change.commit();
  EXPECT_TRUE(equal_bits(at("new").map(), tensor::zeros({300'000}, dtype::float32)));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseArray, EmptyAndRankZeroOnesWork) {
  const tensor single = counting({}, dtype::int64);
  write("single", single);
  write("empty", tensor::zeros({4, 0, 3}, dtype::float32));
  EXPECT_TRUE(equal_bits(at("single").map(), single));
  EXPECT_TRUE(equal_bits(at("single").read(), single));
  EXPECT_EQ(at("empty").map().shape(), (dims{4, 0, 3}));
  EXPECT_EQ(at("empty").read().shape(), (dims{4, 0, 3}));
  EXPECT_EQ(at("empty").stored_bytes(), 0u);
  {
    transaction change = file_.begin();
    change.update("empty").write(expr(1));
    change.update("single").write(expr(41));
    change.commit();
  }
  EXPECT_EQ(at("single").map().item(), scalar(41));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseArray, IsTheFilesOwnBytes) {
  const tensor values = test::seeded({700, 1000}, 3);
  write("a", values);
  memory_pool& pool = memory_pool::default_pool();
  const auto before = pool.statistics();
  const array stored = at("a");
  const tensor mapped = stored.map();
  EXPECT_EQ(pool.statistics().live_bytes, before.live_bytes);
  EXPECT_TRUE(is_mapped_from(mapped.data(), path_, "r--s"));
  EXPECT_TRUE(is_mapped_from(mapped.data() + mapped.size_bytes() - 1, path_, "r--s"));
  EXPECT_FALSE(mapped.storage().writable());
  EXPECT_EQ(code_of([&] { mapped.as<float, 2>(); }), errc::access_denied);
  EXPECT_TRUE(stored.map().storage().shares_owner_with(mapped.storage()));
  EXPECT_TRUE(equal_bits(mapped, values));
  EXPECT_EQ(stored.stored_bytes(), stored.size_bytes());
}

TEST_F(DenseArray, LargeOnesAreAlignedForHugePages) {
  write("large", tensor::zeros({5 << 20}, dtype::float32));
  const tensor mapped = at("large").map();
  ASSERT_TRUE(mapped.storage().file_offset());
  EXPECT_EQ(*mapped.storage().file_offset() % (2u << 20), 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapped.data()) % (2u << 20), 0u);
}

TEST_F(DenseArray, ViewsKeepTheirBytesWhenEverythingElseIsGone) {
  const tensor values = test::seeded({500, 100}, 9);
  tensor view;
  {
    container own = container::open(path_, open_mode::write);
    write("a", values);
    view = own.latest().at("a").map().narrow(0, 100, 50);
    own.close();
  }
  // Enough generations with new data, so that unpinned space would be reused.
  for (int i = 0; i < 6; ++i) {
    transaction change = file_.begin();
    change.update("a").write(expr(i));
    change.commit();
  }
  EXPECT_TRUE(equal_bits(view, values.narrow(0, 100, 50)));
  EXPECT_GE(mapped_bytes_of(path_), values.size_bytes());
  EXPECT_GT(file_.verify().freed_bytes, values.size_bytes() - 1);
  view = tensor();
  transaction(file_.begin()).commit();
  EXPECT_EQ(mapped_bytes_of(path_), 0u);
}

TEST_F(DenseArray, SpaceComesBackOnceNobodyReadsIt) {
  write("a", test::seeded({1 << 20}, 1));
  std::uint64_t most = 0;
  for (int i = 0; i < 12; ++i) {
    transaction change = file_.begin();
    change.update("a").write(expr(i));
    change.commit();
    const verification now = file_.verify();
    EXPECT_TRUE(now.findings.empty());
    most = std::max(most, now.live_bytes + now.freed_bytes + now.free_bytes);
  }
  EXPECT_LT(most, 6u * (4u << 20));
}

TEST_F(DenseArray, RegionsAreConvertedAndBroadcast) {
  transaction change = file_.begin();
  const writable_array made = change.create("a", {.dtype = dtype::int16, .shape = {6, 5}});
  const float row[] = {1.75f, -2.75f, 40000.f};
  made.write({{1, 2}, {4, 3}}, tensor::of(std::span<const float>(row), {3}));
  change.commit();
  const tensor stored = at("a").map();
  for (index_t i = 0; i < 6; ++i) {
    for (index_t j = 0; j < 5; ++j) {
      const bool inside = i >= 1 && i < 5 && j >= 2;
      const int wanted = !inside ? 0 : j == 2 ? 1 : j == 3 ? -2 : 32767;
      EXPECT_EQ(stored.at({i, j}), scalar(wanted)) << i << " " << j;
    }
  }
}

TEST_F(DenseArray, RegionsAreReadFromAnyBox) {
  const tensor values = counting({40, 30, 20}, dtype::int32);
  write("a", values);
  const array stored = at("a");
  for (const region& part : {region{{0, 0, 0}, {40, 30, 20}}, region{{3, 0, 0}, {5, 30, 20}},
                             region{{3, 4, 5}, {10, 6, 7}}, region{{39, 29, 19}, {1, 1, 1}},
                             region{{7, 10, 0}, {1, 5, 20}}, region{{2, 3, 4}, {0, 5, 5}}}) {
    tensor wanted = values;
    for (index_t axis = 0; axis < 3; ++axis)
      wanted = wanted.narrow(axis, part.start[axis], part.shape[axis]);
    EXPECT_TRUE(equal_bits(stored.read(part), wanted)) << to_string(part);
  }
  EXPECT_EQ(code_of([&] { stored.read({{0, 0, 15}, {1, 1, 6}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { stored.read({{0, 0}, {1, 1}}); }), errc::invalid_argument);
}

TEST_F(DenseArray, ExpressionsReadItWithoutACopy) {
  write("a", test::seeded({300, 200}, 4));
  write("b", test::seeded({300, 200}, 6));
  const snapshot now = file_.latest();
  const tensor sum = eval(expr(now.at("a")) + expr(now.at("b")));
  const tensor a = test::seeded({300, 200}, 4);
  const tensor b = test::seeded({300, 200}, 6);
  const auto wanted_a = a.elements<const float>();
  const auto wanted_b = b.elements<const float>();
  const auto got = sum.elements<const float>();
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], wanted_a[i] + wanted_b[i]);
}

// change.4
TEST_F(DenseArray, MappedForWritingBecomesReadOnlyAtCommit) {
  transaction change = file_.begin();
  const writable_array made = change.create("a", {.shape = {2000}});
  tensor mapped = made.map();
  EXPECT_TRUE(is_mapped_from(mapped.data(), path_, "rw-s"));
  mapped.set({1999}, 42);
  change.commit();
  EXPECT_FALSE(mapped.storage().writable());
  EXPECT_TRUE(is_mapped_from(mapped.data(), path_, "r--s"));
  EXPECT_EQ(mapped.at({1999}), scalar(42));
  EXPECT_EQ(code_of([&] { made.write(expr(1)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { made.map(); }), errc::invalid_argument);
  // The tensor pins its generation, like the tensor of a snapshot.
  for (int i = 0; i < 6; ++i) {
    transaction next = file_.begin();
    next.update("a").write(expr(i));
    next.commit();
  }
  EXPECT_EQ(mapped.at({1999}), scalar(42));
  EXPECT_EQ(mapped.at({0}), scalar(0));
  mapped.storage().check();
}

#if !defined(__SANITIZE_THREAD__)  // it does not know that a store after mprotect fails
sigjmp_buf store_refused;

// change.3: a thread stores until the pages become read-only; the checksums are right in any case.
TEST_F(DenseArray, StoresDuringCommitAreRefusedBeforeItChecksums) {
  struct sigaction leave {};
  struct sigaction before {};
  leave.sa_handler = [](int) { siglongjmp(store_refused, 1); };
  for (int round = 0; round < 6; ++round) {
    transaction change = file_.begin();
    if (round == 0) change.create("a", {.shape = {1 << 20}});
    const tensor made = change.update("a").map();
    auto* const floats = const_cast<volatile float*>(reinterpret_cast<const float*>(made.data()));
    std::atomic<bool> storing = false;
    ASSERT_EQ(::sigaction(SIGSEGV, &leave, &before), 0);
    std::thread other([&] {
      if (sigsetjmp(store_refused, 1) != 0) return;
      for (index_t i = 0;; i = (i + 997) % made.size()) {
        floats[i] = static_cast<float>(i + round);
        storing = true;
      }
    });
    while (!storing) std::this_thread::yield();
    change.commit();
    other.join();
    ASSERT_EQ(::sigaction(SIGSEGV, &before, nullptr), 0);
    EXPECT_EQ(findings_of(file_), "") << round;
  }
}
#endif

// change.4
TEST_F(DenseArray, AbortCutsTensorsOff) {
  write("kept", test::seeded({100}, 1));
  transaction change = file_.begin();
  tensor made = change.create("a", {.shape = {100'000}}).map();
  tensor changed = change.update("kept").map();
  made.set({5}, 3);
  changed.set({5}, 3);
  change.abort();
  for (tensor* values : {&made, &changed}) {
    EXPECT_TRUE(values->storage().failed());
    EXPECT_EQ(code_of([&] { values->storage().check(); }), errc::io);
    EXPECT_FALSE(is_mapped_from(values->data(), path_, "rw-s"));
  }
  EXPECT_FALSE(file_.latest().find("a"));
  EXPECT_TRUE(equal_bits(at("kept").map(), test::seeded({100}, 1)));
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseArray, LostBytesAreNotCommitted) {
  write("kept", test::seeded({100}, 1));
  const auto bytes = static_cast<off_t>(test::bytes_of_file(path_).size());
  transaction change = file_.begin();
  const tensor made = change.create("a", {.shape = {1 << 20}}).map();
  const auto elements = made.as<float, 1>();
  // Another process truncates the space that the transaction has reserved after the old
  // generation.
  ASSERT_EQ(::truncate(path_.c_str(), bytes), 0);
  elements(1 << 19) = 3;  // survives, and leaves a mark
  EXPECT_TRUE(made.storage().failed());
  EXPECT_EQ(code_of([&] { change.commit(); }), errc::io);
  EXPECT_TRUE(made.storage().failed());
  EXPECT_FALSE(file_.latest().find("a"));
  EXPECT_EQ(findings_of(file_), "");
  write("b", test::seeded({100}, 2));
  EXPECT_TRUE(equal_bits(at("b").read(), test::seeded({100}, 2)));
}

// The file is long enough again, so that only the mark shows the loss.
TEST_F(DenseArray, LostBytesAreNotCommittedThoughTheirSpaceIsBack) {
  transaction change = file_.begin();
  const tensor made = change.create("a", {.shape = {1 << 20}}).map();
  const auto elements = made.as<float, 1>();
  elements(1 << 19) = 2;
  const auto bytes = static_cast<off_t>(test::bytes_of_file(path_).size());
  ASSERT_EQ(::truncate(path_.c_str(), bytes - (3 << 20)), 0);
  elements(1 << 19) = 3;  // survives, and leaves a mark
  ASSERT_EQ(::truncate(path_.c_str(), bytes), 0);
  EXPECT_EQ(code_of([&] { change.commit(); }), errc::io);
  EXPECT_FALSE(file_.latest().find("a"));
  EXPECT_EQ(findings_of(file_), "");
}

// The system stores the elements, not this process, so no signal tells of the loss.
TEST_F(DenseArray, ReadIntoALostFileSaysWhichFileIsLost) {
  const std::size_t page = test::system_page_bytes();
  const auto count = static_cast<index_t>(16 * page);
  write("a", tensor::zeros({count}, dtype::uint8));
  const std::string lost = directory_ / "lost";
  const tensor into(create_file(lost, 16 * page), dtype::uint8, layout(dims{count}));
  ASSERT_EQ(::truncate(lost.c_str(), static_cast<off_t>(page)), 0);
  const std::string text = text_of([&] { at("a").read_into(into); });
  EXPECT_NE(text.find("[io]"), std::string::npos) << text;
  EXPECT_NE(text.find("file " + lost), std::string::npos) << text;
}

TEST_F(DenseArray, DamageIsFoundByVerifyAndByReading) {
  const tensor values = test::seeded({3, 1 << 18}, 2);  // three segments
  write("dem", values);
  std::uint64_t at_byte = 0;
  {
    const tensor mapped = at("dem").map();
    at_byte = *mapped.storage().file_offset() + (1u << 20) + 4711;
  }
  test::flip_byte(path_, at_byte);
  const auto findings = file_.verify().findings;
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].code, errc::corrupt);
  EXPECT_NE(findings[0].text.find("dem"), std::string::npos) << findings[0].text;
  EXPECT_NE(findings[0].text.find("segment 1"), std::string::npos) << findings[0].text;

  const array stored = at("dem");
  const std::string text = text_of([&] { stored.read(); });
  EXPECT_NE(text.find("[corrupt]"), std::string::npos) << text;
  EXPECT_NE(text.find("segment 1 of 'dem' in " + path_), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { stored.read({{1, 0}, {1, 1 << 18}}); }), errc::corrupt);
  EXPECT_TRUE(equal_bits(stored.read({{2, 0}, {1, 1 << 18}}), values.narrow(0, 2, 1)));
}

TEST_F(DenseArray, UpdatesRefuseDamagedArrays) {
  write("dem", test::seeded({3, 1 << 18}, 2));
  const std::uint64_t at_byte = *at("dem").map().storage().file_offset() + (2u << 20) + 4711;
  test::flip_byte(path_, at_byte);
  transaction change = file_.begin();
  const std::string text = text_of([&] { change.update("dem").map(); });
  EXPECT_NE(text.find("[corrupt]"), std::string::npos) << text;
  EXPECT_NE(text.find("segment 2 of 'dem' in " + path_), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(at_byte - 4711)), std::string::npos) << text;
  // The transaction is still active, and the array is still damaged. Writing it again repairs it.
  change.remove("dem");
  change.create("dem", {.dtype = dtype::float32, .shape = {3, 1 << 18}}).write(expr(1.0));
  change.commit();
  EXPECT_EQ(findings_of(file_), "");
}

TEST_F(DenseArray, UpdateKeepsWhatIsNotWritten) {
  const tensor values = counting({1000, 700}, dtype::float64);
  write("a", values);
  transaction change = file_.begin();
  change.update("a").write({{10, 10}, {5, 5}}, counting({5, 5}, dtype::float64));
  change.commit();
  const tensor stored = at("a").map();
  for (index_t i = 0; i < 1000; i += 7) {
    for (index_t j = 0; j < 700; j += 3) {
      const bool inside = i >= 10 && i < 15 && j >= 10 && j < 15;
      const double wanted = test::number_at(inside ? (i - 10) * 5 + (j - 10) : i * 700 + j);
      ASSERT_EQ(stored.at({i, j}), scalar(wanted)) << i << " " << j;
    }
  }
  EXPECT_EQ(findings_of(file_), "");
}

}  // namespace
}  // namespace shale
