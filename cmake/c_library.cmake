# spinloom_c_library(NAME FLOOR HEADERS ... FLOORS ... SYMBOLS PATTERN DESCRIPTION TEXT): libspinloom_NAME, the C face
# of a floor, as a shared and a static library, with what others need to find it: pkg-config and a component of the
# CMake package.
#
#   cmake -S . -B BUILD && cmake --build BUILD --target spinloom_NAME_library
#   cmake --install BUILD --component NAME --prefix PREFIX
include(GNUInstallDirs)
include(${CMAKE_CURRENT_LIST_DIR}/package.cmake)
find_package(Threads REQUIRED)

function(spinloom_c_library name floor)
  cmake_parse_arguments(C "" "SYMBOLS;DESCRIPTION" "HEADERS;FLOORS" ${ARGN})
  set(library_name ${name})
  set(description "${C_DESCRIPTION}")
  set(symbols ${PROJECT_BINARY_DIR}/${name}_symbols.map)
  file(CONFIGURE OUTPUT ${symbols} CONTENT "{ global: ${C_SYMBOLS}; local: *; };\n")
  set(shared spinloom_${name}_shared)
  set(static spinloom_${name}_static)

  # The shared one lets out the names of the headers and no others.
  add_library(${shared} SHARED $<TARGET_OBJECTS:spinloom_${floor}>)
  foreach(other ${C_FLOORS})
    target_link_libraries(${shared} PRIVATE spinloom_${other})
    list(APPEND objects $<TARGET_OBJECTS:spinloom_${other}>)
  endforeach()
  target_link_libraries(${shared} PRIVATE Threads::Threads)
  target_link_options(${shared} PRIVATE -Wl,--version-script=${symbols} -Wl,--no-undefined)
  set_target_properties(${shared} PROPERTIES
    LINK_DEPENDS ${symbols} VERSION ${PROJECT_VERSION_MAJOR} SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME ${name})

  # The static one is whole: it holds the floors that it stands on.
  add_library(${static} STATIC $<TARGET_OBJECTS:spinloom_${floor}> ${objects})
  target_link_libraries(${static} INTERFACE stdc++ m pthread)
  set_target_properties(${static} PROPERTIES EXPORT_NAME ${name}_static)
  add_custom_target(spinloom_${name}_library DEPENDS ${shared} ${static})

  foreach(library ${shared} ${static})
    set_target_properties(${library} PROPERTIES
      OUTPUT_NAME spinloom_${name} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
      ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LINKER_LANGUAGE CXX)
    target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()
  install(TARGETS ${shared} ${static} EXPORT Spinloom_${name}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name} NAMELINK_COMPONENT ${name}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name})
  foreach(header ${C_HEADERS})
    cmake_path(GET header PARENT_PATH folder)
    install(FILES ${PROJECT_SOURCE_DIR}/include/spinloom/${header}
      DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/spinloom/${folder} COMPONENT ${name})
  endforeach()
  spinloom_component(${name})
  file(RELATIVE_PATH prefix_from_libdir /prefix/${CMAKE_INSTALL_LIBDIR} /prefix)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/c_library.pc.in ${PROJECT_BINARY_DIR}/spinloom-${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/spinloom-${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${name})
endfunction()

# The C face of layouts is no part of its floor: it knows the version.
add_library(spinloom_layout_c OBJECT ${PROJECT_SOURCE_DIR}/src/memory/layout/c_layout.cpp)
spinloom_options(spinloom_layout_c)
target_include_directories(spinloom_layout_c PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(spinloom_layout_c PRIVATE SPINLOOM_VERSION="${PROJECT_VERSION}")
spinloom_c_library(layout layout_c HEADERS layout.h FLOORS memory_layout base SYMBOLS "spl_layout_*"
  DESCRIPTION "Datatypes that move non-contiguous data: MPI's constructors without MPI")
spinloom_c_library(slmp ethernet_slmp HEADERS slmp.h FLOORS base SYMBOLS "slmp_*"
  DESCRIPTION "SLMP, the sPIN lightweight messaging protocol, over UDP sockets")
install(FILES ${PROJECT_SOURCE_DIR}/tools/slmp.lua DESTINATION ${CMAKE_INSTALL_DATADIR}/wireshark COMPONENT slmp)
spinloom_c_library(ethernet ethernet_host HEADERS ethernet.h fpspin_compat.h arp_unit.h frame.h handler.h hpu_map.h hpu_native.h process.h slmp_file.h udp_forward.h pspin/headers.h pspin/memory_map.h
  FLOORS nic_frames nic_spin nic_hpu base
  SYMBOLS "spl_eth_*" DESCRIPTION "A program's side of an Ethernet NIC that runs handlers")
