# simgpu_standin(TARGET SONAME libx.so.1 OBJECTS object-library... [SYMBOLS lists...] [NODE node] [RETURNS value]
#                [EXPORT_DEFINED regex] [LINK libraries...])
#
# Links a stand-in library into ${LEDGER_SIMGPU_DIR}: the hand-written objects, a stub for each listed symbol that they
# lack, and a version script that exports the list and nothing else. Symbols bind inside the library first
# (-Bsymbolic), as in NVIDIA's: an interposer that is preloaded must not be met on a library's way to itself.
function(simgpu_standin target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SONAME;NODE;RETURNS;EXPORT_DEFINED" "OBJECTS;SYMBOLS;LINK")
  set(generator ${PROJECT_SOURCE_DIR}/tools/simgpu/stubs/generate.py)
  set(stubs ${CMAKE_CURRENT_BINARY_DIR}/${target}.stubs.c)
  set(map ${CMAKE_CURRENT_BINARY_DIR}/${target}.map)
  set(objects "")
  foreach(object IN LISTS arg_OBJECTS)
    list(APPEND objects $<TARGET_OBJECTS:${object}>)
  endforeach()
  set(options --library ${arg_SONAME} --c ${stubs} --map ${map} --symbols ${arg_SYMBOLS} --defined ${objects})
  if(arg_NODE)
    list(APPEND options --node ${arg_NODE})
  endif()
  if(arg_RETURNS)
    list(APPEND options --returns ${arg_RETURNS})
  endif()
  if(arg_EXPORT_DEFINED)
    list(APPEND options --export-defined ${arg_EXPORT_DEFINED})
  endif()
  add_custom_command(OUTPUT ${stubs} ${map}
    COMMAND ${Python3_EXECUTABLE} ${generator} ${options}
    DEPENDS ${generator} ${arg_SYMBOLS} ${arg_OBJECTS} ${objects}
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Completing ${arg_SONAME}")
  add_library(${target} SHARED ${objects} ${stubs})
  set_source_files_properties(${stubs} PROPERTIES COMPILE_OPTIONS "-fno-builtin;-w" OBJECT_DEPENDS ${map})
  set_target_properties(${target} PROPERTIES
    PREFIX "" SUFFIX "" OUTPUT_NAME ${arg_SONAME} NO_SONAME ON LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY ${LEDGER_SIMGPU_DIR})
  target_link_options(${target} PRIVATE
    -Wl,-soname,${arg_SONAME} -Wl,-Bsymbolic -Wl,--version-script,${map} -Wl,--no-undefined
    -static-libstdc++ -static-libgcc)
  target_link_libraries(${target} PRIVATE ${arg_LINK})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
endfunction()
