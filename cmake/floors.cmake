# spinloom_floor(WING/FLOOR SOURCES ... USES ... TESTS ...): one static library per floor, spinloom_WING_FLOOR,
# its tests as spinloom_WING_FLOOR_test, each with the project's warnings. A wing of one library is spinloom_WING.
if(SPINLOOM_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

option(SPINLOOM_FUZZ "Call __sanitizer_cov_trace_pc at each edge; only the fuzz targets link" OFF)

# The compiler reads shared headers seldom. It compiles four sources of a floor at once, so what a source defines in an
# unnamed namespace needs a name of its own in the floor. With GCC, the floors also share standard headers that were
# read once (clang would refuse them at another -O level). make lint does neither: it reads each source by itself, and
# finds the source that forgets an include.
option(SPINLOOM_UNITY "Compile the sources of a floor four at a time, and read standard headers once" ON)
set(spinloom_reads_once OFF)
if(SPINLOOM_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(spinloom_reads_once ON)
endif()

function(spinloom_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Werror)
  if(spinloom_reads_once)
    # GCC 12 warns falsely of code that it inlines from headers which were read once. clang checks bounds in make lint.
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
  endif()
  if(SPINLOOM_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize-coverage=trace-pc)
  endif()
  if(SPINLOOM_SANITIZE)
    # GCC documents false positives of this warning in instrumented code.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    if(SPINLOOM_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # The thread sanitizer does not see fences: those of src/live order memory that other processes write.
      target_compile_options(${target} PRIVATE -Wno-tsan)
    endif()
    target_compile_options(${target} PUBLIC -fsanitize=${SPINLOOM_SANITIZE} -fno-omit-frame-pointer -g
                                            -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${SPINLOOM_SANITIZE})
  endif()
endfunction()

function(spinloom_together target)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${SPINLOOM_UNITY} UNITY_BUILD_BATCH_SIZE 4 UNITY_BUILD_RELOCATABLE ON)
endfunction()

# spinloom_headers(TARGET HEADERS ...): a target whose options differ from those of floors reads headers for itself: the
# standard ones, then HEADERS. Options that only define macros do not count.
function(spinloom_headers target)
  if(spinloom_reads_once)
    foreach(header ${PROJECT_SOURCE_DIR}/cmake/standard_headers.hpp ${ARGN})
      target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${header}>")
    endforeach()
  endif()
endfunction()
# spinloom_headers_of(TARGET OTHER): a target with OTHER's options uses what OTHER has read.
function(spinloom_headers_of target other)
  if(spinloom_reads_once)
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()

# What only tests: a fifth of the compiler's time is saved, and the floors are optimised as they are for everyone.
function(spinloom_test_options target)
  spinloom_options(${target})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Short names of one test file are in the others' way; the lint compiles them apart, with the warning.
function(spinloom_tests_together target)
  spinloom_together(${target})
  if(SPINLOOM_UNITY)
    target_compile_options(${target} PRIVATE -Wno-shadow)
  endif()
endfunction()

# Structures of a hundred bytes or two are cleared and copied by loops: GCC's `rep stos` takes 10 ns to start.
include(CheckCXXCompilerFlag)
set(spinloom_loops -mmemset-strategy=vector_loop:1024:noalign,libcall:-1:noalign
  -mmemcpy-strategy=vector_loop:1024:noalign,libcall:-1:noalign)
check_cxx_compiler_flag("-mmemset-strategy=vector_loop:1024:noalign,libcall:-1:noalign" SPINLOOM_HAS_LOOPS)

# APART: each source of the floor is compiled by itself. COPY_LOOPS: with the options above. PART: one library of
# several, spinloom_WING_FLOOR_PART.
function(spinloom_floor floor)
  string(REPLACE / _ name ${floor})
  cmake_parse_arguments(FLOOR "APART;COPY_LOOPS" "PART" "SOURCES;USES;TESTS" ${ARGN})
  if(FLOOR_PART)
    string(APPEND name _${FLOOR_PART})
  endif()
  add_library(spinloom_${name} STATIC ${FLOOR_SOURCES})
  target_include_directories(spinloom_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  spinloom_options(spinloom_${name})
  if(NOT FLOOR_APART)
    spinloom_together(spinloom_${name})
  endif()
  if(FLOOR_COPY_LOOPS AND SPINLOOM_HAS_LOOPS)
    target_compile_options(spinloom_${name} PRIVATE ${spinloom_loops})
    if(name STREQUAL nic_spin)  # the lowest of them
      spinloom_headers(spinloom_nic_spin)
    else()
      spinloom_headers_of(spinloom_${name} spinloom_nic_spin)
    endif()
  elseif(name STREQUAL base)
    spinloom_headers(spinloom_base)
  else()
    spinloom_headers_of(spinloom_${name} spinloom_base)
  endif()
  string(REPLACE / _ uses "${FLOOR_USES}")
  foreach(used ${uses})
    target_link_libraries(spinloom_${name} PUBLIC spinloom_${used})
  endforeach()
  if(SPINLOOM_TESTS AND FLOOR_TESTS)
    add_executable(spinloom_${name}_test ${FLOOR_TESTS})
    spinloom_test_options(spinloom_${name}_test)
    if(NOT FLOOR_APART)
      spinloom_tests_together(spinloom_${name}_test)
    endif()
    if(name STREQUAL base)
      spinloom_headers(spinloom_base_test ${PROJECT_SOURCE_DIR}/cmake/test_headers.hpp)
    else()
      spinloom_headers_of(spinloom_${name}_test spinloom_base_test)
    endif()
    target_link_libraries(spinloom_${name}_test PRIVATE spinloom_${name} GTest::gtest GTest::gtest_main)
    gtest_discover_tests(spinloom_${name}_test DISCOVERY_TIMEOUT 600)
  endif()
endfunction()

# Floors that every message passes. Fields that were written one by one are read again soon, and a wider load waits
# until all stores before it are in the cache, those to a peer's memory too. libportals.so is optimised as a whole (a
# fifth of a put's time); everything else links the same objects as they are, because that takes a minute a link.
include(CheckIPOSupported)
check_ipo_supported(RESULT spinloom_whole OUTPUT ignored LANGUAGES CXX)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR SPINLOOM_SANITIZE OR SPINLOOM_FUZZ)
  set(spinloom_whole OFF)
endif()
# Who optimises all that is linked (packages of some distributions) has objects that only link so.
if(CMAKE_INTERPROCEDURAL_OPTIMIZATION OR CMAKE_CXX_FLAGS MATCHES "-flto")
  set(spinloom_whole OFF)
endif()
if(spinloom_whole)
  add_link_options($<IF:$<BOOL:$<TARGET_PROPERTY:SPINLOOM_WHOLE>>,-flto=auto,-fno-lto>)
endif()
function(spinloom_message_path target)
  target_compile_options(${target} PRIVATE -fno-tree-slp-vectorize)
  if(spinloom_whole)
    target_compile_options(${target} PRIVATE -flto=auto -ffat-lto-objects)
  endif()
endfunction()
function(spinloom_whole_program target)
  set_target_properties(${target} PROPERTIES SPINLOOM_WHOLE ON)
endfunction()

# spinloom_bench(FLOOR SOURCE): an executable spinloom_<source's name> that make bench runs; built with the tests,
# so that it keeps compiling.
function(spinloom_bench place source)
  string(REPLACE / _ floor ${place})
  get_filename_component(name ${source} NAME_WE)
  add_executable(spinloom_${name} ${PROJECT_SOURCE_DIR}/bench/${source})
  if(NOT SPINLOOM_TESTS)
    set_target_properties(spinloom_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  spinloom_options(spinloom_${name})
  target_link_libraries(spinloom_${name} PRIVATE spinloom_${floor})
endfunction()
