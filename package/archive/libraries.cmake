# Copies the libraries that the program needs beside it, all but glibc's, and writes the script that
# starts the program. Given: archive_program, archive_root, archive_folder, archive_processor,
# archive_objdump, archive_launcher.

set(glibc "^(lib(c|m|mvec|dl|rt|pthread|resolv|util|anl|nsl|thread_db|BrokenLocale)\\.so\\.|ld-linux)")
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES "${archive_program}"
     RESOLVED_DEPENDENCIES_VAR libraries UNRESOLVED_DEPENDENCIES_VAR unresolved
     PRE_EXCLUDE_REGEXES "${glibc}")
if(unresolved)
  message(FATAL_ERROR "These libraries of the program were not found: ${unresolved}")
endif()

set(library_names "")
foreach(library ${libraries})
  get_filename_component(name "${library}" NAME)
  list(APPEND library_names "${name}")
  file(COPY "${library}" DESTINATION "${archive_root}/${archive_folder}" FOLLOW_SYMLINK_CHAIN)
  # Its license, from the package that it came in.
  file(REAL_PATH "${library}" real)
  string(REGEX REPLACE "^/usr" "" short "${real}")
  execute_process(COMMAND dpkg-query -S "${real}" "${short}" OUTPUT_VARIABLE owner ERROR_QUIET)
  if(NOT owner MATCHES "^([^:\n]+):")
    # CUDA's own, for example, from NVIDIA's installer.
    message(WARNING "No package of this system has ${library}. Add its license to "
                    "share/doc/troupe/libraries before you pass the archive on.")
    continue()
  endif()
  configure_file("/usr/share/doc/${CMAKE_MATCH_1}/copyright"
                 "${archive_root}/share/doc/troupe/libraries/${CMAKE_MATCH_1}" COPYONLY)
endforeach()

# The newest version of glibc that any of them asks for.
set(archive_glibc 2.0)
file(GLOB binaries "${archive_root}/${archive_folder}/*")
foreach(binary ${binaries})
  execute_process(COMMAND "${archive_objdump}" -T "${binary}" OUTPUT_VARIABLE symbols
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "GLIBC_[0-9]+\\.[0-9]+" versions "${symbols}")
  list(REMOVE_DUPLICATES versions)
  foreach(version ${versions})
    string(REPLACE "GLIBC_" "" version "${version}")
    if(version VERSION_GREATER archive_glibc)
      set(archive_glibc ${version})
    endif()
  endforeach()
endforeach()
message(STATUS "The tar.gz needs glibc ${archive_glibc} or later.")

string(REPLACE ";" " " archive_libraries "${library_names}")
string(REPLACE "." ";" glibc_parts "${archive_glibc}")
list(GET glibc_parts 0 archive_glibc_major)
list(GET glibc_parts 1 archive_glibc_minor)
file(MAKE_DIRECTORY "${archive_root}/bin")
file(REMOVE "${archive_root}/bin/troupe")  # The program that uses the system's libraries.
configure_file("${archive_launcher}" "${archive_root}/bin/troupe" @ONLY
               FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                WORLD_READ WORLD_EXECUTE)
