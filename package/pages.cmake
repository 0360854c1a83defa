# Has the program write its manual pages and the completion of shells.
# Given: troupe_command, share.

function(write_completion shell path)
  execute_process(COMMAND ${troupe_command} completion ${shell} OUTPUT_VARIABLE text RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "troupe completion ${shell} failed: ${code}")
  endif()
  file(WRITE "${share}/${path}" "${text}")
endfunction()

file(MAKE_DIRECTORY "${share}/man/man1")
execute_process(COMMAND ${troupe_command} man --to "${share}/man/man1" RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "troupe man --to ${share}/man/man1 failed: ${code}")
endif()
file(GLOB pages "${share}/man/man1/troupe*.1")
execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)

# Debian's zsh looks for completion of packages in a folder of its own.
if("${CMAKE_INSTALL_PREFIX}" STREQUAL "/usr" AND EXISTS /etc/debian_version)
  set(zsh zsh/vendor-completions/_troupe)
else()
  set(zsh zsh/site-functions/_troupe)
endif()
write_completion(bash bash-completion/completions/troupe)
write_completion(zsh ${zsh})
write_completion(fish fish/vendor_completions.d/troupe.fish)
