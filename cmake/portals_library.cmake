# libportals.so.4 for real processes, with what others need to compile, link and run against it: headers, pkg-config,
# a component of the CMake package, manual pages, spinloom-info, spinloom-gateway, libspinloom-heap.so, and the
# handlers where they are built.
#
#   cmake -S . -B BUILD -DSPINLOOM_HANDLERS=ON && cmake --build BUILD --target spinloom_portals_library
#   cmake --install BUILD --component portals --prefix PREFIX
include(GNUInstallDirs)
include(${CMAKE_CURRENT_LIST_DIR}/package.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/manual.cmake)

add_custom_target(spinloom_portals_library DEPENDS spinloom_portals_live spinloom_heap spinloom_info
  spinloom_gateway spinloom_threads)
if(TARGET spinloom_handlers)
  add_dependencies(spinloom_portals_library spinloom_handlers)
  # own_folder() of src/live/process/live_process.cpp finds them there.
  install(FILES ${handler_images} DESTINATION ${CMAKE_INSTALL_LIBDIR}/spinloom/handlers COMPONENT portals)
endif()

target_include_directories(spinloom_portals_live INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(spinloom_portals_live PROPERTIES EXPORT_NAME portals)
install(TARGETS spinloom_portals_live EXPORT Spinloom_portals
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT portals NAMELINK_COMPONENT portals)
install(TARGETS spinloom_heap LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT portals)
install(TARGETS spinloom_info spinloom_gateway spinloom_threads RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT portals)
spinloom_component(portals)

install(FILES ${PROJECT_SOURCE_DIR}/include/portals4.h ${PROJECT_SOURCE_DIR}/include/portals4_spin.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT portals)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/spinloom
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT portals
  FILES_MATCHING PATTERN "*.h" PATTERN layout.h EXCLUDE PATTERN mpix.h EXCLUDE PATTERN slmp.h EXCLUDE PATTERN ethernet.h EXCLUDE
  PATTERN fpspin_compat.h EXCLUDE)  # of other components

# Two names: our own, and the one that configure scripts look for.
file(RELATIVE_PATH portals_prefix /prefix/${CMAKE_INSTALL_LIBDIR} /prefix)
foreach(name spinloom-portals portals4)
  set(portals_pc_name ${name})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/portals.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT portals)
endforeach()

spinloom_manual(portals spinloom_portals_library include/portals4.h include/portals4_spin.h include/spinloom/rails.h include/spinloom/rma.h src/live/process/settings.cpp)
