// Texts that T5 writes, compared with those of transformers in float64. tests/golden/make.py
// --generated makes them.

#include "apps/samples/encoded_text.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/models/digest_of_run.h"
#include "apps/program.h"
#include "catch.h"
#include "core/json.h"
#include "storage/files/files.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::string golden_folder = TROUPE_TESTS "/golden/families/";

using Ids = std::vector<std::int32_t>;

Ids ids_at(const Value& text, const char* key) {
  Ids ids;
  for (const auto& one : *text.find(key)->list())
    ids.push_back(static_cast<std::int32_t>(*one.integer()));
  return ids;
}

/// Returns tokens as `sample` reads and writes them.
std::string spelled(const Ids& ids) {
  std::string text;
  for (const auto id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

std::string ascii_of(std::string text) {
  std::erase_if(text, [](char c) { return static_cast<unsigned char>(c) > 127; });
  return text;
}

Value generated_by(const std::string& family) {
  const auto bytes = storage::disk_files()->read(golden_folder + family + "/generated.json");
  REQUIRE(bytes.ok());
  auto tree = parse_json(bytes->text());
  REQUIRE(tree.ok());
  return *std::move(tree);
}

/// Imports a family whose config.json says that `end` ends texts.
std::string imported(const Workplace& here, const std::string& family, std::int64_t end) {
  namespace fs = std::filesystem;
  const fs::path folder = here.path() / "theirs";
  fs::create_directory(folder);
  fs::copy_file(golden_folder + family + "/model.safetensors", folder / "model.safetensors");
  const auto config = storage::disk_files()->read(golden_folder + family + "/config.json");
  REQUIRE(config.ok());
  std::string text(config->text());
  const std::string end_of_theirs = "\"eos_token_id\": 1,";
  REQUIRE(text.find(end_of_theirs) != std::string::npos);
  text.replace(text.find(end_of_theirs), end_of_theirs.size(),
               "\"eos_token_id\": " + std::to_string(end) + ",");
  here.write("theirs/config.json", text);
  const Ended in =
      troupe::tests::troupe(here, {"checkpoint", "import", "theirs", "--to", "imported"});
  INFO(in.err);
  REQUIRE(in.code == 0);
  return (here.path() / "imported").string();
}

/// Returns the greatest difference of the probabilities behind each token from those of a golden
/// text.
double difference_of(apps::EncodedText& encoded, const Value& text, Ids written) {
  const Ids tokens = ids_at(text, "tokens");
  const auto& wanted = *text.find("probabilities")->list();
  REQUIRE(wanted.size() == tokens.size());
  double most = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Tensor logits = encoded.behind(written);
    const auto classes = logits.shape().last();
    const float* last = logits.f32() + logits.count() - classes;
    double sum = 0;
    for (std::int64_t k = 0; k < classes; ++k) sum += std::exp(static_cast<double>(last[k]));
    for (std::int64_t k = 0; k < classes; ++k)
      most = std::max(most, std::abs(std::exp(static_cast<double>(last[k])) / sum -
                                     (*wanted[i].list())[static_cast<std::size_t>(k)].number()));
    written.push_back(tokens[i]);
  }
  return most;
}

}  // namespace

TEST_CASE("T5 writes the likeliest tokens that transformers writes", "[apps][families]") {
  const std::string family = GENERATE("t5", "t5_v1_1");
  CAPTURE(family);
  const Workplace here;
  const Value golden = generated_by(family);
  const auto end = *golden.find("end")->integer();
  imported(here, family, end);
  int ended_early = 0;
  for (const auto& text : *golden.find("texts")->list()) {
    auto tokens = ids_at(text, "tokens");
    const bool is_ended = tokens.back() == end;
    if (is_ended) tokens.pop_back();  // The end is not written.
    ended_early += is_ended ? 1 : 0;
    const auto sample = [&](const std::vector<std::string>& more) {
      std::vector<std::string> words{"sample",   "imported",
                                     "--prompt", spelled(ids_at(text, "source")),
                                     "--tokens", std::to_string(*golden.find("most")->integer())};
      words.insert(words.end(), more.begin(), more.end());
      const Ended ended = troupe::tests::troupe(here, words);
      INFO(ended.err);
      CHECK(ended.code == 0);
      return ended.out;
    };
    const auto likeliest = sample({"--temperature", "0"});
    CHECK(likeliest == (tokens.empty() ? "" : " " + spelled(tokens)) + "\n");
    if (is_ended) CHECK(sample({"--temperature", "0", "--stop", "1"}).size() > likeliest.size());
    if (&text != &golden.find("texts")->list()->front()) continue;
    CHECK(sample({"--top-p", "1e-9", "--seed", "5"}) == likeliest);
    CHECK(sample({"--top-k", "1", "--seed", "5"}) == likeliest);
    CHECK(sample({"--top-p", "1", "--seed", "5"}) == sample({"--seed", "5"}));
    CHECK(sample({"--seed", "3"}) == sample({"--seed", "3"}));
    CHECK(sample({"--seed", "3"}) != sample({"--seed", "4"}));
    CHECK(sample({"--temperature", "0", "--start", "9"}) != likeliest);
  }
  CHECK(ended_early > 0);
}

namespace {

/// Returns whether a decoder that keeps what it has read gives the bits of passes over all of it.
bool continues_with_equal_bits(apps::EncodedText& encoded, const Ids& written) {
  const auto last = [](const Tensor& logits) {
    const auto classes = logits.shape().last();
    return std::vector<float>(logits.f32() + logits.count() - classes,
                              logits.f32() + logits.count());
  };
  auto text = encoded.begin_text(std::ssize(written));
  for (std::size_t i = 0; i < written.size(); ++i) {
    const Ids so_far(written.begin(), written.begin() + static_cast<std::ptrdiff_t>(i + 1));
    if (last(encoded.continue_text({written[i]}, text)) != last(encoded.behind(so_far)))
      return false;
  }
  return true;
}

}  // namespace

TEST_CASE("T5 gives the probabilities of transformers, whatever is encoded once",
          "[apps][families]") {
  const std::string family = GENERATE("t5", "t5_v1_1");
  CAPTURE(family);
  const Workplace here;
  const Value golden = generated_by(family);
  const auto folder = imported(here, family, *golden.find("end")->integer());
  const auto files = storage::disk_files();
  const auto checkpoint = storage::open_newest_checkpoint(*files, folder);
  REQUIRE(checkpoint.ok());
  REQUIRE(checkpoint->has_value());
  auto model = apps::TrainedModel::open((*checkpoint)->checkpoint, 1);
  REQUIRE(model.ok());
  for (const auto& text : *golden.find("texts")->list()) {
    apps::EncodedText encoded(**model, ids_at(text, "source"));
    CHECK(difference_of(encoded, text, {0}) < 1e-5);
    CHECK(encoded.can_continue());
    Ids written = ids_at(text, "tokens");
    written.insert(written.begin(), 0);
    CHECK(continues_with_equal_bits(encoded, written));
    CHECK(difference_of(encoded, text, {9}) > 1e-3);  // A planted fault: another start.
  }
  Ids other = ids_at((*golden.find("texts")->list())[0], "source");
  other.back() = other.back() == 5 ? 6 : 5;
  apps::EncodedText encoded(**model, other);
  CHECK(difference_of(encoded, (*golden.find("texts")->list())[0], {0}) > 1e-4);
}

TEST_CASE("a run of T5 writes the text that another plan's run writes", "[apps]") {
  const Workplace here;
  std::string lines;
  for (int i = 0; i < 40; ++i)
    lines += R"({"source": "line )" + std::to_string(i) + R"(", "target": "enil )" +
             std::to_string(i) + "\"}\n";
  here.write("pairs.jsonl", lines);
  here.write("run.toml",
             "[model]\nkind = \"t5\"\nvocab = 256\nsource = 16\ntarget = 12\nwidth = 32\nlayers = "
             "2\nheads = 4\nhead_width = 8\nffn = 48\n[data]\ntrain = \"pairs.jsonl\"\n[batch]\n"
             "global = 8\nmicro = 2\n[optimizer]\nlr = 1e-2\n[precision]\ncompute = \"fp32\"\n"
             "[train]\nsteps = 12\n[sample]\nevery = 12\nprompt = \"line 7\"\ntokens = 9\nseed = "
             "4\n");
  const auto texts_of = [&](const std::string& name, const std::string& stages) {
    const Ended ended =
        troupe::tests::troupe(here, {"train", "run.toml", "--output", "json", "--set",
                                     "name=" + name, "--set", "pipeline.stages=" + stages});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const auto during = ended.events("sample");
    REQUIRE(during.size() == 1);
    const Ended after = troupe::tests::troupe(
        here, {"sample", name, "--prompt", "line 7", "--tokens", "9", "--seed", "4"});
    INFO(after.err);
    CHECK(after.code == 0);
    // Events replace bytes that are no UTF-8.
    CHECK(ascii_of(after.out) == ascii_of(*during[0].find("text")->text() + "\n"));
    return after.out;
  };
  const auto text = texts_of("one", "1");
  CHECK(text.size() > 1);
  CHECK(text == texts_of("four", "4"));
  // The data's texts end with a line break, so a text of the decoder has none.
  CHECK(text.find('\n') == text.size() - 1);

  const Ended longer =
      troupe::tests::troupe(here, {"sample", "one", "--prompt", "a text of 17 byte"});
  CHECK(longer.code == 3);
  CHECK(mentions(longer.err,
                 "--prompt: found 18 tokens, wanted at most as many as the encoder reads, 16"));
  const Ended beyond = troupe::tests::troupe(here, {"sample", "one", "--stop", "256"});
  CHECK(beyond.code == 3);
  CHECK(mentions(beyond.err, "--stop: token 256 is not in the model's vocabulary of 256"));
}
