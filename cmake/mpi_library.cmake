# libspinloom_mpi.so, the layer under MPI programs, with what others need to link it: the header of our own calls,
# pkg-config, a component of the CMake package and manual pages.
#
#   cmake -S . -B BUILD && cmake --build BUILD --target spinloom_mpi_library spinloom_heap
#   cmake --install BUILD --component mpi --prefix PREFIX
include(GNUInstallDirs)
include(${CMAKE_CURRENT_LIST_DIR}/package.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/manual.cmake)

target_include_directories(spinloom_mpi_library INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(spinloom_mpi_library PROPERTIES EXPORT_NAME mpi)
install(TARGETS spinloom_mpi_library EXPORT Spinloom_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
install(TARGETS spinloom_heap LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
spinloom_component(mpi)
install(FILES ${PROJECT_SOURCE_DIR}/include/spinloom/mpix.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/spinloom COMPONENT mpi)
file(RELATIVE_PATH mpi_prefix /prefix/${CMAKE_INSTALL_LIBDIR} /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/spinloom-mpi.pc.in ${PROJECT_BINARY_DIR}/spinloom-mpi.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/spinloom-mpi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT mpi)
spinloom_manual(mpi spinloom_mpi_library include/spinloom/mpix.h docs/mpi.md)
