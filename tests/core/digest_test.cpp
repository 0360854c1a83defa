#include "core/digest.h"

#include "catch.h"

using namespace troupe;

TEST_CASE("a digest is XXH3 with 128 bits", "[core]") {
  CHECK(to_string(digest_of(std::string())) == "99aa06d3014798d86001c324468d497f");
}

TEST_CASE("a digest in pieces equals that of the whole", "[core]") {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += static_cast<char>(i * 7);
  Digester digester;
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  digester.add(bytes.first(1));
  digester.add(bytes.subspan(1, 4'096));
  digester.add(bytes.subspan(4'097));
  CHECK(digester.finish() == digest_of(text));
}

TEST_CASE("a checksum is XXH3 with 64 bits and depends on its seed", "[core]") {
  CHECK(checksum_of({}) == 0x2d06800538d394c2);
  const std::string text = "stage";
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  CHECK(checksum_of(bytes, 1) != checksum_of(bytes, 2));
}
