#include "transport/control/term_seal.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "catch.h"
#include "storage/files/temporary_folder.h"

using namespace troupe;
using namespace troupe::transport;

TEST_CASE("a proof is valid for one term and one secret", "[transport]") {
  const auto seal = TermSeal::of_key("a secret key of a head");
  const auto proof = seal.prove(7);
  CHECK(proof.size() == 64);
  CHECK(seal.proves(7, proof));
  CHECK_FALSE(seal.proves(8, proof));
  CHECK_FALSE(seal.proves(7, ""));
  CHECK_FALSE(seal.proves(7, proof.substr(1)));
  CHECK(TermSeal::of_key("a secret key of a head").proves(7, proof));
  CHECK_FALSE(TermSeal::of_key("another one").proves(7, proof));
  CHECK_FALSE(TermSeal().proves(7, TermSeal().prove(7)));
}

TEST_CASE("heads of one user share a secret that other users cannot read", "[transport]") {
  const auto folder = *storage::TemporaryFolder::make();
  const auto path = (std::filesystem::path(folder.path()) / "state" / "secret").string();
  const auto first = TermSeal::of_file(path);
  REQUIRE(first.ok());
  const auto second = TermSeal::of_file(path);
  REQUIRE(second.ok());
  CHECK(second->proves(3, first->prove(3)));
  struct stat facts {};
  REQUIRE(stat(path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);

  REQUIRE(chmod(path.c_str(), 0644) == 0);
  CHECK(TermSeal::of_file(path).error().text.find("others than its owner") != std::string::npos);
  REQUIRE(chmod(path.c_str(), 0600) == 0);
  std::ofstream(path, std::ios::trunc) << "short";
  CHECK(TermSeal::of_file(path).error().text.find("no secret of 32 bytes") != std::string::npos);
}
