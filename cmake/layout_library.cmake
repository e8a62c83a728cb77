# libspinloom_layout, the C face of layouts (include/spinloom/layout.h), as a shared and a static library, with what
# others need to find it: pkg-config and a CMake package.
#
#   cmake -S . -B BUILD && cmake --build BUILD --target spinloom_layout_library
#   cmake --install BUILD --component layout --prefix PREFIX
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(layout_face ${PROJECT_SOURCE_DIR}/src/layout/c_layout.cpp)
set(layout_symbols ${PROJECT_SOURCE_DIR}/cmake/layout_symbols.map)

add_library(spinloom_layout_c OBJECT ${layout_face})
spinloom_options(spinloom_layout_c)
target_include_directories(spinloom_layout_c PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(spinloom_layout_c PRIVATE SPINLOOM_VERSION="${PROJECT_VERSION}")

# The shared one lets out the names of the header and no others.
add_library(spinloom_layout_shared SHARED $<TARGET_OBJECTS:spinloom_layout_c>)
target_link_libraries(spinloom_layout_shared PRIVATE spinloom_layout)
target_link_options(spinloom_layout_shared PRIVATE -Wl,--version-script=${layout_symbols} -Wl,--no-undefined)
set_target_properties(spinloom_layout_shared PROPERTIES
  LINK_DEPENDS ${layout_symbols} VERSION ${PROJECT_VERSION_MAJOR} SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME layout)

# The static one is whole: it holds the floors that it stands on.
add_library(spinloom_layout_static STATIC $<TARGET_OBJECTS:spinloom_layout_c> $<TARGET_OBJECTS:spinloom_layout>
                                          $<TARGET_OBJECTS:spinloom_base>)
target_link_libraries(spinloom_layout_static INTERFACE stdc++ m)
set_target_properties(spinloom_layout_static PROPERTIES EXPORT_NAME layout_static)

add_custom_target(spinloom_layout_library DEPENDS spinloom_layout_shared spinloom_layout_static)

set(layout_package ${CMAKE_INSTALL_LIBDIR}/cmake/spinloom)
foreach(library spinloom_layout_shared spinloom_layout_static)
  set_target_properties(${library} PROPERTIES
    OUTPUT_NAME spinloom_layout LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
    ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LINKER_LANGUAGE CXX)
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
install(TARGETS spinloom_layout_shared spinloom_layout_static EXPORT spinloom
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT layout NAMELINK_COMPONENT layout
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT layout)
install(FILES ${PROJECT_SOURCE_DIR}/include/spinloom/layout.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/spinloom COMPONENT layout)
install(EXPORT spinloom NAMESPACE spinloom:: FILE spinloomConfig.cmake DESTINATION ${layout_package} COMPONENT layout)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/spinloomConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/spinloomConfigVersion.cmake DESTINATION ${layout_package} COMPONENT layout)
file(RELATIVE_PATH layout_prefix /prefix/${CMAKE_INSTALL_LIBDIR} /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/spinloom-layout.pc.in ${PROJECT_BINARY_DIR}/spinloom-layout.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/spinloom-layout.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT layout)
