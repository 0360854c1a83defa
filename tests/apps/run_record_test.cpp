// The descriptions in a run's folder, and the program's description of itself.

#include <filesystem>
#include <string>
#include <vector>

#include "apps/program.h"
#include "catch.h"
#include "core/json.h"
#include "storage/files/files.h"
#include "storage/tokenizer/tokenizer.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

constexpr const char* byte_level = R"(
name = "kept"
seed = 11
[model]
kind = "gpt2"
vocab = "auto"
context = 16
width = 16
heads = 2
layers = 2
[data]
train = "text.txt?tokenizer=words.json"
[batch]
global = 8
[pipeline]
stages = 2
schedule = "1f1b"
[checkpoint]
every = "2 steps"
[train]
steps = 4
)";

void write_text(const Workplace& here) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "to be or not to be, that is question " + std::to_string(i);
  here.write("text.txt", text);
  const auto tokenizer = storage::train_tokenizer(text, 300);
  REQUIRE(tokenizer.ok());
  here.write("words.json", tokenizer->json());
}

Ended trained_here(const Workplace& here, std::vector<std::string> words) {
  words.insert(words.begin(), "train");
  words.insert(words.end(), {"--output", "json"});
  Ended ended = troupe::tests::troupe(here, words);
  INFO(ended.err << ended.out);
  REQUIRE(ended.code == 0);
  return ended;
}

/// Returns the digest of the weights at a run's end.
std::string weights_of(const Ended& ended) {
  const auto saved = ended.events("checkpoint.saved");
  REQUIRE_FALSE(saved.empty());
  return *saved.back().find("weights")->text();
}

Value::List lives_of(const Workplace& here, const std::string& run) {
  const auto about = parse_json(here.read("runs/" + run + "/about.json"));
  REQUIRE(about.ok());
  CHECK(*about->find("run")->text() == "kept");
  return *about->find("lives")->list();
}

std::string word(const Value& life, std::size_t number) {
  return *life.find("command")->list()->at(number).text();
}

}  // namespace

TEST_CASE("the config.toml in a run's folder repeats the run", "[apps]") {
  const Workplace here;
  write_text(here);
  here.write("base.toml", byte_level);
  const Ended first = trained_here(here, {"base.toml", "--set", "optimizer.lr=0.003"});
  const std::string config = here.read("runs/kept/config.toml");
  INFO(config);
  CHECK(config.find("lr = 0.003") != std::string::npos);
  // Values that this machine chose are recorded as chosen.
  CHECK(config.find("compute = \"auto\"") == std::string::npos);

  // The second run moves the folder with this file aside.
  const Ended again = trained_here(here, {"runs/kept/config.toml"});
  CHECK(weights_of(again) == weights_of(first));
  CHECK(here.read("runs/kept/config.toml") == config);
  CHECK(here.read("runs/kept.1/config.toml") == config);
  const Ended spread = trained_here(here, {"runs/kept/config.toml", "--nodes", "2"});
  CHECK(weights_of(spread) == weights_of(first));
  CHECK(here.read("runs/kept/config.toml") == config);
}

TEST_CASE("a run's folder says who led it, from where and with which program", "[apps]") {
  const Workplace here;
  write_text(here);
  here.write("base.toml", byte_level);
  trained_here(here, {"base.toml"});
  const auto lives = lives_of(here, "kept");
  REQUIRE(lives.size() == 1);
  const Value& life = lives[0];
  CHECK(word(life, 1) == "train");
  CHECK(word(life, 2) == "base.toml");
  CHECK(*life.find("step")->integer() == 0);
  CHECK(*life.find("time")->integer() > 1'700'000'000);
  CHECK(std::filesystem::equivalent(*life.find("directory")->text(), here.path()));
  CHECK_FALSE(life.find("host")->text()->empty());
  const Ended version = troupe::tests::troupe(here, {"--version"});
  CHECK(version.out.starts_with("troupe " + *life.find("version")->text() + " (" +
                                *life.find("commit")->text() + ")\n"));

  const auto files = storage::disk_files();
  const auto kept =
      storage::Tokenizer::open(*files, (here.path() / "runs/kept/tokenizer.json").string());
  REQUIRE(kept.ok());
  const auto used = storage::Tokenizer::open(*files, (here.path() / "words.json").string());
  CHECK(kept->encode("to be or not") == used->encode("to be or not"));
  CHECK(kept->vocabulary() == used->vocabulary());
}

TEST_CASE("a resumed run adds an entry to its folder's description", "[apps]") {
  const Workplace here;
  write_text(here);
  here.write("base.toml", byte_level);
  const auto whole = weights_of(trained_here(here, {"base.toml"}));
  trained_here(here, {"base.toml", "--set", "train.steps=2"});
  const std::string config = here.read("runs/kept/config.toml");
  trained_here(here, {"base.toml", "--resume", "--set", "train.steps=2"});
  CHECK_FALSE(std::filesystem::exists(here.path() / "runs/kept/config.1.toml"));
  // The run resumes with its own configuration too.
  const auto longer =
      trained_here(here, {"runs/kept/config.toml", "--resume", "--set", "train.steps=4"});
  CHECK(weights_of(longer) == whole);
  CHECK(here.read("runs/kept/config.1.toml") == config);
  CHECK(here.read("runs/kept/config.toml") != config);
  const auto lives = lives_of(here, "kept");
  REQUIRE(lives.size() == 3);
  CHECK(*lives[0].find("step")->integer() == 0);
  CHECK(*lives[2].find("step")->integer() == 2);
  CHECK(word(lives[2], 3) == "--resume");
}

TEST_CASE("an about.json that cannot be read is kept, and a new one is written", "[apps]") {
  const Workplace here;
  write_text(here);
  here.write("base.toml", byte_level);
  trained_here(here, {"base.toml"});
  for (const std::string damaged : {"{\"lives\": [", "{\"lives\": 3}"}) {
    here.write("runs/kept/about.json", damaged);
    const Ended again = trained_here(here, {"base.toml", "--resume"});
    const auto warnings = again.events("warn");
    REQUIRE(warnings.size() == 1);
    const std::string text = *warnings[0].find("text")->text();
    CHECK(text.starts_with("runs/kept/about.json: "));
    CHECK(text.ends_with("the file is now runs/kept/about.json.damaged, and a new one is begun"));
    CHECK(here.read("runs/kept/about.json.damaged") == damaged);
    CHECK(lives_of(here, "kept").size() == 1);
  }
}

TEST_CASE("the program prints its version, its commit and its libraries", "[apps]") {
  const Workplace here;
  const Ended said = troupe::tests::troupe(here, {"--version"});
  CHECK(said.code == 0);
  CHECK(said.out == troupe::tests::troupe(here, {"version"}).out);
  CHECK(said.out.ends_with("\n"));
  CHECK(said.out.find("\n\n") == std::string::npos);
  const std::string line = said.out.substr(0, said.out.find('\n'));
  const auto open = line.find(" (");
  REQUIRE(open != std::string::npos);
  std::string commit = line.substr(open + 2, line.size() - open - 3);
  if (commit.ends_with("-dirty")) commit.resize(commit.size() - 6);
  if (commit != "unknown") {
    CHECK(commit.size() >= 12);
    CHECK(commit.find_first_not_of("0123456789abcdef") == std::string::npos);
  }
  for (const char* name : {"compiler", "CAF", "ZeroMQ", "OpenSSL", "msgpack", "Highway", "xxHash",
                           "tomlplusplus", "nlohmann-json", "CLI11", "GPUs"})
    CHECK(said.out.find("\n" + std::string(name) + " ") != std::string::npos);
}

TEST_CASE("sample and eval find the tokenizer of a run", "[apps]") {
  const Workplace here;
  write_text(here);
  here.write("base.toml", byte_level);
  const auto said = [&](const std::vector<std::string>& words) {
    const Ended ended = troupe::tests::troupe(here, words);
    INFO(ended.err);
    CHECK(ended.code == 0);
    return ended.out;
  };
  const auto check = [&] {
    const std::string sampled = said({"sample", "kept", "--prompt", "to be", "--tokens", "3"});
    CHECK(sampled == said({"sample", "kept", "--prompt", "to be", "--tokens", "3", "--tokenizer",
                           "words.json"}));
    const auto loss_on = [&](const std::string& data) {
      const std::string out = said({"eval", "kept", "--data", data});
      CHECK(out.find(" nats, perplexity ") != std::string::npos);
      return out.substr(0, out.find(':'));
    };
    CHECK(loss_on("text.txt") == loss_on("text.txt?tokenizer=words.json"));
  };
  trained_here(here, {"base.toml", "--set", "model.vocab=300"});
  check();
  // Shards of `data prepare` have their tokenizer beside them.
  said({"data", "prepare", "text.txt", "--to", "book", "--train-tokenizer", "300"});
  trained_here(here, {"base.toml", "--set", "data.train=book_*.bin", "--set", "model.vocab=300"});
  check();
}

TEST_CASE("a tokenizer of characters goes with a run from its data to its export", "[apps]") {
  const Workplace here;
  write_text(here);
  here.write("base.toml", byte_level);
  // Made by tests/golden/make_tokenizers.py: a small one like that of Llama 2.
  const auto golden =
      storage::disk_files()->read(TROUPE_TEST_DATA "/../golden/tokenizers/llama2.json");
  REQUIRE(golden.ok());
  const auto tree = parse_json(golden->text());
  REQUIRE(tree.ok());
  const std::string json = to_json(*tree->find("tokenizer"));
  here.write("llama.json", json);
  const auto done = [&](const std::vector<std::string>& words) {
    const Ended ended = troupe::tests::troupe(here, words);
    INFO(ended.err);
    CHECK(ended.code == 0);
    return ended.out;
  };
  done({"data", "prepare", "text.txt", "--to", "book", "--tokenizer", "llama.json"});
  CHECK(here.read("book_tokenizer.json") == json);
  trained_here(here, {"base.toml", "--set", "data.train=book_*.bin", "--set", "model.vocab=600"});
  CHECK(here.read("runs/kept/tokenizer.json") == json);
  const auto text = done({"sample", "kept", "--prompt", "to b\u00e9 \u4f60", "--tokens", "9"});
  CHECK(text.starts_with("to b\u00e9 \u4f60"));
  done({"eval", "kept", "--data", "text.txt"});
  done({"checkpoint", "export", "kept", "--to", "out"});
  CHECK(here.read("out/tokenizer.json") == json);
}
