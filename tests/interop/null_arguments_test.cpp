// Null pointers, empty functions, empty views and empty names as arguments. Each is refused, or has
// the meaning that its header gives; none is read.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shale/shale.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::code_of;

constexpr memory_pool* default_pool = nullptr;

class NullArgument : public testing::Test {
 protected:
  template <class Call>
  void expect_refused(const char* door, Call&& call) {
    const test::outcome got = test::outcome_of(call);
    EXPECT_EQ(got.code.value_or(errc{}), errc::invalid_argument) << door << ": " << got.text;
  }

  test::scratch_directory directory_;
  const tensor values_ = tensor::of<float>({1, 2, 3, 4});
};

TEST_F(NullArgument, ThatWouldBeCalledIsRefused) {
  const tensor values = values_.clone();
  executor one({.threads = 1});
  executor three({.threads = 3});
  for (executor* on : {&executor::shared(), &one, &three}) {
    const executor::scope within(*on);
    expect_refused("apply", [&] { shale::apply(std::function<void(float&)>(), values); });
    expect_refused("apply", [&] { shale::apply(static_cast<void (*)(float&)>(nullptr), values); });
    expect_refused("apply_into",
                   [&] { apply_into(values, std::function<float(float)>(), values_); });
    expect_refused("apply_into",
                   [&] { apply_into(values, static_cast<float (*)(float)>(nullptr), values_); });
    expect_refused("for_each_segment", [&] {
      for_each_segment<float>(std::function<void(std::span<float>)>(), values);
    });
    expect_refused("for_each_lane",
                   [&] { for_each_lane<float>(0, std::function<void(lane<float>)>(), values); });
    const auto add = [](float& to, float value) { to += value; };
    expect_refused("reduce, fold",
                   [&] { reduce(values, 0.0F, std::function<void(float&, float)>(), add); });
    expect_refused("reduce, combine", [&] {
      reduce(values, 0.0F, add, static_cast<void (*)(float&, float)>(nullptr));
    });
  }
  // It is refused even if it would never be called.
  const tensor none;
  expect_refused("apply", [&] { shale::apply(std::function<void(float&)>(), none); });

  static char bytes[8];
  expect_refused("adopt", [&] { storage::adopt(bytes, 8, std::function<void(void*)>()); });
  expect_refused("adopt", [&] { storage::adopt(bytes, 8, static_cast<void (*)(void*)>(nullptr)); });
  const unfinished_file file(directory_ / "x", existing_file::refuse);
  expect_refused("create", [&] { file.create(std::function<void()>()); });
  expect_refused("create", [&] { file.create(static_cast<void (*)()>(nullptr)); });
  expect_refused("naming_target", [&] { file.naming_target(std::function<void()>()); });
  expect_refused("with_context", [&] { with_context("frame", std::function<void()>()); });
}

TEST_F(NullArgument, ForBytesIsRefused) {
  expect_refused("adopt", [&] { storage::adopt(nullptr, 8, nullptr); });
  expect_refused("adopt", [&] { storage::adopt(nullptr, 8, [](void*) {}); });
  expect_refused("adopt_owner", [&] { storage::adopt_owner(nullptr, 8, nullptr); });
  expect_refused("borrow", [&] { tensor::borrow(static_cast<float*>(nullptr), {2}); });
  expect_refused("of", [&] { tensor::of(std::span<const float>(), {2}); });
  expect_refused("expr", [&] { expr(std::shared_ptr<const tile_source>()); });
  // A dense array has no tiles, and the null pointer that it returns is not a valid operand.
  container file = container::create(directory_ / "c.shale");
  transaction change = file.begin();
  const writable_array dense = change.create("a", {.shape = {4}});
  expect_refused("expr", [&] { expr(std::shared_ptr<const tile_source>(dense.tiles())); });
  expect_refused("npy header", [&] {
    try {
      parse_npy_header({});
    } catch (const error& failure) {
      if (failure.code() == errc::corrupt) throw error(errc::invalid_argument, "as it should");
    }
  });
}

TEST_F(NullArgument, ForNoBytesIsNone) {
  EXPECT_TRUE(storage::adopt(nullptr, 0, nullptr).empty());
  bool called = false;
  storage::adopt(nullptr, 0, [&](void*) { called = true; });
  EXPECT_TRUE(called);
  EXPECT_EQ(tensor::borrow(static_cast<float*>(nullptr), {0, 3}).size(), 0);
  EXPECT_EQ(tensor::of(std::span<const float>(), {3, 0}).size(), 0);
  EXPECT_EQ(tensor::of<float>({}).size(), 0);
  EXPECT_TRUE(eval_all({}).empty());
  EXPECT_EQ(code_of([] { concat({}, 0); }), errc::invalid_argument);
  EXPECT_TRUE(equal_bits(values_.index(std::span<const index_entry>()), values_));
  EXPECT_EQ(tensor::of<float>({1}).view(dims{}).at(std::span<const index_t>()), scalar(1));
  write_npz(directory_ / "none.npz", {});
  EXPECT_TRUE(npz_file::open(directory_ / "none.npz").names().empty());
  EXPECT_EQ(dims(std::span<const index_t>()), dims());
  EXPECT_EQ(layout().position({}), 0);
}

TEST_F(NullArgument, StandsForTheDefault) {
  EXPECT_EQ(storage::allocate(8, default_pool).size_bytes(), 8u);
  EXPECT_EQ(tensor::empty({2}, dtype::int8, default_pool).size(), 2);
  EXPECT_EQ(tensor::zeros({2}, dtype::int8, default_pool).size(), 2);
  EXPECT_EQ(values_.clone(default_pool).size(), 4);
  EXPECT_EQ(values_.reshape({2, 2}, default_pool).size(), 4);
  EXPECT_EQ(&executor({.pool = nullptr, .progress = nullptr}).pool(), &memory_pool::default_pool());
  container file = container::create(directory_ / "c.shale");
  transaction change = file.begin();
  const writable_array made = change.create("a", {.shape = {4}});
  made.write(expr(values_) * 2);
  made.write(region::all({4}), values_);
  change.commit();
  EXPECT_EQ(file.latest().at("a").read().size(), 4);
  EXPECT_TRUE(file.verify().findings.empty());
}

// Names and texts without characters, and with a null pointer.
TEST_F(NullArgument, ForANameIsRefused) {
  container file = container::create(directory_ / "c.shale");
  transaction change = file.begin();
  change.create("a", {.shape = {4}});
  const std::string_view none;
  for (const std::string_view name : {none, std::string_view("")}) {
    expect_refused("create", [&] { change.create(name, {.shape = {1}}); });
    expect_refused("rename", [&] { change.rename("a", name); });
    EXPECT_EQ(code_of([&] { change.rename(name, "b"); }), errc::not_found);
    EXPECT_EQ(code_of([&] { change.update(name); }), errc::not_found);
    EXPECT_EQ(code_of([&] { change.remove(name); }), errc::not_found);
    EXPECT_EQ(code_of([&] { change.set_attribute(name, "k", "v"); }), errc::not_found);
    EXPECT_EQ(code_of([&] { change.remove_attribute(name, "k"); }), errc::not_found);
    EXPECT_EQ(code_of([&] { change.remove_attribute("a", name); }), errc::not_found);
    EXPECT_FALSE(change.find(name).has_value());
    change.set_attribute("a", name, name);  // any bytes are allowed, so also none
    change.remove_attribute("a", name);
    EXPECT_EQ(parse_dtype(name), std::nullopt);
  }
  change.commit();
  const snapshot latest = file.latest();
  EXPECT_FALSE(latest.find(none).has_value());
  EXPECT_EQ(code_of([&] { latest.at(none); }), errc::not_found);
  EXPECT_EQ(latest.names(none, none).size(), 1u);
  EXPECT_TRUE(latest.names(none, none, 0).empty());
  EXPECT_EQ(error(errc::io, none).message(), "");
  list_shared(none);

  write_npz(directory_ / "x.npz", {});
  const npz_file archive = npz_file::open(directory_ / "x.npz");
  EXPECT_FALSE(archive.contains(none));
  EXPECT_EQ(code_of([&] { archive.read(none); }), errc::not_found);
  EXPECT_EQ(code_of([&] { archive.inspect(none); }), errc::not_found);
}

TEST_F(NullArgument, ForAPathIsRefused) {
  const std::string none;
  const std::pair<std::string, tensor> member{"a", values_};
  const auto refused = [](auto call) {
    const errc code = code_of(call);
    EXPECT_TRUE(code == errc::not_found || code == errc::invalid_argument) << name(code);
  };
  refused([&] { container::open(none); });
  refused([&] { container::create(none); });
  refused([&] { container::open_or_create(none); });
  refused([&] { map_file(none); });
  refused([&] { create_file(none, 8); });
  refused([&] { create_file(none, 8, {.existing = existing_file::keep}); });
  refused([&] { create_file(none, 8, {.existing = existing_file::replace}); });
  refused([&] { mapping_support_at(none); });
  refused([&] { create_shared(none, 8); });
  refused([&] { open_shared(none); });
  refused([&] { remove_shared(none); });
  refused([&] { read_npy(none); });
  refused([&] { inspect_npy(none); });
  refused([&] { write_npy(none, values_); });
  refused([&] { npy_writer(none, dtype::int8, {1}); });
  refused([&] { npz_file::open(none); });
  refused([&] { write_npz(none, std::span(&member, 1)); });
  refused([&] { read_raw(none, dtype::int8); });
  refused([&] { write_raw(none, values_); });
  refused([&] { unfinished_file(none, existing_file::replace); });
  EXPECT_FALSE(container::open_if_exists(none).has_value());
  container file = container::create(directory_ / "c.shale");
  transaction change = file.begin();
  refused([&] { change.replace_by(none); });
}

}  // namespace
}  // namespace shale
