// Keeps pages in memory for tests of trees. The source and the sink check each other.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "format/bytes/checksum.hpp"
#include "format/pages/tree.hpp"
#include "shale/error.hpp"

namespace shale::test {

class memory_pages final : public format::page_source, public format::page_sink {
 public:
  std::shared_ptr<const format::page> load_page(const format::page_ref& ref) override {
    const auto found = pages.find(ref.offset);
    if (found == pages.end()) fail(ref, "no page there");
    if (format::checksum_metadata(found->second) != ref.checksum) fail(ref, "checksum");
    if (const auto problem = format::page::problem(found->second)) fail(ref, *problem);
    ++loads;
    return std::make_shared<const format::page>(found->second);
  }

  std::vector<std::byte> load_overflow(const format::overflow_ref& ref) override {
    return values.at(ref.range.offset);
  }

  void fail(const format::page_ref&, const std::string& problem) override {
    throw error(errc::corrupt, problem);
  }

  void release(const format::extent& range) override {
    if (!live.erase(range.offset)) ++double_releases;
  }

  format::overflow_ref store_overflow(format::bytes_view value) override {
    const std::uint64_t offset = fresh();
    values[offset].assign(value.begin(), value.end());
    return {{offset, value.size()}, format::checksum_metadata(value)};
  }

  format::page_ref write_page(format::page& made, std::uint64_t offset) override {
    made.stamp(1, offset);
    pages[offset].assign(made.bytes().begin(), made.bytes().end());
    return {offset, format::checksum_metadata(made.bytes())};
  }

  /// Places and writes the changed pages. Returns the new root.
  format::page_ref commit(format::tree& changed) {
    std::vector<std::uint64_t> offsets;
    for (std::size_t i = changed.unplaced(); i-- > 0;) offsets.push_back(fresh());
    changed.place(offsets);
    return changed.write();
  }

  std::map<std::uint64_t, std::vector<std::byte>> pages;
  std::map<std::uint64_t, std::vector<std::byte>> values;
  std::set<std::uint64_t> live;  ///< places that are in use
  int double_releases = 0;
  int loads = 0;

 private:
  std::uint64_t fresh() {
    next_ += format::page_bytes;
    live.insert(next_);
    return next_;
  }
  std::uint64_t next_ = 0;
};

}  // namespace shale::test
