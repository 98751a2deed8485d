# How the house is built: one object library a floor, linked into one libshale. A floor gets the
# floors below it, and nothing else, by what it is linked to here.

set(SHALE_FLOORS_core)
set(SHALE_FLOORS_storage core)
set(SHALE_FLOORS_tensor storage core)
set(SHALE_FLOORS_parallel tensor storage core)
set(SHALE_FLOORS_ops parallel tensor storage core)
set(SHALE_FLOORS_format storage core)
set(SHALE_FLOORS_array format ops parallel tensor storage core)
set(SHALE_FLOORS_interop array format ops parallel tensor storage core)

option(SHALE_UNITY "Compile several sources of a floor as one: much faster, if all are compiled" OFF)

add_library(shale_options INTERFACE)
target_compile_features(shale_options INTERFACE cxx_std_20)
target_compile_options(shale_options INTERFACE
  -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual
  # What one source names is nothing to another that is compiled with it.
  $<$<NOT:$<BOOL:${SHALE_UNITY}>>:-Wshadow>
  # Results must not depend on which multiplications the compiler fuses.
  -ffp-contract=off -fno-math-errno
  # GCC 12 sees overlapping copies in `"text" + std::string` where there are none (its bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # `#pragma omp simd` allows reordering; whether a loop is worth it is the compiler's decision.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>
  $<$<BOOL:${SHALE_WERROR}>:-Werror>)
if(SHALE_SANITIZE)
  target_compile_options(shale_options INTERFACE -fsanitize=${SHALE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(shale_options INTERFACE -fsanitize=${SHALE_SANITIZE})
  if(SHALE_SANITIZE MATCHES undefined)
    # `vptr` opens descriptors to look at memory, and takes their absence for a bad object.
    target_compile_options(shale_options INTERFACE -fno-sanitize-recover=all -fno-sanitize=vptr)
  endif()
endif()

# What ran guides a fuzzer, except in loops over elements, which only get slower.
set(SHALE_UNGUIDED
    $<$<AND:$<BOOL:${SHALE_FUZZ}>,$<CXX_COMPILER_ID:Clang>>:-fno-sanitize=fuzzer-no-link>)

set(SHALE_TEST_FLAGS "" CACHE STRING
    "Compiler flags of the tests' own code, after all others; tests that compute much add -O1")

set(SHALE_BUILT_FLOORS "" CACHE INTERNAL "")

# shale_add_floor(NAME SOURCES … LIBRARIES …): the object library shale_NAME. LIBRARIES are the
# floor's own outside dependencies; those of the floors below come along.
function(shale_add_floor floor)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT ARG_SOURCES)
    return()
  endif()
  set(target shale_${floor})
  add_library(${target} OBJECT ${ARG_SOURCES})
  # What libshale shows is what the namespaces of its public headers say.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
                        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                        UNITY_BUILD ${SHALE_UNITY} UNITY_BUILD_BATCH_SIZE 16)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include
                             PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE shale_options PUBLIC ${ARG_LIBRARIES})
  if(SHALE_UNITY)
    # g++ takes sources that are included for headers, whose local types should not be in classes.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
  set(SHALE_BUILT_FLOORS ${SHALE_BUILT_FLOORS} ${floor} CACHE INTERNAL "")
endfunction()

# Links `target` to a floor and to all that the floor stands on.
function(shale_link_floor target floor)
  foreach(each IN LISTS floor SHALE_FLOORS_${floor})
    if(TARGET shale_${each})
      target_link_libraries(${target} PRIVATE shale_${each})
    endif()
  endforeach()
endfunction()

# libshale: every floor's objects.
function(shale_add_library)
  add_library(shale)
  add_library(shale::shale ALIAS shale)
  foreach(floor IN LISTS SHALE_BUILT_FLOORS)
    target_sources(shale PRIVATE $<TARGET_OBJECTS:shale_${floor}>)
    # The floor's outside libraries; what it links privately is for its own compilation only.
    get_target_property(libraries shale_${floor} INTERFACE_LINK_LIBRARIES)
    list(FILTER libraries EXCLUDE REGEX "LINK_ONLY|NOTFOUND")
    target_link_libraries(shale PRIVATE ${libraries})
  endforeach()
  target_compile_features(shale PUBLIC cxx_std_20)
  target_include_directories(shale PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  # Before 1.0 every minor version may change the interface.
  set_target_properties(shale PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  # What static libraries bring along is nobody's business either. A library that has threads and a signal
  # handler stays loaded when it is closed (docs/decisions/0113).
  target_link_options(shale PRIVATE LINKER:--exclude-libs,ALL LINKER:-z,nodelete)
endfunction()

# shale_execute(NAME program …): a test executes these programs. It knows the path of some_peer as
# SHALE_SOME_PEER.
function(shale_execute target)
  foreach(program IN LISTS ARGN)
    string(TOUPPER ${program} name)
    target_compile_definitions(${target} PRIVATE SHALE_${name}="$<TARGET_FILE:${program}>")
    add_dependencies(${target} ${program})
  endforeach()
endfunction()

# shale_compile_as_test(NAME OPTIMIZED): the flags and definitions of the tests' own code. For
# shale_add_program, and programs that link to libshale itself.
function(shale_compile_as_test target optimized)
  separate_arguments(flags UNIX_COMMAND "${SHALE_TEST_FLAGS}")
  if(optimized AND SHALE_TEST_FLAGS)
    list(APPEND flags -O1)
  endif()
  set_target_properties(${target} PROPERTIES SHALE_OPTIMIZED ${optimized})
  target_compile_options(${target} PRIVATE ${SHALE_UNGUIDED} ${flags})
  # What g++ defines by itself.
  foreach(sanitizer IN ITEMS address thread)
    string(TOUPPER ${sanitizer} name)
    if(SHALE_SANITIZE MATCHES ${sanitizer})
      target_compile_definitions(${target} PRIVATE
        $<$<CXX_COMPILER_ID:Clang>:__SANITIZE_${name}__=1>)
    endif()
  endforeach()
endfunction()

# shale_precompile_headers(NAME): much of the time that tests take to compile goes into the same headers;
# all that are compiled alike share them. A compiler cache does not look into precompiled ones, and where
# g++ 12 optimises more than -O1 does, it warns of the standard library's code that they hold.
function(shale_precompile_headers target)
  if(CMAKE_CXX_COMPILER_LAUNCHER OR
     NOT (CMAKE_CXX_COMPILER_ID MATCHES Clang OR SHALE_TEST_FLAGS MATCHES "-O[01]"))
    return()
  endif()
  set(headers <gtest/gtest.h> <algorithm> <array> <cmath> <cstdint> <map> <memory> <optional>
              <random> <string> <vector>)
  set(owner precompiled_headers)
  get_target_property(optimized ${target} SHALE_OPTIMIZED)
  if(optimized AND SHALE_TEST_FLAGS MATCHES "-O0")
    string(APPEND owner _optimized)
  endif()
  set(libraries GTest::gtest)
  get_target_property(linked ${target} LINK_LIBRARIES)
  if(shale_rapidcheck IN_LIST linked)
    string(APPEND owner _rapidcheck)
    list(APPEND headers <rapidcheck.h> <rapidcheck/gtest.h>)
    list(APPEND libraries shale_rapidcheck)
  endif()
  if(NOT TARGET ${owner})
    set(source ${PROJECT_BINARY_DIR}/tests/${owner}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    add_library(${owner} OBJECT ${source})
    target_link_libraries(${owner} PRIVATE shale_options ${libraries})
    shale_compile_as_test(${owner} ${optimized})
    target_precompile_headers(${owner} PRIVATE ${headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

# shale_compile_for_tests(NAME OPTIMIZED FLOOR LIBRARIES): how a program's sources, or a part of them, are
# compiled.
function(shale_compile_for_tests target optimized floor libraries)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  shale_link_floor(${target} ${floor})
  target_link_libraries(${target} PRIVATE shale_options ${libraries})
  shale_compile_as_test(${target} ${optimized})
endfunction()

# shale_add_program(NAME FLOOR floor SOURCES … OPTIMIZED … UNSHARED … UNSHARED_OPTIMIZED … EXECUTES …
# UNSHARED_EXECUTES … LIBRARIES …): a program of the tests, for example one that they execute as another
# process, linked to the floor under test and the floors below it only. It may include that floor's private
# headers. EXECUTES is for shale_execute.
# OPTIMIZED: sources whose own loops take longer than their compilation.
# UNSHARED, UNSHARED_OPTIMIZED: more sources, whose tests show no race of their own, because one thread does
# all of it, or it is about values, files and failures alone; the build with ThreadSanitizer goes without
# them, and without the programs that only they execute (UNSHARED_EXECUTES).
function(shale_add_program target)
  cmake_parse_arguments(ARG "" "FLOOR"
    "SOURCES;OPTIMIZED;UNSHARED;UNSHARED_OPTIMIZED;EXECUTES;UNSHARED_EXECUTES;LIBRARIES" ${ARGN})
  if(NOT SHALE_SANITIZE MATCHES thread)
    list(APPEND ARG_SOURCES ${ARG_UNSHARED})
    list(APPEND ARG_OPTIMIZED ${ARG_UNSHARED_OPTIMIZED})
    list(APPEND ARG_EXECUTES ${ARG_UNSHARED_EXECUTES})
  endif()
  if(ARG_SOURCES)
    add_executable(${target} ${ARG_SOURCES})
    shale_compile_for_tests(${target} FALSE ${ARG_FLOOR} "${ARG_LIBRARIES}")
  else()
    add_executable(${target} ${ARG_OPTIMIZED})
    shale_compile_for_tests(${target} TRUE ${ARG_FLOOR} "${ARG_LIBRARIES}")
  endif()
  if(ARG_SOURCES AND ARG_OPTIMIZED)
    # Of a function that several objects define, the linker takes the first definition. The objects of object
    # libraries come before the program's own, so that it takes the optimized one.
    add_library(${target}_optimized OBJECT ${ARG_OPTIMIZED})
    shale_compile_for_tests(${target}_optimized TRUE ${ARG_FLOOR} "${ARG_LIBRARIES}")
    # The program may get more definitions after this function.
    target_compile_definitions(${target}_optimized PRIVATE
                               $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
    target_link_libraries(${target} PRIVATE ${target}_optimized)
  endif()
  target_link_libraries(${target} PRIVATE test_support)
  shale_execute(${target} ${ARG_EXECUTES})
  if(SHALE_SANITIZE MATCHES thread)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/thread_sanitizer.cpp)
  endif()
endfunction()

# shale_add_test(NAME FLOOR floor …): the same as one GoogleTest program, whose tests carry the
# floor's name as label.
function(shale_add_test target)
  cmake_parse_arguments(ARG "" "FLOOR" "" ${ARGN})
  shale_add_program(${target} ${ARGN})
  foreach(part IN ITEMS ${target} ${target}_optimized)
    if(TARGET ${part})
      target_link_libraries(${part} PRIVATE GTest::gtest_main)
      shale_precompile_headers(${part})
    endif()
  endforeach()
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 600 LABELS ${ARG_FLOOR})
endfunction()
