// Parses and formats sizes and times.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shale::tools {

/// Parses "256MiB", "4G", "1.5 GiB", "500 MB", "4096" or "64k" into bytes. K, M, G and T, alone or
/// with iB, are powers of 1024, as in dd and zstd. kB, MB, GB and TB are powers of 1000. Case has
/// no meaning.
/// Throws   invalid_argument: not a size, negative, a fraction of a byte, beyond 2^63 - 1
std::uint64_t parse_bytes(std::string_view text);

/// "0 B", "1023 B", "1.0 KiB", "3.9 MiB", "17 GiB": at most four characters and the unit.
std::string format_bytes(std::uint64_t bytes);

/// "1,234,567".
std::string format_count(std::uint64_t count);

/// "12.5 %": the share that `part` has of `whole`; "-" of nothing.
std::string format_share(std::uint64_t part, std::uint64_t whole);

/// "0.042 s", "3.1 s", "2:05 min", "1:02:03 h".
std::string format_seconds(double seconds);

/// "1.3 GB/s", "840 MB/s", in powers of 1000 as vendors of devices use; "-" if no time has passed.
std::string format_rate(std::uint64_t bytes, double seconds);

}  // namespace shale::tools
