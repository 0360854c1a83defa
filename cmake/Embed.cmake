# Writes a source that holds files as texts, so that the program needs no files beside it: the file
# page.css becomes the functions page_css() and page_css_sha256(), which the header declares. The
# latter returns hexadecimal digits.
# Usage: cmake -DOUTPUT=... -DHEADER=... -DNAMESPACE=troupe::apps -DFOLDER=... -DFILES=page.html,page.css
#   -P Embed.cmake
set(text "// Written by cmake/Embed.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\n")
string(REPLACE "," ";" files "${FILES}")
foreach(file IN LISTS files)
  string(REPLACE "." "_" name "${file}")
  # As bytes: CMake would change some characters of a text.
  file(READ "${FOLDER}/${file}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," numbers "${bytes}")
  string(REGEX REPLACE "((0x..,){20})" "\\1\n" numbers "${numbers}")
  string(APPEND text "static const unsigned char ${name}_bytes[] = {\n${numbers}};\n"
    "std::string_view ${name}() {\n"
    "  return {reinterpret_cast<const char*>(${name}_bytes), sizeof ${name}_bytes};\n}\n\n")
  file(SHA256 "${FOLDER}/${file}" digest)
  string(APPEND text "std::string_view ${name}_sha256() { return \"${digest}\"; }\n\n")
endforeach()
string(APPEND text "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${text}")
