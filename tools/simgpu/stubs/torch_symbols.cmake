# What the installed PyTorch (LEDGER_TORCH_DIR) imports from NVIDIA's libraries, read once, at configuration.
#
# simgpu_soname(RESULT base default)          the SONAME torch wants of a library ("libcudart"), or the default
# simgpu_torch_symbol_list(RESULT base)       the list of the symbols torch imports from it; empty if there are none
#
# simgpu_torch_version(RESULT package default)  the version of a package ("cudnn") that torch's wheel asks for
#
# Without LEDGER_TORCH_DIR the stand-ins export what the toolkit's headers declare, under the default SONAMEs.
include_guard(GLOBAL)

set(SIMGPU_TORCH_SYMBOLS ${PROJECT_BINARY_DIR}/torch-symbols CACHE INTERNAL "")
if(LEDGER_TORCH_DIR)
  # Another release in the same place changes its version file, which then repeats the configuration.
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${LEDGER_TORCH_DIR}/version.py ${CMAKE_CURRENT_LIST_DIR}/torch_symbols.py)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/torch_symbols.py
      --torch ${LEDGER_TORCH_DIR} --out ${SIMGPU_TORCH_SYMBOLS}
    COMMAND_ERROR_IS_FATAL ANY)
else()
  file(REMOVE_RECURSE ${SIMGPU_TORCH_SYMBOLS})
endif()

# The second field of the line of `table` that starts with `key`, or the default.
function(simgpu_look_up result table key default)
  set(${result} ${default} PARENT_SCOPE)
  if(EXISTS ${table})
    file(STRINGS ${table} line REGEX "^${key} ")
    if(line)
      string(REGEX REPLACE "^[^ ]+ " "" value "${line}")
      set(${result} ${value} PARENT_SCOPE)
    endif()
  endif()
endfunction()

function(simgpu_soname result base default)
  simgpu_look_up(value ${SIMGPU_TORCH_SYMBOLS}/sonames.txt ${base} ${default})
  set(${result} ${value} PARENT_SCOPE)
endfunction()

function(simgpu_torch_version result package default)
  simgpu_look_up(value ${SIMGPU_TORCH_SYMBOLS}/versions.txt ${package} ${default})
  set(${result} ${value} PARENT_SCOPE)
endfunction()

function(simgpu_torch_symbol_list result base)
  set(list ${SIMGPU_TORCH_SYMBOLS}/${base}.txt)
  if(EXISTS ${list})
    set(${result} ${list} PARENT_SCOPE)
  else()
    set(${result} "" PARENT_SCOPE)
  endif()
endfunction()

# simgpu_header_symbols(OUTPUT list PREFIX regex [DEFINE macros...] [RAW headers...] HEADERS headers...)
# Writes, at build time, the list of the functions that headers of the toolkit declare.
function(simgpu_header_symbols)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUTPUT;PREFIX" "DEFINE;RAW;HEADERS")
  set(script ${PROJECT_SOURCE_DIR}/tools/simgpu/stubs/header_symbols.py)
  set(options --prefix ${arg_PREFIX} --include ${LEDGER_CUDA_INCLUDE} --out ${arg_OUTPUT})
  foreach(macro IN LISTS arg_DEFINE)
    list(APPEND options --define ${macro})
  endforeach()
  foreach(header IN LISTS arg_RAW)
    list(APPEND options --raw ${header})
  endforeach()
  list(TRANSFORM arg_HEADERS PREPEND ${LEDGER_CUDA_INCLUDE}/ OUTPUT_VARIABLE paths)
  add_custom_command(OUTPUT ${arg_OUTPUT}
    COMMAND ${Python3_EXECUTABLE} ${script} ${options} ${arg_HEADERS}
    DEPENDS ${script} ${paths} VERBATIM)
endfunction()
