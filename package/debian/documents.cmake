# Writes the documents that Debian's policy wants. Given: doc, package, debian_changelog,
# upstream_changelog.

function(write_compressed source path)
  execute_process(COMMAND gzip -9nc "${source}" OUTPUT_FILE "${path}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

configure_file("${package}/debian/copyright" "${doc}/copyright" COPYONLY FILE_PERMISSIONS
               OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
write_compressed("${debian_changelog}" "${doc}/changelog.Debian.gz")
write_compressed("${upstream_changelog}" "${doc}/changelog.gz")
