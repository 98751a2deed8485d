# Tests of the kernels, and of products, which call them directly. tests/ops includes this file.

# A process chooses its kernels once, so the tests start other processes.
shale_add_program(report_kernels FLOOR ops SOURCES kernels/report_kernels.cpp)
shale_add_test(kernels_test FLOOR ops
  SOURCES
    kernels/blas_kernels_test.cpp
    kernels/isa_test.cpp
    kernels/numpy_test.cpp
  OPTIMIZED
    kernels/arg_extrema_test.cpp
    kernels/arithmetic_test.cpp
    kernels/casts_test.cpp
    kernels/complex_vectors_test.cpp
    kernels/small_floats_test.cpp
    kernels/elementary_test.cpp
    kernels/expected_operations.cpp
    kernels/expected_positions.cpp
    kernels/expected_reductions.cpp
    kernels/expected_scans.cpp
    kernels/linalg_test.cpp
    kernels/random_test.cpp
    kernels/reducers_test.cpp
    kernels/scans_test.cpp
  EXECUTES report_kernels)
set_source_files_properties(kernels/isa_test.cpp PROPERTIES
  COMPILE_DEFINITIONS
    "SHALE_NM=\"${CMAKE_NM}\";SHALE_OBJDUMP=\"${CMAKE_OBJDUMP}\";SHALE_OPS_OBJECTS=\"$<JOIN:$<TARGET_OBJECTS:shale_ops>,:>\"")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  add_library(leaky_unit OBJECT kernels/leaky_unit.cpp)
  target_compile_options(leaky_unit PRIVATE -O3 -mavx2)
  add_dependencies(kernels_test leaky_unit)
  set_property(SOURCE kernels/isa_test.cpp APPEND PROPERTY COMPILE_DEFINITIONS
    "SHALE_LEAKY_OBJECT=\"$<TARGET_OBJECTS:leaky_unit>\"")
endif()
