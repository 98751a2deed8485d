#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "container/suites.hpp"
#include "container/works.hpp"
#include "shale/shale.hpp"
#include "support/files.hpp"
#include "support/row.hpp"

namespace shale::bench {

namespace {

constexpr const char* two_syncs = "two fdatasync each";

// What a program pays at least that orders two writes: data, then what makes it valid.
class synced_file {
 public:
  explicit synced_file(const std::string& folder)
      : block_(aligned_buffer(bytes)), file_(folder + "/synced", O_RDWR | O_CREAT | O_TRUNC) {
    std::fill_n(block_.get(), bytes, std::byte{1});
    write_and_sync(16 * page);
    write_and_sync(16 * page);
  }

  double seconds(index_t count) {
    return seconds_of([&] {
      for (index_t k = 0; k < 2 * count; ++k) write_and_sync(page);
    });
  }

 private:
  static constexpr std::size_t page = 4096, bytes = 16 * page;

  void write_and_sync(std::size_t length) {
    if (::pwrite(file_, block_.get(), length, 0) != static_cast<ssize_t>(length)) fail("pwrite");
    if (::fdatasync(file_) != 0) fail("fdatasync");
  }

  buffer block_;
  descriptor file_;
};

// Measures `count` changes, each of which `run` makes and commits.
void measure_changes(const container_settings& chosen, const std::string& name, index_t count,
                     const std::function<void(index_t)>& run) {
  if (!is_wanted(chosen, name)) return;
  synced_file plain(chosen.folder);
  measure({.name = name,
           .shale =
               [&] {
                 return seconds_of([&] {
                   for (index_t k = 0; k < count; ++k) run(k);
                 });
               },
           .limits = {{two_syncs, [&] { return plain.seconds(count); }}},
           .goals = {{two_syncs, 1.3, false}},
           .has_threads = false},
          chosen);
}

constexpr index_t update_length = 64;

container made_for_updates(const container_settings& chosen) {
  container file = container::create(chosen.folder + "/updates.shale");
  transaction change = file.begin();
  change.create("values", {.dtype = dtype::float32,
                           .shape = {chosen.amount.updates * update_length},
                           .kind = array_kind::chunked,
                           .chunk_shape = dims{update_length}});
  change.commit();
  return file;
}

// Replaces chunk k.
void update(transaction& change, index_t k) {
  const expr values = arange(update_length) + k;
  change.update("values").write(region{{k * update_length}, {update_length}}, values);
}

void updates(const container_settings& chosen, container& file) {
  const index_t count = chosen.amount.updates;
  measure_changes(chosen, grouped(count) + " small updates, each durable", count, [&](index_t k) {
    transaction change = file.begin();
    update(change, k);
    change.commit();
  });
}

// Commits whose durability is waited for when all of them have begun, if there are such commits.
template <class Transaction>
void updates_without_waiting(const container_settings& chosen, container& file) {
  const index_t count = chosen.amount.updates;
  const std::string name = grouped(count) + " small updates, durable at the end";
  if (!is_wanted(chosen, name)) return;
  if constexpr (requires(Transaction & change) { change.commit_async(); }) {
    synced_file plain(chosen.folder);
    measure({.name = name,
             .shale =
                 [&] {
                   return seconds_of([&] {
                     std::vector<decltype(std::declval<Transaction&>().commit_async())> begun;
                     for (index_t k = 0; k < count; ++k) {
                       Transaction change = file.begin();
                       update(change, k);
                       begun.push_back(change.commit_async());
                     }
                     for (const auto& each : begun) each.wait();
                   });
                 },
             .limits = {{two_syncs, [&] { return plain.seconds(count); }}},
             .goals = {{two_syncs, 5}},
             .has_threads = false},
            chosen);
  } else {
    static_cast<void>(file);
    print(row{.work = name, .note = "not in this version"});
  }
}

// The array "rows" has rows of 4 KiB.
constexpr index_t row_length = 1024;

container made_for_rows(const std::string& path, const array_spec& spec) {
  container file = container::create(path);
  transaction change = file.begin();
  change.create("rows", spec);
  change.commit();
  return file;
}

void appends(const container_settings& chosen, const std::string& what, container& file) {
  const index_t count = chosen.amount.appends;
  const tensor last = eval(astype(arange(row_length), dtype::float32)).view({1, row_length});
  measure_changes(chosen, grouped(count) + " rows appended to a " + what + ", each durable", count,
                  [&](index_t) {
                    transaction change = file.begin();
                    change.append("rows", last);
                    change.commit();
                  });
}

void elements(const container_settings& chosen, const std::string& what, index_t rows,
              container& file) {
  const index_t count = chosen.amount.appends;
  const tensor value = tensor::ones({1, 1}, dtype::float32);
  measure_changes(chosen, grouped(count) + " single elements of a " + what + ", each durable",
                  count, [&](index_t k) {
                    transaction change = file.begin();
                    const region place{{k * 2'654'435'761 % rows, k % row_length}, {1, 1}};
                    change.update("rows").write(place, value);
                    change.commit();
                  });
}

}  // namespace

void small_commits(const container_settings& chosen) {
  container updated = made_for_updates(chosen);
  updates(chosen, updated);
  updates_without_waiting<transaction>(chosen, updated);
  for (const index_t rows : chosen.amount.dense_rows) {
    const std::string what = "dense array of " + grouped(rows * row_length * 4 / 1024) + " KiB";
    const std::string path = chosen.folder + "/rows-" + std::to_string(rows) + ".shale";
    container file = made_for_rows(path, {.dtype = dtype::float32, .shape = {rows, row_length}});
    elements(chosen, what, rows, file);
    appends(chosen, what, file);
  }
  container chunked =
      made_for_rows(chosen.folder + "/rows-chunked.shale", {.dtype = dtype::float32,
                                                            .shape = {0, row_length},
                                                            .kind = array_kind::chunked,
                                                            .chunk_shape = dims{64, row_length}});
  appends(chosen, "chunked array", chunked);
}

}  // namespace shale::bench
