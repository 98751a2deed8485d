// Provides the buffers that OpenBLAS packs matrices into: this module takes the place of OpenBLAS's
// own memory management.
//
// Every running call of OpenBLAS needs a buffer. The serial OpenBLAS looks for a free one without a
// lock, so two calls at once may get the same one and return wrong numbers. If there is no address
// space for a buffer, it retries for ever. Here a call begins only when it holds a buffer.
//
// Invariants
//   buffer.1  a buffer is used by one call of BLAS at a time
//   buffer.2  if a thread finds neither a free buffer nor address space for a new one, it waits
//             until another thread gives one back; if no buffer exists at all, that is an error
#pragma once

namespace shale::ops {

/// The right to be inside a call of BLAS on this thread, for its lifetime: it holds a buffer. A
/// thread has at most one at a time.
/// Threads  any number at once; a thread that finds no free buffer waits for one
class blas_buffer {
 public:
  /// Cost     a lock; also a system call and 128 MiB of address space, if more calls run at once
  ///          than ever before
  /// Throws   out_of_memory (not even one buffer can be made)
  blas_buffer();
  ~blas_buffer();
  blas_buffer(const blas_buffer&) = delete;
  blas_buffer& operator=(const blas_buffer&) = delete;
};

}  // namespace shale::ops
