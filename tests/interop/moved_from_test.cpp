// Objects that were moved from: every function of every movable public class works on such an
// object, or throws an error of the library. None reads through a null pointer, and none reaches
// bytes that belong to the object that was moved to. NOLINTBEGIN(bugprone-use-after-move)
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shale/shale.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

enum class answer { works, throws };

// Moves from `object`, calls each function on the rest, moves the object back by assignment,
// assigns it to itself, and calls `check` to compare it with its former state.
template <class Object>
class left_over {
 public:
  using call = std::function<void(Object&)>;

  left_over(std::string name, Object object) : name_(std::move(name)), kept_(std::move(object)) {}

  left_over& works(const std::string& function, call body) {
    calls_.push_back({function, std::move(body), answer::works});
    return *this;
  }
  left_over& throws(const std::string& function, call body) {
    calls_.push_back({function, std::move(body), answer::throws});
    return *this;
  }

  // The object that was moved to is intact, whatever was done to the other.
  void then(const call& check) {
    {
      Object taken(std::move(kept_));
      ask("after construction");
      check(taken);
      kept_ = std::move(taken);
    }
    check(kept_);
    {
      Object& itself = kept_;
      kept_ = std::move(itself);
    }
    check(kept_);
    // An object that was moved from may be moved again.
    Object taken(std::move(kept_));
    Object nothing(std::move(kept_));
    kept_ = std::move(nothing);
    ask("after a chain of moves");
    check(taken);
  }

 private:
  struct row {
    std::string function;
    call body;
    answer expected;
  };

  void ask(const char* when) {
    for (const row& called : calls_) {
      SCOPED_TRACE(name_ + "::" + called.function + " " + when);
      try {
        called.body(kept_);
        EXPECT_EQ(called.expected, answer::works);
      } catch (const error& failure) {
        EXPECT_EQ(called.expected, answer::throws) << failure.what();
        EXPECT_EQ(failure.code(), errc::invalid_argument) << failure.what();
        EXPECT_NE(std::string(failure.what()).find("moved from"), std::string::npos)
            << failure.what();
      }
    }
  }

  const std::string name_;
  Object kept_;
  std::vector<row> calls_;
};

class MovedFrom : public testing::Test {
 protected:
  container made() {
    container file = container::create(directory_ / "c.shale");
    transaction change = file.begin();
    change.create("dense", {.dtype = dtype::float32, .shape = {6}}).write(expr(values_));
    change.create("chunked", {.dtype = dtype::float32, .shape = {6}, .kind = array_kind::chunked})
        .write(expr(values_));
    change.commit();
    return file;
  }

  test::scratch_directory directory_;
  const tensor values_ = tensor::of<float>({1, 2, 3, 4, 5, 6});
};

TEST_F(MovedFrom, Container) {
  left_over<container>("container", made())
      .throws("path", [](container& file) { static_cast<void>(file.path().size()); })
      .throws("uuid", [](container& file) { file.uuid(); })
      .throws("latest", [](container& file) { file.latest(); })
      .throws("begin", [](container& file) { file.begin(no_wait); })
      .throws("wait_newer", [](container& file) { file.wait_newer(0, no_wait); })
      .throws("verify", [](container& file) { file.verify(); })
      .works("close", [](container& file) { file.close(); })
      .works("copy",
             [](container& file) {
               container copy(file);
               copy = file;
             })
      .then([](container& file) { EXPECT_EQ(file.latest().names().size(), 2u); });
}

TEST_F(MovedFrom, Snapshot) {
  container file = made();
  const auto fill = [](left_over<snapshot>& object) -> left_over<snapshot>& {
    return object.throws("generation", [](snapshot& seen) { static_cast<void>(seen.generation()); })
        .throws("find", [](snapshot& seen) { seen.find("dense"); })
        .throws("at", [](snapshot& seen) { seen.at("dense"); })
        .throws("names", [](snapshot& seen) { seen.names(); })
        .throws("children", [](snapshot& seen) { seen.children(); })
        .throws("attributes", [](snapshot& seen) { seen.attributes(); })
        .throws("typed_attribute", [](snapshot& seen) { seen.typed_attribute("k"); })
        .throws("attribute_as", [](snapshot& seen) { seen.attribute_as<double>("k"); })
        .throws("levels_with_attributes", [](snapshot& seen) { seen.levels_with_attributes(); })
        .works("copy", [](snapshot& seen) {
          snapshot copy(seen);
          copy = seen;
        });
  };
  left_over<snapshot> latest("snapshot", file.latest());
  fill(latest).then([](snapshot& seen) { EXPECT_EQ(seen.names().size(), 2u); });
  // An object that never belonged to a container behaves in the same way.
  left_over<snapshot> none("snapshot()", snapshot());
  fill(none).then([](snapshot&) {});
}

TEST_F(MovedFrom, Transaction) {
  container file = made();
  left_over<transaction>("transaction", file.begin())
      .throws("generation", [](transaction& change) { static_cast<void>(change.generation()); })
      .throws("create", [](transaction& change) { change.create("x", {.shape = {1}}); })
      .throws("create_copy",
              [&](transaction& change) { change.create_copy("x", file.latest().at("dense")); })
      .throws("create_or_replace",
              [](transaction& change) { change.create_or_replace("x", {.shape = {1}}); })
      .throws("update", [](transaction& change) { change.update("dense"); })
      .throws("find", [](transaction& change) { change.find("dense"); })
      .throws("names", [](transaction& change) { change.names(); })
      .throws("children", [](transaction& change) { change.children(); })
      .throws("remove", [](transaction& change) { change.remove("dense"); })
      .throws("rename", [](transaction& change) { change.rename("dense", "x"); })
      .throws("resize", [](transaction& change) { change.resize("dense", {1}); })
      .throws("append", [](transaction& change) { change.append("dense", expr(1)); })
      .throws("set_attribute", [](transaction& change) { change.set_attribute("dense", "k", "v"); })
      .throws("remove_attribute",
              [](transaction& change) { change.remove_attribute("dense", "k"); })
      .throws("set_level_attribute",
              [](transaction& change) { change.set_level_attribute("", "k", "v"); })
      .throws("remove_level_attribute",
              [](transaction& change) { change.remove_level_attribute("", "k"); })
      .throws("level_attributes", [](transaction& change) { change.level_attributes(); })
      .throws("commit", [](transaction& change) { change.commit(); })
      .throws("replace_by", [](transaction& change) { change.replace_by("other.shale"); })
      .works("abort", [](transaction& change) { change.abort(); })
      .then([](transaction& change) { EXPECT_TRUE(change.find("dense").has_value()); });
  // The lock was released with the transaction.
  file.begin(no_wait).abort();
}

TEST_F(MovedFrom, Array) {
  container file = made();
  for (const char* name : {"dense", "chunked"})
    left_over<array>("array", file.latest().at(name))
        .throws("name", [](array& stored) { static_cast<void>(stored.name().size()); })
        .throws("dtype", [](array& stored) { static_cast<void>(stored.dtype()); })
        .throws("shape", [](array& stored) { static_cast<void>(stored.shape().size()); })
        .throws("rank", [](array& stored) { static_cast<void>(stored.rank()); })
        .throws("size", [](array& stored) { static_cast<void>(stored.size()); })
        .throws("kind", [](array& stored) { static_cast<void>(stored.kind()); })
        .throws("size_bytes", [](array& stored) { static_cast<void>(stored.size_bytes()); })
        .throws("stored_bytes", [](array& stored) { static_cast<void>(stored.stored_bytes()); })
        .throws("chunk_shape",
                [](array& stored) { static_cast<void>(stored.chunk_shape().size()); })
        .throws("codec", [](array& stored) { stored.codec(); })
        .throws("fill_value", [](array& stored) { stored.fill_value(); })
        .throws("modified", [](array& stored) { static_cast<void>(stored.modified()); })
        .throws("attributes", [](array& stored) { stored.attributes(); })
        .throws("typed_attribute", [](array& stored) { stored.typed_attribute("k"); })
        .throws("attribute_as", [](array& stored) { stored.attribute_as<double>("k"); })
        .throws("as_tensor", [](array& stored) { stored.map(); })
        .throws("read", [](array& stored) { stored.read(); })
        .throws("read of a region",
                [](array& stored) {
                  stored.read({{0}, {1}});
                })
        .throws("operator expr", [](array& stored) { static_cast<void>(expr(stored)); })
        .throws("tiles", [](array& stored) { stored.tiles(); })
        .works("copy",
               [](array& stored) {
                 array copy(stored);
                 copy = stored;
               })
        .then([this](array& stored) { EXPECT_TRUE(equal_bits(stored.read(), values_)); });
}

TEST_F(MovedFrom, WritableArray) {
  container file = made();
  transaction change = file.begin();
  for (const char* name : {"dense", "chunked"})
    left_over<writable_array>("writable_array", change.update(name))
        .throws("name", [](writable_array& stored) { static_cast<void>(stored.name().size()); })
        .throws("dtype", [](writable_array& stored) { static_cast<void>(stored.dtype()); })
        .throws("shape", [](writable_array& stored) { static_cast<void>(stored.shape().size()); })
        .throws("rank", [](writable_array& stored) { static_cast<void>(stored.rank()); })
        .throws("size", [](writable_array& stored) { static_cast<void>(stored.size()); })
        .throws("kind", [](writable_array& stored) { static_cast<void>(stored.kind()); })
        .throws("chunk_shape",
                [](writable_array& stored) { static_cast<void>(stored.chunk_shape().size()); })
        .throws("as_tensor", [](writable_array& stored) { stored.map(); })
        .throws("copy_from",
                [&](writable_array& stored) { stored.copy_from(file.latest().at("dense")); })
        .throws("write",
                [](writable_array& stored) {
                  stored.write({{0}, {1}}, tensor::of<float>({1}));
                })
        .throws("write of an expression", [](writable_array& stored) { stored.write(expr(1)); })
        .throws("tiles", [](writable_array& stored) { stored.tiles(); })
        .works("copy",
               [](writable_array& stored) {
                 writable_array copy(stored);
                 copy = stored;
               })
        .then([this](writable_array& stored) { stored.write(expr(values_)); });
  change.commit();
}

TEST_F(MovedFrom, NpyWriter) {
  left_over<npy_writer>("npy_writer", npy_writer(directory_ / "x.npy", dtype::float32, {6}))
      .works("elements", [](npy_writer& writer) { EXPECT_EQ(writer.elements().size(), 0); })
      .throws("finish", [](npy_writer& writer) { writer.finish(); })
      .then([](npy_writer& writer) { EXPECT_EQ(writer.elements().size(), 6); });
}

TEST_F(MovedFrom, NpzWriter) {
  left_over<npz_writer>("npz_writer", npz_writer(directory_ / "x.npz"))
      .throws("add", [&](npz_writer& writer) { writer.add("a", values_); })
      .throws("finish", [](npz_writer& writer) { writer.finish(); })
      .then([&, added = 0](npz_writer& writer) mutable {
        writer.add("member " + std::to_string(++added), values_);
      });
}

TEST_F(MovedFrom, NpzFile) {
  const std::pair<std::string, tensor> member{"a", values_};
  write_npz(directory_ / "x.npz", std::span(&member, 1));
  left_over<npz_file>("npz_file", npz_file::open(directory_ / "x.npz"))
      .throws("names", [](npz_file& archive) { static_cast<void>(archive.names().size()); })
      .throws("contains", [](npz_file& archive) { archive.contains("a"); })
      .throws("inspect", [](npz_file& archive) { archive.inspect("a"); })
      .throws("read", [](npz_file& archive) { archive.read("a"); })
      .works("copy",
             [](npz_file& archive) {
               npz_file copy(archive);
               copy = archive;
             })
      .then([](npz_file& archive) { EXPECT_TRUE(archive.contains("a")); });
}

TEST_F(MovedFrom, T7Writer) {
  left_over<t7_writer>("t7_writer", t7_writer(directory_ / "x.t7"))
      .throws("add", [&](t7_writer& writer) { writer.add("a", values_); })
      .throws("finish", [](t7_writer& writer) { writer.finish(); })
      .then([&, added = 0](t7_writer& writer) mutable {
        writer.add("tensor " + std::to_string(++added), values_);
      });
}

TEST_F(MovedFrom, T7File) {
  write_t7(directory_ / "x.t7", values_);
  left_over<t7_file>("t7_file", t7_file::open(directory_ / "x.t7"))
      .throws("encoding", [](t7_file& file) { static_cast<void>(file.encoding()); })
      .throws("root", [](t7_file& file) { file.root(); })
      .throws("pairs", [](t7_file& file) { file.pairs({}); })
      .throws("names", [](t7_file& file) { static_cast<void>(file.names().size()); })
      .throws("other_values", [](t7_file& file) { static_cast<void>(file.other_values()); })
      .throws("contains", [](t7_file& file) { file.contains("a"); })
      .throws("inspect", [](t7_file& file) { file.inspect(""); })
      .throws("inspect of a value", [](t7_file& file) { file.inspect(t7_value{}); })
      .throws("read", [](t7_file& file) { file.read(""); })
      .throws("read of a value", [](t7_file& file) { file.read(t7_value{}); })
      .works("copy",
             [](t7_file& file) {
               t7_file copy(file);
               copy = file;
             })
      .then([](t7_file& file) { EXPECT_TRUE(file.contains("")); });
}

TEST_F(MovedFrom, UnfinishedFile) {
  left_over<unfinished_file>("unfinished_file",
                             unfinished_file(directory_ / "x.png", existing_file::refuse))
      .works("target", [](unfinished_file& file) { EXPECT_EQ(file.target(), ""); })
      .works("path", [](unfinished_file& file) { EXPECT_EQ(file.path(), ""); })
      .works("mode", [](unfinished_file& file) { EXPECT_EQ(file.mode(), 0666u); })
      .works("naming_target",
             [](unfinished_file& file) { EXPECT_EQ(file.naming_target([] { return 7; }), 7); })
      .throws("take_over_owner", [](unfinished_file& file) { file.take_over_owner(); })
      .throws("create", [](unfinished_file& file) { file.create([] { ADD_FAILURE(); }); })
      .throws("publish", [](unfinished_file& file) { file.publish(); })
      .throws("publish_durable", [](unfinished_file& file) { file.publish_durable(); })
      .then([](unfinished_file& file) {
        EXPECT_NE(file.path(), "");
        std::ofstream(file.path()) << "new";
      });
}

TEST_F(MovedFrom, Expr) {
  const expr other(values_);
  const std::vector<std::pair<const char*, expr (*)(const expr&)>> unary{
      {"-", [](const expr& a) { return -a; }},
      {"~", [](const expr& a) { return ~a; }},
      {"abs", abs},
      {"isnan", isnan},
      {"isfinite", isfinite},
      {"logical_not", logical_not},
      {"cast", [](const expr& a) { return astype(a, dtype::int8); }},
      {"tile", [](const expr& a) { return tile(a, {2}); }},
      {"repeat", [](const expr& a) { return repeat(a, 2, 0); }},
      {"concat", [](const expr& a) { return concat(std::span(&a, 1), 0); }},
      {"sum", [](const expr& a) { return sum(a); }},
      {"mean", [](const expr& a) { return mean(a); }},
      {"var", [](const expr& a) { return var(a); }},
      {"stddev", [](const expr& a) { return stddev(a); }},
      {"min", [](const expr& a) { return min(a); }},
      {"any", [](const expr& a) { return any(a); }},
      {"count_nonzero", [](const expr& a) { return count_nonzero(a); }},
  };
  const std::vector<std::pair<const char*, expr (*)(const expr&, const expr&)>> binary{
      {"+", [](const expr& a, const expr& b) { return a + b; }},
      {"==", [](const expr& a, const expr& b) { return a == b; }},
      {"&", [](const expr& a, const expr& b) { return a & b; }},
      {"pow", pow},
      {"matmul", [](const expr& a, const expr& b) { return matmul(a, b); }},
      {"clamp", [](const expr& a, const expr& b) { return clip(b, a, b); }},
      {"where", [](const expr& a, const expr& b) { return where(b == b, a, b); }},
  };
  left_over<expr> lazy("expr", expr(values_) + 1);
  lazy.throws("dtype", [](expr& a) { static_cast<void>(a.dtype()); })
      .throws("shape", [](expr& a) { static_cast<void>(a.shape().size()); })
      .throws("rank", [](expr& a) { static_cast<void>(a.rank()); })
      .throws("size", [](expr& a) { static_cast<void>(a.size()); })
      .throws("narrow", [](expr& a) { a.narrow(0, 0, 1); })
      .throws("select", [](expr& a) { a.select(0, 0); })
      .throws("sliced", [](expr& a) { a.sliced(0, {}); })
      .throws("index", [](expr& a) { a.index({0}); })
      .throws("transpose", [](expr& a) { a.swapaxes(0, 0); })
      .throws("permute_dims", [](expr& a) { a.permute_dims({0}); })
      .throws("unsqueeze", [](expr& a) { a.expand_dims(0); })
      .throws("squeeze", [](expr& a) { a.squeeze(); })
      .throws("squeeze of an axis", [](expr& a) { a.squeeze(0); })
      .throws("expand",
              [](expr& a) {
                a.broadcast_to({2, 6});
              })
      .throws("flip", [](expr& a) { a.flip({0}); })
      .throws("reshape", [](expr& a) { a.reshape({6}); })
      .throws("eval", [](expr& a) { eval(a); })
      .throws("eval_all", [](expr& a) { eval_all(std::span(&a, 1)); })
      .throws("eval_into", [](expr& a) { eval_into(tensor::zeros({6}, dtype::float32), a); })
      .throws("explain", [](expr& a) { explain(a); })
      .works("copy", [](expr& a) {
        expr copy(a);
        copy = a;
      });
  for (const auto& [name, function] : unary)
    lazy.throws(name, [function = function](expr& a) { function(a); });
  for (const auto& [name, function] : binary) {
    lazy.throws(name, [&other, function = function](expr& a) { function(a, other); });
    lazy.throws(name, [&other, function = function](expr& a) { function(other, a); });
  }
  lazy.then([](expr& a) { EXPECT_EQ(eval(sum(a)).item(), scalar(27)); });
}

TEST_F(MovedFrom, ExprIntoTilesAndArrays) {
  container file = made();
  transaction change = file.begin();
  writable_array chunked = change.update("chunked");
  expr gone(values_);
  const expr taken(std::move(gone));
  EXPECT_EQ(test::code_of([&] { chunked.write(gone); }), errc::invalid_argument);
  EXPECT_EQ(test::code_of([&] { eval_into(*chunked.tiles(), gone); }), errc::invalid_argument);
  chunked.write(taken);
  change.commit();
}

// Only the handle that was moved to reaches the bytes.
TEST_F(MovedFrom, Storage) {
  const std::string path = directory_ / "bytes";
  for (const storage& bytes :
       {storage::allocate(100, nullptr, 200),
        create_file(path, 100, {.reserve_bytes = 10000}).as_read_only(), map_file(path)})
    left_over<storage>("storage", storage(bytes))
        .works("data", [](storage& held) { EXPECT_EQ(held.data(), nullptr); })
        .works("size_bytes", [](storage& held) { EXPECT_EQ(held.size_bytes(), 0u); })
        .works("empty", [](storage& held) { EXPECT_TRUE(held.empty()); })
        .works("operator bool", [](storage& held) { EXPECT_FALSE(held); })
        .works("kind", [](storage& held) { EXPECT_EQ(held.kind(), storage_kind::heap); })
        .works("access", [](storage& held) { EXPECT_EQ(held.access(), access::read_write); })
        .works("use_count", [](storage& held) { EXPECT_EQ(held.use_count(), 0); })
        .works("shares_owner_with",
               [](storage& held) { EXPECT_FALSE(held.shares_owner_with(held)); })
        .works("owner_offset", [](storage& held) { EXPECT_EQ(held.owner_offset(), 0u); })
        .works("version",
               [](storage& held) {
                 held.bump_version();
                 EXPECT_EQ(held.version(), 0u);
               })
        .works("grow to nothing", [](storage& held) { held.grow(0); })
        .works("grow",
               [](storage& held) {
                 EXPECT_EQ(test::code_of([&] { held.grow(10); }), errc::invalid_argument);
               })
        .works("slice",
               [](storage& held) {
                 EXPECT_EQ(held.slice(0, 0).data(), nullptr);
                 EXPECT_EQ(test::code_of([&] { held.slice(0, 1); }), errc::invalid_argument);
               })
        .works("as_read_only",
               [](storage& held) { EXPECT_EQ(held.as_read_only().data(), nullptr); })
        .works("capacity_bytes", [](storage& held) { EXPECT_EQ(held.capacity_bytes(), 0u); })
        .works("path", [](storage& held) { EXPECT_EQ(held.path(), ""); })
        .works("file_offset", [](storage& held) { EXPECT_FALSE(held.file_offset().has_value()); })
        .works("paging",
               [](storage& held) {
                 const byte_range all{0, 100};
                 held.advise(access_pattern::random, all);
                 held.prefetch(all);
                 held.populate(all);
                 held.evict(all, eviction::system);
                 held.start_writeback(all);
                 held.finish_writeback(all);
                 held.flush();
                 held.compare_checksums();
                 EXPECT_EQ(held.resident_bytes(all), 0u);
                 EXPECT_FALSE(held.has_checksums());
                 EXPECT_FALSE(held.failed());
                 held.check();
               })
        .then([](storage& held) {
          EXPECT_EQ(held.size_bytes(), 100u);
          EXPECT_NE(held.data(), nullptr);
          EXPECT_EQ(held.owner_offset(), 0u);
        });
}

TEST_F(MovedFrom, Tensor) {
  left_over<tensor>("tensor", values_.clone().view({2, 3}))
      .works("facts",
             [](tensor& values) {
               EXPECT_EQ(values.dtype(), dtype::float32);
               EXPECT_EQ(values.shape(), dims{0});
               EXPECT_EQ(values.strides(), dims{1});
               EXPECT_EQ(values.offset(), 0);
               EXPECT_EQ(values.size(), 0);
               EXPECT_EQ(values.size_bytes(), 0u);
               EXPECT_TRUE(values.is_contiguous());
               EXPECT_EQ(values.data(), nullptr);
               EXPECT_FALSE(values.storage());
               EXPECT_TRUE(values.is_set_to(tensor()));
             })
      .works("access",
             [](tensor& values) {
               EXPECT_TRUE(values.elements<float>().empty());
               EXPECT_EQ((values.as<float, 1>().shape(0)), 0);
               EXPECT_EQ(test::code_of([&] { values.as<float, 2>(); }), errc::invalid_argument);
               EXPECT_EQ(test::code_of([&] { values.item(); }), errc::invalid_argument);
               EXPECT_EQ(test::code_of([&] { values.at({0}); }), errc::invalid_argument);
               EXPECT_EQ(test::code_of([&] { values.set({0}, 1); }), errc::invalid_argument);
             })
      .works("views",
             [](tensor& values) {
               EXPECT_EQ(values.narrow(0, 0, 0).size(), 0);
               EXPECT_EQ(test::code_of([&] { values.select(0, 0); }), errc::invalid_argument);
               EXPECT_EQ(values.sliced(0, {.step = -1}).size(), 0);
               EXPECT_EQ(values.index({newaxis, ellipsis}).rank(), 2);
               EXPECT_EQ(values.swapaxes(0, 0).size(), 0);
               EXPECT_EQ(values.permute_dims({0}).size(), 0);
               EXPECT_EQ(values.moveaxis(0, 0).size(), 0);
               EXPECT_EQ(values.squeeze().size(), 0);
               EXPECT_EQ(values.expand_dims(0).size(), 0);
               EXPECT_EQ(values.broadcast_to({3, 0}).size(), 0);
               EXPECT_EQ(test::code_of([&] { values.unfold(0, 1, 1); }), errc::invalid_argument);
               EXPECT_EQ(values.flip().size(), 0);
               EXPECT_EQ(values.view({0, 5}).size(), 0);
               EXPECT_EQ(test::code_of([&] { values.as_strided({1}, {1}, 0); }),
                         errc::invalid_argument);
               EXPECT_EQ(values.view_as(dtype::int8).size(), 0);
               EXPECT_EQ(values.as_read_only().size(), 0);
             })
      .works("copies",
             [](tensor& values) {
               EXPECT_EQ(values.clone().size(), 0);
               EXPECT_EQ(values.contiguous().size(), 0);
               EXPECT_EQ(values.reshape({0}).size(), 0);
               EXPECT_EQ(values.split(1).size(), 1u);
               EXPECT_EQ(values.chunk(2).size(), 1u);
               EXPECT_EQ(values.unstack().size(), 0u);
               EXPECT_TRUE(equal_bits(values, values));
               EXPECT_NE(to_string(values), "");
               tensor copy(values);
               copy = values;
             })
      .works("resize",
             [](tensor& values) {
               values.resize({5});
               EXPECT_EQ(values.size(), 5);
               values.resize({0});
             })
      .works("the engine",
             [this](tensor& values) {
               EXPECT_EQ(eval(sum(expr(values))).item(), scalar(0.0F));
               apply([](float&) { ADD_FAILURE(); }, values);
               write_npy(directory_ / "none.npy", values);
               EXPECT_EQ(dot(values, values).item(), scalar(0.0F));
             })
      .then([](tensor& values) {
        EXPECT_EQ(values.shape(), (dims{2, 3}));
        EXPECT_EQ(values.at({1, 2}), scalar(6));
      });
}

// A view that was moved from keeps its storage and is still a view.
TEST_F(MovedFrom, View) {
  std::optional<view<float, 1>> values;
  {
    tensor bytes = values_.clone();
    values = bytes.as<float, 1>();
  }
  {
    const view<float, 1> taken(std::move(*values));
    EXPECT_EQ(taken(5), 6);
  }
  EXPECT_EQ(values->shape(0), 6);
  EXPECT_EQ((*values)(5), 6);
  view<const float, 1> reading(*values);
  reading = std::move(*values);
  EXPECT_EQ((*values)(0), reading(0));
}

TEST_F(MovedFrom, Reservation) {
  memory_pool pool({.limit_bytes = 10 << 20});
  left_over<memory_pool::reservation>("memory_pool::reservation", pool.reserve(1 << 20))
      .works("bytes", [](memory_pool::reservation& held) { EXPECT_EQ(held.bytes(), 0u); })
      .then([](memory_pool::reservation& held) { EXPECT_EQ(held.bytes(), std::size_t{1} << 20); });
  EXPECT_EQ(pool.statistics().reserved_bytes, 0u);
}

TEST_F(MovedFrom, UniqueArray) {
  memory_pool pool;
  left_over<memory_pool::unique_array<int>>("memory_pool::unique_array",
                                            pool.make_unique<int[]>(100))
      .works("get", [](auto& object) { EXPECT_EQ(object.get(), nullptr); })
      .works("reset", [](auto& object) { object.reset(); })
      .then([](auto& object) { EXPECT_EQ(object[99], 0); });
  EXPECT_TRUE(pool.all_clear());
}

TEST_F(MovedFrom, Error) {
  left_over<error>("error", error(errc::busy, "told", {"where"}))
      .works("code", [](error& failure) { EXPECT_EQ(failure.code(), errc::busy); })
      .works("os_errno", [](error& failure) { EXPECT_EQ(failure.os_errno(), 0); })
      .works("what", [](error& failure) { EXPECT_NE(std::string(failure.what()), ""); })
      .works("message", [](error& failure) { EXPECT_EQ(failure.message(), "told"); })
      .works("add", [](error& failure) { error(failure).add_context("x").add_detail("y"); })
      .then([](error& failure) { EXPECT_EQ(failure.message(), "told"); });
}

// A move copies classes that hold only numbers and text.
static_assert(std::is_trivially_copyable_v<scalar> && std::is_trivially_copyable_v<index_entry> &&
              std::is_trivially_copyable_v<slice> && std::is_trivially_copyable_v<byte_range> &&
              std::is_trivially_copyable_v<lane<float>> && std::is_trivially_copyable_v<float16>);
static_assert(!std::is_move_constructible_v<executor> &&
              !std::is_move_constructible_v<memory_pool> &&
              !std::is_move_constructible_v<unfinished_file::creation>);

TEST_F(MovedFrom, ListsOfNumbersStay) {
  dims shape{1, 2, 3};
  dims taken(std::move(shape));
  EXPECT_EQ(shape, taken);
  layout geometry(shape);
  layout other(std::move(geometry));
  EXPECT_EQ(geometry, other);
  region part{{0}, {3}};
  const region moved(std::move(part));
  EXPECT_EQ(part, moved);
}

}  // namespace
}  // namespace shale
// NOLINTEND(bugprone-use-after-move)
