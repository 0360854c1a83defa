# The GPUs for which kernels are compiled. Machine code runs on GPUs of its compute capability, and on later ones of the
# same major number. The driver compiles PTX for GPUs without machine code, so that no GPU of a later capability is
# refused. CMake's names are 90-real for machine code of compute capability 9.0, and 80-virtual for PTX of 8.0.

set(troupe_known_cards 80 86 89 90 100 120)

# troupe_gpu_codes(RESULT COMPILER): sets RESULT to the compute capabilities that the CUDA compiler has machine code for,
# such as 80;86;90.
function(troupe_gpu_codes result compiler)
  execute_process(COMMAND "${compiler}" --list-gpu-code
                  OUTPUT_VARIABLE told ERROR_VARIABLE complaint RESULT_VARIABLE failure)
  string(REGEX MATCHALL "sm_[0-9]+" codes "${told}")
  list(TRANSFORM codes REPLACE "^sm_" "")
  if(failure OR NOT codes)
    message(FATAL_ERROR "${compiler} --list-gpu-code: found exit code '${failure}' and '${told}${complaint}', wanted a "
                        "list such as sm_80; use nvcc of a CUDA toolkit")
  endif()
  set(${result} ${codes} PARENT_SCOPE)
endfunction()

# troupe_cuda_cards(RESULT CARDS CODES): sets RESULT to a value for CMAKE_CUDA_ARCHITECTURES. CARDS is "hopper", "all" or
# a list of compute capabilities without their dot; CODES is the list of troupe_gpu_codes().
function(troupe_cuda_cards result cards codes)
  string(REPLACE ";" ", " codes_text "${codes}")
  if(cards STREQUAL "all")
    set(wanted "")
    set(lacking "")
    foreach(card IN LISTS troupe_known_cards)
      if(card IN_LIST codes)
        list(APPEND wanted ${card})
      else()
        list(APPEND lacking ${card})
      endif()
    endforeach()
    if(wanted AND lacking)
      string(REPLACE ";" ", " lacking "${lacking}")
      message(STATUS "TROUPE_CUDA_CARDS: this CUDA toolkit has no machine code for ${lacking}; the driver of such a GPU "
                     "compiles PTX")
    endif()
  elseif(cards STREQUAL "hopper")
    set(wanted 90)
  else()
    set(wanted ${cards})
    list(REMOVE_DUPLICATES wanted)
  endif()

  set(advice "wanted \"hopper\", \"all\", or compute capabilities from 8.0 on without the dot, such as \"86;90\"")
  if(NOT wanted)
    message(FATAL_ERROR "TROUPE_CUDA_CARDS: found \"${cards}\" and a CUDA toolkit for ${codes_text}, ${advice}")
  endif()
  foreach(card IN LISTS wanted)
    if(NOT card MATCHES "^[0-9]+$" OR card LESS 80)
      message(FATAL_ERROR "TROUPE_CUDA_CARDS: found \"${card}\", ${advice}")
    elseif(NOT card IN_LIST codes)
      message(FATAL_ERROR "TROUPE_CUDA_CARDS: found \"${card}\", wanted one that this CUDA toolkit has machine code for: "
                          "${codes_text}; choose another one or use another toolkit")
    endif()
  endforeach()

  # PTX of the oldest GPU serves all others. The kernels use nothing that later GPUs add.
  list(FILTER codes INCLUDE REGEX "^([89][0-9]|[0-9][0-9][0-9]+)$")
  list(SORT codes COMPARE NATURAL)
  list(GET codes 0 oldest)
  list(TRANSFORM wanted APPEND "-real")
  set(${result} "${oldest}-virtual" ${wanted} PARENT_SCOPE)
endfunction()

# troupe_cards_text(RESULT ARCHITECTURES): describes a value of CMAKE_CUDA_ARCHITECTURES for messages, such as
# "machine code of 9.0; PTX of 8.0".
function(troupe_cards_text result architectures)
  set(machine "")
  set(ptx "")
  foreach(architecture IN LISTS architectures)
    if(NOT architecture MATCHES "^([0-9]+)([0-9])[a-z]?(-real|-virtual)?$")
      set(${result} "${architectures}" PARENT_SCOPE)
      return()
    endif()
    set(capability "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
    if(NOT CMAKE_MATCH_3 STREQUAL "-virtual")
      list(APPEND machine ${capability})
    endif()
    if(NOT CMAKE_MATCH_3 STREQUAL "-real")
      list(APPEND ptx ${capability})
    endif()
  endforeach()
  string(REPLACE ";" ", " machine "${machine}")
  string(REPLACE ";" ", " ptx "${ptx}")
  set(text "")
  if(machine)
    list(APPEND text "machine code of ${machine}")
  endif()
  if(ptx)
    list(APPEND text "PTX of ${ptx}")
  endif()
  list(JOIN text " and " text)
  set(${result} "${text}" PARENT_SCOPE)
endfunction()
