#include "format/catalog/dense_checksums.hpp"

#include "format/bytes/byte_order.hpp"

namespace shale::format {

void scan_dense_checksums(page_reader& reader, const array_record& record,
                          const std::function<void(std::uint64_t segment, std::uint64_t)>& body) {
  const dense_layout& dense = record.dense();
  if (dense.checksums.bytes == 0) return;
  std::uint64_t segment = 0;
  reader.scan(dense.checksums, dense.checksums_checksum, "segment checksums",
              [&](bytes_view piece) {
                for (std::size_t offset = 0; offset < piece.size(); offset += 8)
                  body(segment++, load<std::uint64_t>(piece.data() + offset));
              });
}

}  // namespace shale::format
