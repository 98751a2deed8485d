#include "format/pages/root_page.hpp"

#include "format/bytes/byte_order.hpp"

namespace shale::format {
namespace {

// Offsets in the body, after the page header.
constexpr std::size_t catalog_at = 0;
constexpr std::size_t space_at = 24;
constexpr std::size_t retained_at = 48;
constexpr std::size_t array_count_at = 72;

}  // namespace

page encode_root(const root_fields& fields) noexcept {
  page root(tree_kind::root, page_kind::root, 0);
  store_page_ref(root.body() + catalog_at, fields.catalog);
  store_page_ref(root.body() + space_at, fields.space);
  store_page_ref(root.body() + retained_at, fields.retained);
  store(root.body() + array_count_at, fields.array_count);
  return root;
}

std::optional<root_fields> decode_root(const page& root, std::uint64_t generation,
                                       std::uint64_t offset) noexcept {
  root_fields fields;
  fields.catalog = load_page_ref(root.body() + catalog_at);
  fields.space = load_page_ref(root.body() + space_at);
  fields.retained = load_page_ref(root.body() + retained_at);
  fields.array_count = load<std::uint64_t>(root.body() + array_count_at);
  page expected = encode_root(fields);
  expected.stamp(generation, offset);
  if (!same_bytes(root.bytes(), expected.bytes())) return std::nullopt;
  return fields;
}

}  // namespace shale::format
