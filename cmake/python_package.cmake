# What the Python package is made of, beside its Python files. The package is an installation prefix as well: the
# components layout, slmp, ethernet, portals and mpi lie in it as they would in /usr/local, and `spinloom --prefix`
# says where.
if(NOT SPINLOOM_PYTHON)
  return()
endif()

add_custom_target(spinloom_package)
foreach(part spinloom_core spinloom_launcher spinloom_layout_library spinloom_slmp_library spinloom_ethernet_library spinloom_portals_library
    spinloom_mpi_library)
  if(TARGET ${part})
    add_dependencies(spinloom_package ${part})
  endif()
endforeach()

# The part of it that `make demo` needs.
add_custom_target(spinloom_cards_package DEPENDS spinloom_cards spinloom_images)

# The package spinloom-layout, whole, as packaging/layout/pyproject.toml finds it.
set(layout_only COMPONENT layout_only EXCLUDE_FROM_ALL)
install(FILES packaging/layout/pyproject.toml packaging/layout/README.md LICENSE DESTINATION . ${layout_only})
install(FILES python/spinloom/__init__.py python/spinloom/errors.py python/spinloom/py.typed
  DESTINATION spinloom ${layout_only})
install(DIRECTORY python/spinloom/layout DESTINATION spinloom ${layout_only} FILES_MATCHING PATTERN "*.py")
foreach(module __init__ core errors printable)
  install(FILES python/spinloom/common/${module}.py DESTINATION spinloom/common ${layout_only})
endforeach()

foreach(folder nics hosts workloads scenarios)
  foreach(component python cards)
    install(DIRECTORY data/${folder}/ DESTINATION spinloom/data/${folder} COMPONENT ${component} FILES_MATCHING PATTERN "*.toml")
  endforeach()
endforeach()
install(DIRECTORY data/recorded/ DESTINATION spinloom/data/recorded COMPONENT python FILES_MATCHING PATTERN "*.trace")
# What the claims run (python/spinloom/papers/rank_benches.py).
install(FILES bench/rails_bandwidth.c bench/rma_latency.c DESTINATION spinloom/programs COMPONENT python)
# What `spinloom handler build` needs, beside the headers.
install(FILES handlers/handler.ld DESTINATION spinloom/lib/spinloom/handlers COMPONENT python)
install(DIRECTORY handlers/runtime DESTINATION spinloom/lib/spinloom/handlers COMPONENT python)

# A wheel holds no links: what a linker looks for by its plain name is a text that names the library. No loader looks
# in the package, so its pkg-config files have programs remember the place.
set(prefix_install [[
  set(prefix "${CMAKE_INSTALL_PREFIX}/spinloom")
  foreach(component layout slmp ethernet portals mpi)
    execute_process(COMMAND "@CMAKE_COMMAND@" --install "@PROJECT_BINARY_DIR@" --component ${component} --prefix "${prefix}"
      OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(GLOB libraries "${prefix}/@CMAKE_INSTALL_LIBDIR@/*.so")
  foreach(library ${libraries})
    if(IS_SYMLINK "${library}")
      file(READ_SYMLINK "${library}" name)
      file(REMOVE "${library}")
      file(WRITE "${library}" "INPUT(${name})\n")
    endif()
  endforeach()
  file(GLOB descriptions "${prefix}/@CMAKE_INSTALL_LIBDIR@/pkgconfig/*.pc")
  foreach(description ${descriptions})
    file(READ "${description}" text)
    string(REPLACE "Libs: -L\${libdir}" "Libs: -L\${libdir} -Wl,-rpath,\${libdir}" text "${text}")
    file(WRITE "${description}" "${text}")
  endforeach()
]])
string(CONFIGURE "${prefix_install}" prefix_install @ONLY)
install(CODE "${prefix_install}" COMPONENT python)

# `man spinloom` finds the pages in ENVIRONMENT/share/man when ENVIRONMENT/bin is on PATH.
if(SKBUILD)
  foreach(book portals mpi)
    install(DIRECTORY ${PROJECT_BINARY_DIR}/man/${book}/ DESTINATION ${SKBUILD_DATA_DIR}/share/man COMPONENT python)
  endforeach()
endif()
