# libspinloom_mpi.so, the layer under MPI programs, with what others need to link it: the header of our own calls,
# pkg-config, a CMake package and manual pages.
#
#   cmake -S . -B BUILD && cmake --build BUILD --target spinloom_mpi_library spinloom_heap
#   cmake --install BUILD --component mpi --prefix PREFIX
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(${CMAKE_CURRENT_LIST_DIR}/manual.cmake)

set(mpi_package ${CMAKE_INSTALL_LIBDIR}/cmake/SpinloomMPI)
target_include_directories(spinloom_mpi_library INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(spinloom_mpi_library PROPERTIES EXPORT_NAME mpi)
install(TARGETS spinloom_mpi_library EXPORT SpinloomMPI LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
install(TARGETS spinloom_heap LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
install(EXPORT SpinloomMPI NAMESPACE spinloom:: FILE SpinloomMPIConfig.cmake DESTINATION ${mpi_package} COMPONENT mpi)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/SpinloomMPIConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/SpinloomMPIConfigVersion.cmake DESTINATION ${mpi_package} COMPONENT mpi)
install(FILES ${PROJECT_SOURCE_DIR}/include/spinloom/mpix.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/spinloom COMPONENT mpi)
file(RELATIVE_PATH mpi_prefix /prefix/${CMAKE_INSTALL_LIBDIR} /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/spinloom-mpi.pc.in ${PROJECT_BINARY_DIR}/spinloom-mpi.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/spinloom-mpi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT mpi)
spinloom_manual(mpi spinloom_mpi_library include/spinloom/mpix.h docs/mpi.md)
