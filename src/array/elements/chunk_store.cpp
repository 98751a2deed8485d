#include "array/elements/chunk_store.hpp"

#include "shale/error.hpp"

namespace shale::arrays {

namespace {

[[noreturn]] void throw_read_only() {
  throw error(errc::access_denied, "an array of a snapshot cannot be written",
              {"to write it, call container::begin, then transaction::update"});
}

}  // namespace

void chunk_store::put(std::uint64_t, const format::encoded_chunk&) { throw_read_only(); }

void chunk_store::erase(std::uint64_t) { throw_read_only(); }

std::optional<format::chunk_entry> generation_chunks::find(std::uint64_t number) const {
  return view_.find_chunk(record_, number);
}

void generation_chunks::read(const format::chunk_entry& entry, format::bytes_span into) const {
  view_.read_chunk(entry, into);
}

int generation_chunks::descriptor() const noexcept { return view_.descriptor(); }

}  // namespace shale::arrays
