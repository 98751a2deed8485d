// Functions that callers pass to arrays, containers and writers of foreign files (tile sources,
// progress sinks, deleters, functions that make files) may use containers, files, and even the
// transaction that calls them, in their own thread and in another thread for which they wait. Each
// case runs in a process of its own, which must end.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shale/shale.hpp"
#include "support/bounded.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::code_of;

constexpr index_t count = 40000;

// A tile source of ones that calls `body` from each of its functions, including its destructor.
class calling_source final : public tile_source {
 public:
  explicit calling_source(std::function<void()> body) : body_(std::move(body)) {}
  ~calling_source() override { body_(); }
  shale::dtype dtype() const noexcept override { return body_(), dtype::float32; }
  const dims& shape() const noexcept override { return body_(), shape_; }
  const dims& tile_shape() const noexcept override { return body_(), tile_shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return body_(), 1; }
  void prefetch(const dims&) const noexcept override { body_(); }
  void load(const dims&, const tensor& into) const override {
    body_();
    for (auto& value : const_cast<tensor&>(into).elements<float>()) value = 1;
  }

 private:
  const dims shape_{count};
  const dims tile_shape_{1000};
  const std::function<void()> body_;
};

// Uses all functions of arrays and files. A call from inside `use` itself does nothing.
class everything {
 public:
  explicit everything(std::string folder)
      : folder_(std::move(folder)),
        file_(container::create(folder_ + "/c.shale")),
        values_(tensor::zeros({count}, dtype::float32)) {
    transaction change = file_.begin();
    for (const char* name : {"dense", "chunked", "other", "victim"})
      change
          .create(name, {.shape = {count},
                         .kind = name[0] == 'd' ? array_kind::dense : array_kind::chunked})
          .write(expr(values_));
    change.commit();
  }

  container& file() { return file_; }
  const tensor& values() const { return values_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  int uses() const { return uses_; }

  // Sets the transaction whose writes call back.
  void set_change(transaction* change) { change_ = change; }

  void use() {
    static thread_local bool inside = false;
    if (inside) return;
    if (uses_.fetch_add(1) > 12) return;
    inside = true;
    use_all("here");
    std::thread([this] {
      inside = true;
      use_all("there");
    }).join();
    inside = false;
  }

 private:
  void use_all(const char* position) {
    const snapshot now = file_.latest();
    now.names();
    now.at("dense").map();
    now.at("dense").read();
    now.at("chunked").read(region{{1}, {5}});
    eval(sum(now.at("chunked")));
    now.find("none");
    now.at("dense").attributes();
    file_.wait_newer(now.generation() - 1, no_wait);
    file_.verify();
    container::open(path("c.shale")).close();
    const std::string name = position + std::to_string(made_++);  // several threads call this
    if (change_ != nullptr) use_change(name);
    else test::outcome_of([&] { file_.begin(no_wait).abort(); });  // busy if two threads are here
    const std::string foreign = path(name);
    write_npy(foreign, values_);
    read_npy(foreign);
    write_raw(foreign, values_);
    const std::pair<std::string, tensor> member{"a", values_};
    write_npz(foreign, std::span(&member, 1));
    npz_file::open(foreign).read("a");
    npy_writer writer(foreign, dtype::int8, {9});
    writer.finish();
  }

  void use_change(const std::string& name) {
    transaction& change = *change_;
    EXPECT_EQ(code_of([&] { file_.begin(no_wait); }), errc::busy);
    writable_array made = change.create(name, {.shape = {100}, .kind = array_kind::chunked});
    made.write({{0}, {1}}, tensor::of<float>({1}));
    made.write(expr(2));
    change.set_attribute(name, "k", "v");
    change.remove_attribute(name, "k");
    change.rename(name, name + "-");
    change.find(name + "-")->read();
    EXPECT_FALSE(change.names(name).empty());
    change.find("dense")->read({{0}, {1}});
    change.update("other").write({{0}, {1}}, tensor::of<float>({1}));
    change.remove(name + "-");
    EXPECT_GT(change.generation(), 0u);
  }

  const std::string folder_;
  container file_;
  const tensor values_;
  transaction* change_ = nullptr;
  std::atomic<int> uses_ = 0;
  std::atomic<int> made_ = 0;
};

struct calling_sink final : progress_sink {
  void advance(std::uint64_t, std::uint64_t) override {
    if (all) all->use();
  }
  everything* all = nullptr;
};

// Runs `body(all)` in a process of its own; if requested, the executor has a progress sink that
// calls back.
template <class Body>
void expect_callbacks(bool with_sink, Body body) {
  for (const int threads : {1, 3}) {
    const test::scratch_directory scratch;
    test::expect_to_end([&] {
      everything all(scratch.path());
      calling_sink sink;
      executor on({.threads = threads, .progress = with_sink ? &sink : nullptr});
      sink.all = &all;
      const executor::scope within(on);
      body(all);
      EXPECT_GT(all.uses(), 0);
      sink.all = nullptr;
    });
  }
}

// Does writes of every kind; each calls back.
template <class Make>
void write_all(everything& all, Make operand) {
  transaction change = all.file().begin();
  all.set_change(&change);
  change.update("dense").write(operand());
  const writable_array chunked = change.update("chunked");
  chunked.write(operand() + 1);
  chunked.write(expr(chunked.tiles()) + operand());
  all.set_change(nullptr);
  change.commit();
}

TEST(ArrayCallbacks, FromTileSourcesThatAreWritten) {
  expect_callbacks(false, [](everything& all) {
    write_all(all, [&] { return expr(std::make_shared<calling_source>([&] { all.use(); })); });
    EXPECT_EQ(eval(sum(all.file().latest().at("chunked"))).item(), scalar(3.0F * count));
  });
}

TEST(ArrayCallbacks, FromProgressSinks) {
  expect_callbacks(true, [](everything& all) {
    write_all(all, [&] { return expr(all.values()) + 1; });
    transaction change = all.file().begin();
    all.set_change(&change);
    for (const char* name : {"dense", "chunked"})
      change.update(name).write({{1}, {count - 1}}, tensor::zeros({count - 1}, dtype::float32));
    all.set_change(nullptr);
    change.commit();
    for (const char* name : {"dense", "chunked"}) {
      const array stored = all.file().latest().at(name);
      stored.read();
      stored.read({{7}, {9}});
      eval(sum(stored));
    }
    EXPECT_TRUE(all.file().verify().findings.empty());
    const tensor lanes = all.values().view({200, 200}).swapaxes(0, 1).narrow(0, 3, 100);
    write_npy(all.path("x.npy"), lanes);
    write_raw(all.path("x.raw"), lanes);
    const std::pair<std::string, tensor> member{"a", lanes};
    write_npz(all.path("x.npz"), std::span(&member, 1));
    npy_writer writer(all.path("y.npy"), dtype::float32, {count});
    eval_into(writer.elements(), expr(all.values()) * 2);
    writer.finish();
  });
}

TEST(ArrayCallbacks, FromDeleters) {
  expect_callbacks(false, [](everything& all) {
    static float bytes[count];
    write_all(all, [&] {
      return expr(tensor(storage::adopt(bytes, sizeof bytes, [&](void*) { all.use(); }),
                         dtype::float32, layout(dims{count})));
    });
  });
}

TEST(ArrayCallbacks, FromKernelsOverMappedArrays) {
  expect_callbacks(false, [](everything& all) {
    transaction change = all.file().begin();
    all.set_change(nullptr);
    const tensor mapped = change.update("dense").map();
    std::atomic<int> calls = 0;
    const auto use_files = [&] {
      if (calls++ % 10000 == 0) {
        all.file().latest().at("dense").read();
        change.update("other").write({{0}, {1}}, tensor::of<float>({1}));
        EXPECT_EQ(code_of([&] { all.file().begin(no_wait); }), errc::busy);
      }
    };
    apply(
        [&](float& value) {
          use_files();
          value = 1;
        },
        mapped);
    change.commit();
    apply([&](const float&) { all.use(); }, all.file().latest().at("dense").map());
  });
}

TEST(ArrayCallbacks, FromFunctionsThatMakeFiles) {
  const test::scratch_directory scratch;
  test::expect_to_end([&] {
    everything all(scratch.path());
    unfinished_file file(all.path("new"), existing_file::refuse);
    file.create([&] {
      all.use();
      write_raw(file.path(), all.values());
    });
    file.publish();
    EXPECT_GT(all.uses(), 0);
  });
}

}  // namespace
}  // namespace shale
