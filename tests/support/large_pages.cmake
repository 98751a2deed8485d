# shale_add_large_pages(TARGET LABEL FILTER) runs a test program as on machines with pages of 16 and of 64 KiB
# (support/large_pages.cpp), as LargePages.<TARGET>_16KiB and _64KiB. It does so only if the kernel's own pages are
# smaller, and not under sanitizers: their runtimes must be the first library, and map their shadow memory around
# preloaded libraries.
function(shale_add_large_pages target label filter)
  if(NOT TARGET large_pages)
    return()
  endif()
  string(REPLACE "_test" "" name ${target})
  foreach(kib IN ITEMS 16 64)
    math(EXPR bytes "${kib} * 1024")
    add_test(NAME LargePages.${name}_${kib}KiB
             COMMAND ${CMAKE_COMMAND} -E env LD_PRELOAD=$<TARGET_FILE:large_pages>
                     SHALE_LARGE_PAGE_BYTES=${bytes} $<TARGET_FILE:${target}>
                     --gtest_filter=${filter} --gtest_brief=1)
    set_tests_properties(LargePages.${name}_${kib}KiB PROPERTIES TIMEOUT 600 LABELS ${label})
  endforeach()
endfunction()
