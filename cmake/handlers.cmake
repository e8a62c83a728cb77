# spinloom_handler_image(SOURCE IMAGE): IMAGE.elf is built from one C source by the pinned compiler of
# python/spinloom/handlers/toolchain.py, again whenever the source, a header it reads, the script or the compiler's flags change.
# spinloom_handler_object(SOURCE OBJECT): OBJECT.so, the same source for this machine, by the compiler of the build.
if(SPINLOOM_HANDLERS)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
endif()

function(spinloom_handler_image source image)
  set(toolchain ${PROJECT_SOURCE_DIR}/python/spinloom/handlers/toolchain.py)
  set(script ${PROJECT_SOURCE_DIR}/handlers/handler.ld)
  get_filename_component(folder ${image} DIRECTORY)
  get_filename_component(name ${image} NAME)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${image}
    COMMAND ${Python_EXECUTABLE} ${toolchain} ${source} -o ${image} --include ${PROJECT_SOURCE_DIR}/include
            --script ${script} --cache ${PROJECT_BINARY_DIR}/zig-cache --depfile ${image}.d
    DEPENDS ${source} ${script} ${toolchain}
    DEPFILE ${image}.d
    COMMENT "Handler ${name}"
    VERBATIM)
endfunction()

function(spinloom_handler_object source object)
  set(toolchain ${PROJECT_SOURCE_DIR}/python/spinloom/handlers/toolchain.py)
  get_filename_component(folder ${object} DIRECTORY)
  get_filename_component(name ${object} NAME)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${Python_EXECUTABLE} ${toolchain} ${source} -o ${object} --native --compiler ${CMAKE_C_COMPILER}
            --include ${PROJECT_SOURCE_DIR}/include --depfile ${object}.d
    DEPENDS ${source} ${toolchain}
    DEPFILE ${object}.d
    COMMENT "Handler ${name}"
    VERBATIM)
endfunction()
