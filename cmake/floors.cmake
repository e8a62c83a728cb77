# spinloom_floor(WING/FLOOR SOURCES ... USES ... TESTS ...): one static library per floor, spinloom_WING_FLOOR,
# its tests as spinloom_WING_FLOOR_test, each with the project's warnings. A wing of one library is spinloom_WING.
if(SPINLOOM_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

option(SPINLOOM_FUZZ "Call __sanitizer_cov_trace_pc at each edge; only the fuzz targets link" OFF)

function(spinloom_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Werror)
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

# Half the time of a build from nothing goes into headers that the sources of a floor share: four sources are compiled
# at once. What they define for themselves, in unnamed namespaces, has names of its own in the floor. make lint reads each
# source by itself and finds what it forgets to include.
option(SPINLOOM_UNITY "Compile the sources of a floor four at a time" ON)
function(spinloom_together target)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${SPINLOOM_UNITY} UNITY_BUILD_BATCH_SIZE 4 UNITY_BUILD_RELOCATABLE ON)
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

# APART: each source of the floor is compiled by itself.
function(spinloom_floor floor)
  string(REPLACE / _ name ${floor})
  cmake_parse_arguments(FLOOR "APART" "" "SOURCES;USES;TESTS" ${ARGN})
  add_library(spinloom_${name} STATIC ${FLOOR_SOURCES})
  target_include_directories(spinloom_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  spinloom_options(spinloom_${name})
  if(NOT FLOOR_APART)
    spinloom_together(spinloom_${name})
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

# Structures of a hundred bytes or two are cleared and copied by loops: GCC's `rep stos` takes 10 ns to start.
include(CheckCXXCompilerFlag)
function(spinloom_copy_loops target)
  check_cxx_compiler_flag("-mmemset-strategy=vector_loop:1024:noalign,libcall:-1:noalign" SPINLOOM_HAS_LOOPS)
  if(SPINLOOM_HAS_LOOPS)
    target_compile_options(${target} PRIVATE -mmemset-strategy=vector_loop:1024:noalign,libcall:-1:noalign
                                             -mmemcpy-strategy=vector_loop:1024:noalign,libcall:-1:noalign)
  endif()
endfunction()
