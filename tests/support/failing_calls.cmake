# shale_add_failing_calls(TARGET) adds support/failing_calls.cpp and the linker options that pass the program's system
# calls through it.
function(shale_add_failing_calls target)
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/failing_calls.cpp)
  foreach(name IN ITEMS close fallocate fcntl fdatasync fgetxattr fremovexattr fsetxattr fstat
                        fstatat fstatfs fstatvfs fsync ftruncate getrandom getxattr link linkat
                        madvise mincore mmap mprotect msync open openat posix_fallocate pread pwrite rename
                        renameat renameat2 stat statfs statx sync_file_range)
    target_link_options(${target} PRIVATE LINKER:--wrap=${name})
  endforeach()
endfunction()
