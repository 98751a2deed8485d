# The kernels, each family compiled once per instruction set from one source text
# (rules isa.1 and isa.2 in dispatch/table.hpp). Sets SHALE_KERNEL_SOURCES and SHALE_KERNEL_LIBRARIES;
# included by src/ops.

# The families, by room.
set(SHALE_KERNEL_ROOMS elementwise elementary folds random windows)
set(SHALE_KERNELS_OF_elementwise arithmetic casts comparison float_arithmetic)
set(SHALE_KERNELS_OF_elementary elementary small_floats)
set(SHALE_KERNELS_OF_folds arg_extrema extrema moments scans sums)
set(SHALE_KERNELS_OF_random random)
set(SHALE_KERNELS_OF_windows windows)

set(SHALE_KERNEL_SOURCES
  kernels/dispatch/dispatch.cpp
  kernels/elementary/complex_elementary.cpp
  kernels/operations/operations.cpp
  kernels/strided/reduce_strided.cpp
  kernels/strided/run_strided.cpp
  kernels/strided/scan_strided.cpp)

# The two -fno options let the vectoriser compute both sides of a selection. -O3 is used in debug builds,
# too, so that inline functions are inlined (rule isa.1). Kernels throw nothing, and the tables for
# exceptions would be weak symbols.
set(SHALE_KERNEL_OPTIONS -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off
    -fno-exceptions ${SHALE_UNGUIDED})

# shale_add_kernels(ISA OPTIONS…) makes a unit for each family, which includes the family's source.
function(shale_add_kernels isa)
  foreach(room IN LISTS SHALE_KERNEL_ROOMS)
    foreach(family IN LISTS SHALE_KERNELS_OF_${room})
      set(unit ${CMAKE_CURRENT_BINARY_DIR}/kernels/${family}_${isa}.cpp)
      file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"ops/kernels/${room}/${family}.cpp\"\n")
      set(options ${SHALE_KERNEL_OPTIONS} ${ARGN})
      # Polynomials ask for FMA by intrinsics. No other room has it: see decision 0033.
      if(room STREQUAL elementary AND NOT isa STREQUAL baseline)
        list(APPEND options -mfma)
      endif()
      set_source_files_properties(${unit} PROPERTIES
        COMPILE_DEFINITIONS "SHALE_KERNEL_ISA=${isa};${SHALE_KERNEL_DEFINITIONS}"
        COMPILE_OPTIONS "${options}")
      list(APPEND SHALE_KERNEL_SOURCES ${unit})
    endforeach()
  endforeach()
  set(SHALE_KERNEL_SOURCES ${SHALE_KERNEL_SOURCES} PARENT_SCOPE)
endfunction()

set(SHALE_KERNEL_LIBRARIES ${OPENBLAS_SERIAL_LIBRARY})
set(SHALE_KERNEL_DEFINITIONS)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(SHALE_KERNEL_DEFINITIONS SHALE_X86_KERNELS)
  list(APPEND SHALE_KERNEL_LIBRARIES ${SLEEF_LIBRARY})
  option(SHALE_WIDE_KERNELS "Build kernels for AVX2 and AVX-512 too" ON)
endif()
if(SHALE_WIDE_KERNELS)
  set_source_files_properties(kernels/dispatch/dispatch.cpp PROPERTIES COMPILE_DEFINITIONS SHALE_WIDE_KERNELS)
  shale_add_kernels(avx2 -mavx2 -mf16c)
  shale_add_kernels(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl
                    -mprefer-vector-width=512)
endif()
shale_add_kernels(baseline)
set_source_files_properties(kernels/elementary/complex_elementary.cpp
  kernels/strided/reduce_strided.cpp kernels/strided/run_strided.cpp kernels/strided/scan_strided.cpp PROPERTIES
  COMPILE_DEFINITIONS SHALE_KERNEL_ISA=baseline
  COMPILE_OPTIONS "${SHALE_KERNEL_OPTIONS}")

