// Says how far the engine reads ahead: how many bytes, windows or loads are requested before a
// worker needs them. docs/architecture.md ("How far reading runs ahead") lists every read-ahead of
// the library, with its depth and its user.
#pragma once

#include <cstddef>

#include "shale/index.hpp"

namespace shale::parallel {

/// The most bytes, in all operands together, that are read ahead of the work in a call that only
/// reads. Fewer bytes are read ahead if they do not fit in memory beside the workers' windows.
inline constexpr std::size_t window_bytes_ahead = std::size_t{16} << 20;

/// The windows that are read ahead of the work in a call that writes. Its windows are large, up to
/// 16 MiB, so few are enough.
inline constexpr index_t written_windows_ahead = 3;

/// The loads whose stored bytes are requested before they begin, for each worker: while a worker is
/// in one load, the device reads its next ones. Fewer loads of copies are requested if they do not
/// fit in the budget beside those that run.
inline constexpr index_t loads_ahead_per_worker = 2;

}  // namespace shale::parallel
