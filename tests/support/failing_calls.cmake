# shale_add_failing_calls(TARGET): support/failing_calls.cpp, and the linker options that lead the
# program's calls of the system through it.
function(shale_add_failing_calls target)
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/failing_calls.cpp)
  foreach(name IN ITEMS close fallocate fcntl fdatasync fstat fstatfs fsync ftruncate getrandom link
                        linkat madvise mmap mprotect msync open posix_fallocate pread pwrite rename
                        renameat2 stat sync_file_range)
    target_link_options(${target} PRIVATE LINKER:--wrap=${name})
  endforeach()
endfunction()
