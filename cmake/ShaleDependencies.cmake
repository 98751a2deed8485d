# What Shale stands on, all from the distribution's packages (script/setup names them).

find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED)  # headers only: Interprocess
find_package(TBB REQUIRED)
find_package(fmt REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(LZ4 REQUIRED IMPORTED_TARGET liblz4)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy-contrib)

if(SHALE_TOOLS)
  find_package(PNG REQUIRED)  # pictures of `shale plot`
endif()

find_path(KISSFFT_INCLUDE_DIR kissfft/kissfft.hh REQUIRED)  # headers only: Fourier transforms
find_path(FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h REQUIRED)
find_program(FLATC_EXECUTABLE flatc REQUIRED)

# Every flavour of OpenBLAS shares one SONAME, so the serial one is linked statically, by path.
find_library(OPENBLAS_SERIAL_LIBRARY libopenblas.a PATH_SUFFIXES openblas-serial REQUIRED)
find_path(OPENBLAS_SERIAL_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-serial
          PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} REQUIRED)

# Elementary functions of vectors, for the kernels of x86-64.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  find_library(SLEEF_LIBRARY sleef REQUIRED)
  find_path(SLEEF_INCLUDE_DIR sleef.h REQUIRED)
endif()

if(SHALE_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  find_path(RAPIDCHECK_INCLUDE_DIR rapidcheck.h REQUIRED)
  find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
  add_library(shale_rapidcheck INTERFACE)
  target_include_directories(shale_rapidcheck SYSTEM INTERFACE ${RAPIDCHECK_INCLUDE_DIR})
  target_link_libraries(shale_rapidcheck INTERFACE ${RAPIDCHECK_LIBRARY})

  pkg_check_modules(FUSE3 IMPORTED_TARGET fuse3)
  if(FUSE3_FOUND)
    add_library(shale_fuse INTERFACE)
    target_link_libraries(shale_fuse INTERFACE PkgConfig::FUSE3)
  else()
    message(STATUS "libfuse3 (package libfuse3-dev) is missing: the tests of failing devices are left out")
  endif()
endif()
