# Checks the choice of GPUs to compile for: cmake -P cuda_cards.cmake. The lists of codes are those of CUDA 13.0, 12.0
# (which knows no Blackwell), and a made-up one without Ampere.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/CudaCards.cmake")

set(codes_of_13 75 80 86 87 88 89 90 100 110 103 120 121)
set(codes_of_12 50 52 53 60 61 62 70 72 75 80 86 87 89 90)
set(codes_without_ampere 90 100 120)

# A child of this script has one choice to make, which is refused.
if(DEFINED CARDS)
  troupe_cuda_cards(made "${CARDS}" "${CODES}")
  message("made ${made}")
  return()
endif()

function(expect what found wanted)
  if(NOT found STREQUAL wanted)
    message(SEND_ERROR "${what}: found \"${found}\", wanted \"${wanted}\"")
  endif()
endfunction()

function(expect_cards cards codes wanted)
  troupe_cuda_cards(found "${cards}" "${codes}")
  expect("\"${cards}\" of ${codes}" "${found}" "${wanted}")
endfunction()

function(expect_refusal cards codes wanted)
  execute_process(COMMAND ${CMAKE_COMMAND} "-DCARDS=${cards}" "-DCODES=${codes}" -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
                  ERROR_VARIABLE told RESULT_VARIABLE failure)
  if(NOT failure)
    message(SEND_ERROR "\"${cards}\" of ${codes}: found ${told}, wanted a refusal")
  endif()
  string(REGEX REPLACE "[ \n]+" " " told "${told}")  # CMake wraps its messages.
  string(FIND "${told}" "${wanted}" place)
  if(place EQUAL -1)
    message(SEND_ERROR "\"${cards}\" of ${codes}: found ${told}, wanted ${wanted}")
  endif()
endfunction()

expect_cards("hopper" "${codes_of_13}" "80-virtual;90-real")
expect_cards("hopper" "${codes_of_12}" "80-virtual;90-real")
expect_cards("hopper" "${codes_without_ampere}" "90-virtual;90-real")
expect_cards("all" "${codes_of_13}" "80-virtual;80-real;86-real;89-real;90-real;100-real;120-real")
expect_cards("all" "${codes_of_12}" "80-virtual;80-real;86-real;89-real;90-real")
expect_cards("all" "${codes_without_ampere}" "90-virtual;90-real;100-real;120-real")
expect_cards("86;90" "${codes_of_13}" "80-virtual;86-real;90-real")
expect_cards("86;86" "${codes_of_13}" "80-virtual;86-real")
expect_cards("87" "75;87" "87-virtual;87-real")
expect_cards("121" "${codes_of_13}" "80-virtual;121-real")

set(wanted "wanted \"hopper\", \"all\", or compute capabilities from 8.0 on without the dot, such as \"86;90\"")
foreach(cards "75" "9.0" "90a" "ampere" "80 86" "86-real")
  expect_refusal("${cards}" "${codes_of_13}" "TROUPE_CUDA_CARDS: found \"${cards}\", ${wanted}")
endforeach()
expect_refusal("86;75" "${codes_of_13}" "TROUPE_CUDA_CARDS: found \"75\", ${wanted}")
expect_refusal("" "${codes_of_12}" "found \"\" and a CUDA toolkit for 50, 52, 53,")
expect_refusal("120" "${codes_of_12}"
  "found \"120\", wanted one that this CUDA toolkit has machine code for: 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90;")
expect_refusal("hopper" "80;86" "found \"90\", wanted one that this CUDA toolkit has machine code for: 80, 86;")
expect_refusal("all" "70;75" "found \"all\" and a CUDA toolkit for 70, 75, wanted")

# What the compiler itself says, as a script in its place.
if(UNIX)
  set(played "${CMAKE_CURRENT_BINARY_DIR}/played-nvcc")
  file(WRITE "${played}" "#!/bin/sh\n[ \"$1\" = --list-gpu-code ] && printf 'sm_75\\nsm_80\\nsm_90\\n'\n")
  file(CHMOD "${played}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  troupe_gpu_codes(found "${played}")
  file(REMOVE "${played}")
  expect("codes of a compiler" "${found}" "75;80;90")
endif()

function(expect_text architectures wanted)
  troupe_cards_text(found "${architectures}")
  expect("the text of ${architectures}" "${found}" "${wanted}")
endfunction()
expect_text("80-virtual;90-real" "machine code of 9.0 and PTX of 8.0")
expect_text("80-virtual;86-real;100-real" "machine code of 8.6, 10.0 and PTX of 8.0")
expect_text("90" "machine code of 9.0 and PTX of 9.0")
expect_text("90a-real" "machine code of 9.0")
expect_text("native" "native")
