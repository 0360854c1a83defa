#include "storage/checkpoint/manifest.h"

#include "catch.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

Manifest small() {
  Manifest manifest;
  manifest.step = 12;
  manifest.samples = 384;
  manifest.model.set("kind", "mlp");
  manifest.recipe.set("seed", 1);
  Part part;
  part.file = "weights.safetensors";
  part.bytes = 100;
  part.digest = {1, 2};
  part.tensors = {{"w", StoredType::f32, Shape{2, 3}, {3, 4}}};
  manifest.parts = {part};
  manifest.weights_digest = weights_digest(manifest.parts);
  return manifest;
}

/// Replaces a piece of the text and corrects the digest: forgery, not accidental damage.
std::string forged(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  const auto digits = text.size() - 4 - 32;
  text.replace(digits, 32, std::string(32, '0'));
  return text.replace(digits, 32, to_string(digest_of(text)));
}

std::string error_of(const std::string& text) {
  const auto read = read_manifest(text);
  return read ? "none" : read.error().text;
}

}  // namespace

TEST_CASE("a manifest reads back equal", "[storage]") {
  const auto text = write_manifest(small());
  const auto read = read_manifest(text);
  REQUIRE(read);
  CHECK(read->step == 12);
  CHECK(read->samples == 384);
  CHECK(read->model == small().model);
  CHECK(read->parts[0].file == "weights.safetensors");
  CHECK(read->parts[0].bytes == 100);
  CHECK(read->parts[0].digest == Digest{1, 2});
  CHECK(read->parts[0].tensors[0].shape == Shape{2, 3});
  CHECK(write_manifest(*read) == text);
}

TEST_CASE("changing or cutting a manifest at any byte is an error", "[storage]") {
  const auto text = write_manifest(small());
  for (std::size_t at = 0; at < text.size(); ++at) {
    auto other = text;
    other[at] ^= 1;
    REQUIRE(error_of(other) != "none");
    REQUIRE(error_of(text.substr(0, at)) != "none");
  }
}

TEST_CASE("a forged manifest with invalid fields is refused", "[storage]") {
  const auto text = write_manifest(small());
  CHECK(error_of(forged(text, "384", "385")) == "none");
  CHECK(error_of(forged(text, "weights.safetensors", "../weights.safetensors")) ==
        "parts: \"../weights.safetensors\" is no plain file name");
  CHECK(error_of(forged(text, "weights.safetensors", ".hidden")) ==
        "parts: \".hidden\" is no plain file name");
  CHECK(error_of(forged(text, "\"step\": 12", "\"step\": -1")) ==
        "\"step\" is not an integer of at least 0");
  CHECK(error_of(forged(text, "checkpoint 1", "checkpoint 9")) ==
        "is of format \"troupe checkpoint 9\"; \"troupe checkpoint 1\" was wanted");
  CHECK(error_of(forged(text, "\"F32\"", "\"F31\"")) ==
        "parts: weights.safetensors: tensor \"w\": its type is not known");
  CHECK(error_of(forged(text, "\"F32\"", "\"I32\"")) == "its weights do not match its digest");
}
