# spinloom_component(NAME): the component NAME of the CMake package Spinloom, made of the export set Spinloom_NAME.
# Every component installs the package's two common files as well, so that each works alone.
#
#   find_package(Spinloom COMPONENTS layout portals)      # spinloom::layout, spinloom::portals
include_guard()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/SpinloomConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMajorVersion)

function(spinloom_component name)
  set(place ${CMAKE_INSTALL_LIBDIR}/cmake/Spinloom)
  install(EXPORT Spinloom_${name} NAMESPACE spinloom:: FILE Spinloom_${name}.cmake DESTINATION ${place}
    COMPONENT ${name})
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/SpinloomConfig.cmake ${PROJECT_BINARY_DIR}/SpinloomConfigVersion.cmake
    DESTINATION ${place} COMPONENT ${name})
endfunction()
