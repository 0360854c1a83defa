# `cmake --install`, and `cpack` for a .deb and a tar.gz.
#
# Components: `program` (what every installation has), `license`, and two that `cmake --install` leaves
# out unless it names them: `debian` (what Debian's policy wants) and `archive` (the program beside its
# libraries, for the tar.gz). package/generators.cmake says which package has which components.

include(GNUInstallDirs)
set(package "${CMAKE_SOURCE_DIR}/package")
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# Without it the error would name a file, not the command that makes it.
set(check_program "
  if(NOT EXISTS \"$<TARGET_FILE:troupe>\")
    message(FATAL_ERROR \"$<TARGET_FILE:troupe> does not exist. Build it first: \"
                        \"cmake --build ${CMAKE_BINARY_DIR} --target troupe\")
  endif()")
install(CODE "${check_program}" COMPONENT program)
install(CODE "${check_program}" COMPONENT archive EXCLUDE_FROM_ALL)

# In the tar.gz the program finds its libraries beside itself, and theirs as well: a DT_RPATH, unlike a
# DT_RUNPATH, holds for libraries of libraries. Elsewhere all libraries are the system's.
set_target_properties(troupe PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
target_link_options(troupe PRIVATE -Wl,--disable-new-dtags -Wl,-z,relro,-z,now)
install(TARGETS troupe RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(CODE "
  file(RPATH_REMOVE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/troupe\")"
  COMPONENT program)

install(DIRECTORY config/ DESTINATION ${CMAKE_INSTALL_DATADIR}/troupe/config COMPONENT program
        FILES_MATCHING PATTERN "*.toml")
install(DIRECTORY package/monitoring DESTINATION ${CMAKE_INSTALL_DATADIR}/troupe COMPONENT program)
install(FILES README.md ARCHITECTURE.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program PATTERN "*.sh" EXCLUDE)
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT license)
install(FILES package/systemd/troupe-head.service package/systemd/troupe-node.service
        DESTINATION lib/systemd/system COMPONENT program)

# The program itself writes its manual pages and the completion of shells. A program for another
# processor does so only with an emulator.
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(STATUS "Manual pages and completion are not installed: this machine cannot run the program "
                 "without CMAKE_CROSSCOMPILING_EMULATOR.")
else()
  install(CODE "
    set(troupe_command \"${CMAKE_CROSSCOMPILING_EMULATOR}\" \"$<TARGET_FILE:troupe>\")
    set(share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")"
    COMPONENT program)
  install(SCRIPT package/pages.cmake COMPONENT program)
endif()

# The tar.gz: what it lacks of glibc's age or processor is said by the script that starts it.
set(archive lib/troupe)
install(TARGETS troupe RUNTIME DESTINATION ${archive} COMPONENT archive EXCLUDE_FROM_ALL)
install(CODE "
  set(archive_program \"$<TARGET_FILE:troupe>\")
  set(archive_root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  set(archive_folder \"${archive}\")
  set(archive_processor \"${CMAKE_SYSTEM_PROCESSOR}\")
  set(archive_objdump \"${CMAKE_OBJDUMP}\")
  set(archive_launcher \"${package}/archive/troupe.in\")"
  COMPONENT archive EXCLUDE_FROM_ALL)
install(SCRIPT package/archive/libraries.cmake COMPONENT archive EXCLUDE_FROM_ALL)

# Which system this is, for a package that uses its libraries: "deb12", "deb13", "ubuntu24.04".
set(release "")
if(EXISTS /etc/os-release)
  file(STRINGS /etc/os-release lines REGEX "^(ID|VERSION_ID|VERSION_CODENAME)=")
  foreach(line ${lines})
    string(REGEX MATCH "^([A-Z_]+)=\"?([^\"]*)\"?$" matched "${line}")
    set(os_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
  endforeach()
  string(REGEX REPLACE "^debian" "deb" release "${os_ID}${os_VERSION_ID}")
endif()
if(NOT os_VERSION_CODENAME)
  set(os_VERSION_CODENAME unstable)
endif()

# The date of the newest commit, so that equal sources make equal packages.
execute_process(COMMAND git -C "${CMAKE_SOURCE_DIR}" log -1 --format=%aD OUTPUT_VARIABLE TROUPE_DATE
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT TROUPE_DATE)
  set(TROUPE_DATE "Thu, 01 Jan 1970 00:00:00 +0000")
endif()
set(TROUPE_MAINTAINER "Troupe maintainers <maintainers@troupe.invalid>" CACHE STRING
    "Who answers for the .deb: a name and an address")
set(TROUPE_PACKAGE_VERSION "${PROJECT_VERSION}-1~${release}")
configure_file(package/debian/changelog.in package/changelog @ONLY)
install(CODE "
  set(package \"${package}\")
  set(debian_changelog \"${CMAKE_BINARY_DIR}/package/changelog\")
  set(upstream_changelog \"${CMAKE_SOURCE_DIR}/CHANGELOG.md\")
  set(doc \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/doc/troupe\")"
  COMPONENT debian EXCLUDE_FROM_ALL)
install(SCRIPT package/debian/documents.cmake COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES package/debian/troupe-head package/debian/troupe-node DESTINATION /etc/default
        COMPONENT debian EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME troupe)
set(CPACK_PACKAGE_VENDOR Troupe)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains neural networks as a pipeline over unreliable machines")
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}")  # Where packages are put together,
set(CPACK_OUTPUT_FILE_PREFIX "${CMAKE_SOURCE_DIR}/build/packages")  # and where they go.
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
set(CPACK_PROJECT_CONFIG_FILE "${package}/generators.cmake")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_TROUPE_PROCESSOR "${CMAKE_SYSTEM_PROCESSOR}")

set(CPACK_DEBIAN_PACKAGE_RELEASE "1~${release}")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${TROUPE_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS adduser)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${package}/debian/postinst" "${package}/debian/prerm"
    "${package}/debian/postrm" "${package}/debian/conffiles")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Troupe splits a model into stages, places them on the devices of many
machines, and trains it as a pipeline. Machines may join and vanish while a
run is under way; the run goes on, and every number it computes depends on
its configuration alone.
.
The package has the program, services for a head and for a node, manual
pages, completion for shells, example configurations and documentation.")
include(CPack)
