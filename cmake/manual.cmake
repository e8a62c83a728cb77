# spinloom_manual(BOOK TARGET SOURCES...) - the pages of man/BOOK.toml, written with TARGET and installed with the
# component BOOK, where there is a Python to write them. SOURCES: what else they are made from.
function(spinloom_manual book target)
  find_package(Python 3.11 QUIET COMPONENTS Interpreter)
  if(NOT Python_FOUND)
    return()
  endif()
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/)
  set(out ${PROJECT_BINARY_DIR}/man/${book})
  set(stamp ${PROJECT_BINARY_DIR}/man_${book}.stamp)
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${out}
    COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/man.py ${out} ${book}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${PROJECT_SOURCE_DIR}/tools/man.py ${PROJECT_SOURCE_DIR}/man/${book}.toml ${ARGN}
    VERBATIM)
  add_custom_target(spinloom_man_${book} DEPENDS ${stamp})
  add_dependencies(${target} spinloom_man_${book})
  install(DIRECTORY ${out}/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT ${book})
endfunction()
