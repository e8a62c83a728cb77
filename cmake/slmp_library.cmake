# libspinloom_slmp, the C face of SLMP (include/spinloom/slmp.h), as a shared and a static library, with what others need
# to find it: pkg-config and a CMake package.
#
#   cmake -S . -B BUILD && cmake --build BUILD --target spinloom_slmp_library
#   cmake --install BUILD --component slmp --prefix PREFIX
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
find_package(Threads REQUIRED)

set(slmp_symbols ${PROJECT_SOURCE_DIR}/cmake/slmp_symbols.map)
add_library(spinloom_slmp_c OBJECT ${PROJECT_SOURCE_DIR}/src/slmp/c_slmp.cpp)
spinloom_options(spinloom_slmp_c)
target_include_directories(spinloom_slmp_c PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)

# The shared one lets out the names of the header and no others.
add_library(spinloom_slmp_shared SHARED $<TARGET_OBJECTS:spinloom_slmp_c>)
target_link_libraries(spinloom_slmp_shared PRIVATE spinloom_slmp Threads::Threads)
target_link_options(spinloom_slmp_shared PRIVATE -Wl,--version-script=${slmp_symbols} -Wl,--no-undefined)
set_target_properties(spinloom_slmp_shared PROPERTIES
  LINK_DEPENDS ${slmp_symbols} VERSION ${PROJECT_VERSION_MAJOR} SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME slmp)

# The static one is whole: it holds the floors that it stands on.
add_library(spinloom_slmp_static STATIC $<TARGET_OBJECTS:spinloom_slmp_c> $<TARGET_OBJECTS:spinloom_slmp>
                                        $<TARGET_OBJECTS:spinloom_base>)
target_link_libraries(spinloom_slmp_static INTERFACE stdc++ m pthread)
set_target_properties(spinloom_slmp_static PROPERTIES EXPORT_NAME slmp_static)

add_custom_target(spinloom_slmp_library DEPENDS spinloom_slmp_shared spinloom_slmp_static)

set(slmp_package ${CMAKE_INSTALL_LIBDIR}/cmake/SpinloomSlmp)
foreach(library spinloom_slmp_shared spinloom_slmp_static)
  set_target_properties(${library} PROPERTIES
    OUTPUT_NAME spinloom_slmp LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
    ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LINKER_LANGUAGE CXX)
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
install(TARGETS spinloom_slmp_shared spinloom_slmp_static EXPORT SpinloomSlmp
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT slmp NAMELINK_COMPONENT slmp
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT slmp)
install(FILES ${PROJECT_SOURCE_DIR}/include/spinloom/slmp.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/spinloom COMPONENT slmp)
install(FILES ${PROJECT_SOURCE_DIR}/tools/slmp.lua DESTINATION ${CMAKE_INSTALL_DATADIR}/wireshark COMPONENT slmp)
install(EXPORT SpinloomSlmp NAMESPACE spinloom:: FILE SpinloomSlmpConfig.cmake
  DESTINATION ${slmp_package} COMPONENT slmp)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/SpinloomSlmpConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/SpinloomSlmpConfigVersion.cmake DESTINATION ${slmp_package} COMPONENT slmp)
file(RELATIVE_PATH slmp_prefix /prefix/${CMAKE_INSTALL_LIBDIR} /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/spinloom-slmp.pc.in ${PROJECT_BINARY_DIR}/spinloom-slmp.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/spinloom-slmp.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT slmp)
