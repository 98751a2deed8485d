// What is behind the handles of container_file.hpp.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "format/commit.hpp"
#include "format/container_file.hpp"
#include "format/container_handle.hpp"
#include "format/pins.hpp"
#include "format/space.hpp"
#include "format/tree.hpp"

namespace shale::format {

/// One pinned generation. Members are in the order of their making; the pin goes last but for the
/// file.
struct generation_view::state {
  state(std::shared_ptr<container_handle> in, std::unique_ptr<pin> held, const superblock& of)
      : handle(std::move(in)),
        hold(std::move(held)),
        fields(of),
        reader(handle, of.end_of_file),
        root(reader.load_root(of)),
        catalog(tree_kind::catalog, reader, root.catalog) {}

  std::shared_ptr<container_handle> handle;
  std::unique_ptr<pin> hold;
  superblock fields;
  mutable page_reader reader;
  root_fields root;
  tree catalog;
};

/// What a transaction starts from: the outcome of commit.1 and commit.2.
struct transaction_base {
  std::shared_ptr<container_handle> handle;
  std::unique_ptr<open_file> lock;  ///< holds the writer lock; null while a file is being created
  slots both;
  superblock newest;  ///< of generation 0 while a file is being created
  std::vector<generation_range> pins;
  std::shared_ptr<std::atomic<bool>> poisoned;
  std::uint64_t metadata_bytes = 0;  ///< written by commit.1
};

/// The generation being made: the trees' sink, and the books of what is allocated.
struct transaction::state final : public page_sink {
  explicit state(transaction_base&& from);
  ~state() override;
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  // page_sink
  void release(const extent& range) override;
  overflow_ref store_overflow(bytes_view value) override;
  page_ref write_page(page& made, std::uint64_t offset) override;

  /// A chunked array whose index is open. Its record is newer than the catalog's.
  struct open_array {
    array_record record;
    tree index;
    bool changed = false;
  };

  void require_active() const;
  template <class Body>
  decltype(auto) change(Body&& body);

  std::optional<array_record> find(std::string_view name) const;
  open_array& open(std::string_view name);
  const open_array* opened(std::string_view name) const;
  tree index_of(const array_record& record);
  void store(const array_record& record);
  void claim(const extent& used, std::uint64_t space);
  bool can_claim(const extent& used, std::uint64_t space) const;
  void drop_layout(const array_record& record);
  void drop_chunks(std::string_view name, const array_record& record);
  void put(array_record record);

  template <class Body>
  decltype(auto) enter_in_books(Body&& body);
  extent allocate(std::uint64_t bytes);
  void release_unclaimed(const extent& unused);
  superblock write_everything();
  std::uint64_t commit(const std::function<void()>& after_sync);
  void finish() noexcept;
  void give_back_tail(std::uint64_t end) noexcept;

  transaction_base base;
  std::uint64_t generation;
  page_reader reader;
  root_fields root;
  tree catalog;
  tree space_tree;
  std::optional<space_map> space;
  std::map<std::string, open_array, std::less<>> arrays;
  std::map<std::uint64_t, std::uint64_t> unclaimed;  // allocated, named by nothing: offset -> space
  std::uint64_t metadata_bytes = 0;
  bool active = true;
  bool broken = false;                     // a change failed half-way
  mutable std::atomic<bool> write_failed;  // a data write failed, on any thread
};

}  // namespace shale::format
