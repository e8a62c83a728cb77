# Links for an old glibc, so that what is built runs on older systems, too. The compiler is the machine's with all its
# options. tools/old_glibc.py makes the libraries to link with. The C++ library becomes part of each file, and none of its
# names are let out.
#
#   cmake -S . -B BUILD -DSPINLOOM_GLIBC=2.28
set(SPINLOOM_GLIBC "" CACHE STRING
  "The oldest glibc to run with, such as 2.28 (needs GCC, and Python with ziglang); empty: this machine's")
if(NOT SPINLOOM_GLIBC)
  return()
endif()
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR "SPINLOOM_GLIBC needs GCC, and the compiler is ${CMAKE_CXX_COMPILER_ID}")
endif()
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
set(old_glibc ${PROJECT_BINARY_DIR}/glibc-${SPINLOOM_GLIBC})
if(NOT EXISTS ${old_glibc}/libc.so)
  execute_process(
    COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/old_glibc.py --version ${SPINLOOM_GLIBC}
            --compiler ${CMAKE_C_COMPILER} --out ${old_glibc}
    COMMAND_ERROR_IS_FATAL ANY)
endif()
# nanobind-backend throws exceptions through our Python modules, so these share the unwinder of the process.
add_link_options(-B${old_glibc} -static-libstdc++
  $<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>,-shared-libgcc,-static-libgcc>)
