#include "core/byte_text.h"

#include "catch.h"

TEST_CASE("numbers of bytes are written with three digits and a unit", "[core]") {
  using troupe::byte_text;
  CHECK(byte_text(0) == "0 B");
  CHECK(byte_text(1023) == "1023 B");
  CHECK(byte_text(1024) == "1.00 KiB");
  CHECK(byte_text(12'638'013'440) == "11.8 GiB");
  CHECK(byte_text(495'512'185'278'464) == "451 TiB");
  CHECK(byte_text(std::int64_t{9'000'000'000'000'000'000}) == "7994 PiB");
}
