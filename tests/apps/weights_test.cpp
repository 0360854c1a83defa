// Weights that leave as a folder come back without any option, and `eval` agrees with training.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "apps/program.h"
#include "catch.h"
#include "core/json.h"
#include "storage/tokenizer/tokenizer.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// Trains a small language model on a text with a tokenizer of its own.
Ended train_with_tokenizer(const Workplace& here) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "to be or not to be, that is question " + std::to_string(i);
  here.write("text.txt", text);
  here.write("valid.txt", text.substr(0, 2000));
  const auto tokenizer = storage::train_tokenizer(text, 300);
  REQUIRE(tokenizer.ok());
  here.write("words.json", tokenizer->json());
  here.write("own.toml", R"(
name = "own"
[model]
kind = "gpt2"
vocab = "auto"
context = 16
width = 16
heads = 2
layers = 2
[data]
train = "text.txt?tokenizer=words.json"
validate = "valid.txt?tokenizer=words.json"
[batch]
global = 8
[train]
steps = 6
eval_batches = 3
export = "final.safetensors"
)");
  Ended ended = tests::troupe(here, {"train", "own.toml", "--output", "json"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  return ended;
}

std::string weights_digest(const Workplace& here, const std::string& checkpoints) {
  const Ended ended =
      tests::troupe(here, {"checkpoint", "inspect", checkpoints, "--output", "json"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  return *parse_json(ended.out)->find("weights")->text();
}

void goes_well(const Ended& ended) {
  INFO(ended.err);
  CHECK(ended.code == 0);
}

}  // namespace

TEST_CASE("an exported folder is imported without options, with its tokenizer", "[apps]") {
  const Workplace here;
  train_with_tokenizer(here);
  goes_well(tests::troupe(here, {"checkpoint", "export", "own", "--to", "out"}));
  const auto config = parse_json(here.read("out/config.json"));
  REQUIRE(config.ok());
  CHECK(*config->find("model_type")->text() == "gpt2");
  CHECK(*config->find("n_embd")->integer() == 16);
  CHECK(here.read("out/tokenizer.json") == here.read("runs/own/tokenizer.json"));

  goes_well(tests::troupe(here, {"checkpoint", "import", "out", "--to", "again/checkpoints"}));
  CHECK(weights_digest(here, "again") == weights_digest(here, "own"));
  const std::vector<std::string> words = {"--prompt", "to be", "--tokens", "8"};
  const auto sample = [&](const std::string& what) {
    std::vector<std::string> all = {"sample", what};
    all.insert(all.end(), words.begin(), words.end());
    return tests::troupe(here, all);
  };
  goes_well(sample("again"));
  CHECK(sample("again").out == sample("own").out);

  const Ended taken = tests::troupe(here, {"checkpoint", "export", "own", "--to", "out"});
  CHECK(taken.code == 3);
  CHECK(taken.err.find("is there already") != std::string::npos);
}

TEST_CASE("weights of a model that Hugging Face does not know are imported again, too", "[apps]") {
  const Workplace here;
  here.write("a.toml", R"(
name = "a"
[model]
kind = "mlp"
dims = [16, 4, 2]
[data]
train = "made:gaussians?classes=2"
[batch]
global = 4
[train]
steps = 2
)");
  goes_well(tests::troupe(here, {"train", "a.toml"}));
  goes_well(tests::troupe(here, {"checkpoint", "export", "a", "--to", "out"}));
  goes_well(tests::troupe(here, {"checkpoint", "import", "out", "--to", "again"}));
  CHECK(weights_digest(here, "again") == weights_digest(here, "a"));
  here.write("out/config.json", R"({"troupe": {"kind": "gpt9"}})");
  const Ended unknown = tests::troupe(here, {"checkpoint", "import", "out", "--to", "third"});
  CHECK(unknown.code == 3);
  CHECK(unknown.err.find("no model of the kind \"gpt9\"") != std::string::npos);
}

TEST_CASE("norms of BERT's first files are called gamma and beta", "[apps]") {
  const Workplace here;
  const std::string golden = TROUPE_TESTS "/golden/families/bert/";
  std::ifstream file(golden + "model.safetensors", std::ios::binary);
  std::ostringstream whole;
  whole << file.rdbuf();
  std::string bytes = whole.str();
  // The header's length stays: spaces are allowed behind it.
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  std::string header = bytes.substr(8, length);
  for (const auto& [ours, theirs] : {std::pair{"LayerNorm.weight", "LayerNorm.gamma"},
                                     std::pair{"LayerNorm.bias", "LayerNorm.beta"}})
    for (auto at = header.find(ours); at != header.npos; at = header.find(ours, at)) {
      header.replace(at, std::strlen(ours), theirs);
      if (std::strlen(ours) > std::strlen(theirs)) header += ' ';
    }
  REQUIRE(mentions(header, "LayerNorm.beta"));
  header.resize(length, ' ');
  std::filesystem::create_directories(here.path() / "old");
  std::filesystem::copy(golden + "config.json", here.path() / "old");
  here.write("old/model.safetensors", bytes.substr(0, 8) + header + bytes.substr(8 + length));
  goes_well(tests::troupe(here, {"checkpoint", "import", "old", "--to", "old/checkpoints"}));
  goes_well(tests::troupe(here, {"checkpoint", "import", golden, "--to", "new/checkpoints"}));
  CHECK(weights_digest(here, "old") == weights_digest(here, "new"));
}

TEST_CASE("a run begins with weights that have the names of another library", "[apps]") {
  const Workplace here;
  train_with_tokenizer(here);
  goes_well(tests::troupe(here, {"checkpoint", "export", "own", "--to", "out"}));
  // A base model of Hugging Face saves its tensors without the prefix of the language model around
  // it; a language model has it.
  const std::string plain = here.read("out/model.safetensors");
  std::string prefixed = plain;
  std::uint64_t length = 0;
  std::memcpy(&length, plain.data(), sizeof length);
  auto header = parse_json(std::string_view(plain).substr(8, length));
  REQUIRE(header.ok());
  Value renamed = Value::Map{};
  for (const auto& entry : *header->map())
    renamed.set(entry.key == "__metadata__" ? entry.key : "transformer." + entry.key, entry.value);
  const std::string text = to_json(renamed);
  length = text.size();
  prefixed.assign(reinterpret_cast<const char*>(&length), sizeof length);
  std::uint64_t before = 0;
  std::memcpy(&before, plain.data(), sizeof before);
  here.write("named.safetensors", prefixed + text + plain.substr(8 + before));
  const auto begin = [&](const std::string& name, const std::string& init) {
    goes_well(tests::troupe(
        here, {"train", "own.toml", "-q", "--set", "name=" + name, "--set",
               "train.export=" + name + ".safetensors", "--set", "model.init=" + init}));
    return weights_digest(here, name);
  };
  CHECK(begin("other", "named.safetensors") == begin("same", "out/model.safetensors"));
}

TEST_CASE("a state dict of torchvision is imported and trained", "[apps]") {
  const Workplace here;
  const std::string golden = TROUPE_TESTS "/golden/images/basic/model.safetensors";
  here.write(
      "net.toml",
      "[model]\nkind = \"resnet18\"\nwidths = [10, 12]\nblocks = [1, 2]\nchannels = 2\n"
      "classes = 7\n[data]\ntrain = \"made:glyphs\"\n[batch]\nglobal = 2\n[train]\nsteps = 1\n");
  const Ended imported =
      tests::troupe(here, {"checkpoint", "import", golden, "--config", "net.toml", "--to", "net"});
  INFO(imported.err);
  REQUIRE(imported.code == 0);
  CHECK_FALSE(mentions(imported.err + imported.out, "num_batches_tracked"));
  const Ended exported =
      tests::troupe(here, {"checkpoint", "export", "net", "--to", "out.safetensors"});
  INFO(exported.err);
  REQUIRE(exported.code == 0);
  CHECK(mentions(here.read("out.safetensors"), "layer2.0.downsample.1.running_var"));
}

TEST_CASE("weights in bf16 come back as they were, and can be sampled and trained", "[apps]") {
  const Workplace here;
  train_with_tokenizer(here);
  goes_well(tests::troupe(here, {"checkpoint", "export", "own", "--to", "out"}));
  const std::string plain = here.read("out/model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, plain.data(), sizeof length);
  const auto header = parse_json(std::string_view(plain).substr(8, length));
  REQUIRE(header.ok());
  // bf16 has the upper half of each number.
  Value halved = Value::Map{};
  std::string numbers;
  for (const auto& entry : *header->map()) {
    Value tensor = entry.value;
    if (const Value* offsets = tensor.find("data_offsets")) {
      tensor.set("dtype", "BF16");
      Value::List half;
      for (const auto& offset : *offsets->list()) half.push_back(*offset.integer() / 2);
      tensor.set("data_offsets", std::move(half));
    }
    halved.set(entry.key, std::move(tensor));
  }
  for (std::size_t at = 8 + length; at < plain.size(); at += 4) numbers += plain.substr(at + 2, 2);
  std::string text = to_json(halved);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  length = text.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  here.write("out/model.safetensors", file + text + numbers);

  goes_well(tests::troupe(here, {"checkpoint", "import", "out", "--to", "half/checkpoints"}));
  goes_well(tests::troupe(here, {"sample", "half", "--prompt", "to be", "--tokens", "4"}));
  goes_well(tests::troupe(here, {"train", "own.toml", "-q", "--set", "name=on", "--set",
                                 "model.init=out/model.safetensors"}));
  goes_well(tests::troupe(here, {"checkpoint", "export", "half", "--to", "back.safetensors"}));
  CHECK(here.read("back.safetensors").ends_with(numbers));
}

TEST_CASE("weights in several files with an index are exported, imported and trained", "[apps]") {
  const Workplace here;
  train_with_tokenizer(here);
  goes_well(tests::troupe(here, {"checkpoint", "export", "own", "--to", "one"}));
  goes_well(tests::troupe(here, {"checkpoint", "export", "own", "--to", "out", "--shard", "12kB"}));
  const auto index = parse_json(here.read("out/model.safetensors.index.json"));
  REQUIRE(index.ok());
  std::set<std::string> names;
  for (const auto& entry : *index->find("weight_map")->map()) names.insert(*entry.value.text());
  REQUIRE(names.size() > 2);
  CHECK(*names.begin() == "model-00001-of-0000" + std::to_string(names.size()) + ".safetensors");
  std::uint64_t bytes = 0;
  for (const auto& name : names) bytes += std::filesystem::file_size(here.path() / "out" / name);
  CHECK(bytes >
        static_cast<std::uint64_t>(*index->find("metadata")->find("total_size")->integer()));

  // All that lies there comes back as it was, and the same weights are in both folders.
  here.write("out/generation_config.json", "{\"eos_token_id\": 0}\n");
  goes_well(tests::troupe(here, {"checkpoint", "import", "out", "--to", "again/checkpoints"}));
  CHECK(weights_digest(here, "again") == weights_digest(here, "own"));
  goes_well(tests::troupe(here, {"checkpoint", "export", "again", "--to", "back"}));
  for (const auto& entry : std::filesystem::directory_iterator(here.path() / "out")) {
    const auto name = entry.path().filename().string();
    CAPTURE(name);
    CHECK(here.read("back/" + name) == here.read("out/" + name));
  }
  goes_well(tests::troupe(here, {"checkpoint", "export", "again", "--to", "joined.safetensors"}));

  const auto begin = [&](const std::string& name, const std::string& init) {
    goes_well(tests::troupe(
        here, {"train", "own.toml", "-q", "--set", "name=" + name, "--set", "model.init=" + init}));
    return weights_digest(here, name);
  };
  const auto from_one = begin("a", "./one");
  CHECK(begin("b", "out/") == from_one);
  CHECK(begin("c", "joined.safetensors") == from_one);
  here.write("from.toml", R"(
[model]
from = "out"
[data]
train = "text.txt?tokenizer=words.json"
[batch]
global = 8
[train]
steps = 6
)");
  goes_well(tests::troupe(here, {"train", "from.toml", "-q"}));
  CHECK(weights_digest(here, "from") == from_one);

  const Ended file = tests::troupe(
      here, {"checkpoint", "export", "own", "--to", "a.safetensors", "--shard", "1GB"});
  CHECK(file.code == 3);
  CHECK(file.err.find("--shard: several files need a folder") != std::string::npos);
  const Ended none = tests::troupe(here, {"checkpoint", "import", "runs", "--to", "third"});
  CHECK(none.code == 3);
  CHECK(none.err.find("found neither model.safetensors nor") != std::string::npos);
}

TEST_CASE("exported weights may be rounded to bf16 or fp16", "[apps]") {
  const Workplace here;
  train_with_tokenizer(here);
  for (const std::string type : {"bf16", "fp16"}) {
    CAPTURE(type);
    const std::string folder = "out-" + type;
    goes_well(
        tests::troupe(here, {"checkpoint", "export", "own", "--to", folder, "--dtype", type}));
    const auto config = parse_json(here.read(folder + "/config.json"));
    REQUIRE(config.ok());
    CHECK(*config->find("torch_dtype")->text() == (type == "bf16" ? "bfloat16" : "float16"));
    goes_well(tests::troupe(here, {"checkpoint", "import", folder, "--to", type}));
    const Ended seen = tests::troupe(here, {"checkpoint", "inspect", type, "--output", "json"});
    const auto summary = parse_json(seen.out);
    for (const auto& tensor : *summary->find("tensors")->list())
      CHECK(*tensor.find("type")->text() == (type == "bf16" ? "BF16" : "F16"));
    // A second rounding changes nothing.
    goes_well(tests::troupe(
        here, {"checkpoint", "export", type, "--to", type + ".safetensors", "--dtype", type}));
    CHECK(here.read(type + ".safetensors") == here.read(folder + "/model.safetensors"));
  }
}

TEST_CASE("a run says where its exported weights are, and a lone file says what is missing",
          "[apps]") {
  const Workplace here;
  train_with_tokenizer(here);
  const Ended again = tests::troupe(here, {"train", "own.toml", "--resume", "--output", "plain"});
  CHECK(again.err.find("weights: " + (here.path() / "final.safetensors").string()) !=
        std::string::npos);
  const Ended alone =
      tests::troupe(here, {"checkpoint", "import", "final.safetensors", "--to", "again"});
  CHECK(alone.code == 3);
  CHECK(alone.err.find("import a folder that `troupe checkpoint export` wrote") !=
        std::string::npos);
}

TEST_CASE("eval without data repeats the evaluation of training", "[apps]") {
  const Workplace here;
  const auto evals = train_with_tokenizer(here).events("eval");
  REQUIRE(!evals.empty());
  const Ended ended = tests::troupe(here, {"eval", "own", "--output", "json"});
  goes_well(ended);
  const auto result = parse_json(ended.out);
  REQUIRE(result.ok());
  CHECK(result->find("loss")->number() ==
        Approx(evals.back().find("loss")->number()).epsilon(1e-5));
  CHECK(*result->find("samples")->integer() == 24);
  CHECK(result->find("perplexity")->number() == Approx(std::exp(result->find("loss")->number())));
  // A token of this tokenizer has more than one byte and less than four.
  const double bits = result->find("bits_per_byte")->number();
  const double bits_per_token = result->find("loss")->number() / std::log(2);
  CHECK(bits < bits_per_token);
  CHECK(bits > bits_per_token / 4);
  CHECK(tests::troupe(here, {"eval", "own"}).out.find(" bits per byte over 24 of ") !=
        std::string::npos);
  CHECK(tests::troupe(here, {"eval", "own"}).out.find(", as in training") != std::string::npos);
  // The validation text is short.
  goes_well(tests::troupe(
      here, {"train", "own.toml", "-q", "--set", "name=long", "--set", "train.eval_batches=20"}));
  const std::string said = tests::troupe(here, {"eval", "long"}).out;
  INFO(said);
  CHECK(said.find("over 160 samples (the data have ") != std::string::npos);
  CHECK(said.find(": the first ones count again), as in training: ") != std::string::npos);
}

TEST_CASE("eval without data says why it cannot know the data", "[apps]") {
  const Workplace here;
  train_with_tokenizer(here);
  goes_well(tests::troupe(here, {"checkpoint", "export", "own", "--to", "out"}));
  goes_well(tests::troupe(here, {"checkpoint", "import", "out", "--to", "again/checkpoints"}));
  const Ended unknown = tests::troupe(here, {"eval", "again"});
  CHECK(unknown.code == 3);
  CHECK(unknown.err.find("give --data") != std::string::npos);
}

TEST_CASE("folders of transformers and timm come out as they came", "[apps]") {
  const Workplace here;
  const std::string golden = TROUPE_TESTS "/golden/";
  const auto text = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream whole;
    whole << file.rdbuf();
    return whole.str();
  };
  for (const std::string path :
       {"families/llama3", "families/mistral", "families/qwen2", "families/qwen3",
        "families/gpt_neox", "families/gptj", "families/phi", "families/gemma", "families/gemma2",
        "families/mixtral", "families/qwen3_moe", "families/t5", "families/t5_v1_1",
        "families/bert", "images/vit"}) {
    CAPTURE(path);
    const std::string name = path.substr(path.find('/') + 1);
    goes_well(tests::troupe(
        here, {"checkpoint", "import", golden + path, "--to", name + "/checkpoints"}));
    goes_well(tests::troupe(here, {"checkpoint", "export", name, "--to", name + "/out"}));
    CHECK(here.read(name + "/out/config.json") == text(golden + path + "/config.json"));
    CHECK(
        (here.read(name + "/out/model.safetensors") == text(golden + path + "/model.safetensors")));
  }
}

TEST_CASE("a run that began with a folder exports what its config.json says", "[apps]") {
  const Workplace here;
  const std::string golden = TROUPE_TESTS "/golden/families/llama3/";
  std::filesystem::create_directories(here.path() / "m");
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy(golden + name, here.path() / "m");
  const std::string generation = "{\n  \"eos_token_id\": 2\n}\n";
  here.write("m/generation_config.json", generation);
  here.write("tuned.toml", R"(
name = "tuned"
[model]
from = "./m"
rope_theta = 20000.0
[data]
train = "made:markov?states=48"
[batch]
global = 2
[train]
steps = 1
)");
  goes_well(tests::troupe(here, {"train", "tuned.toml"}));
  // The run needs the folder no more.
  std::filesystem::remove_all(here.path() / "m");
  goes_well(tests::troupe(here, {"checkpoint", "export", "tuned", "--to", "out"}));
  std::ifstream file(golden + "config.json");
  std::ostringstream whole;
  whole << file.rdbuf();
  auto wanted = parse_json(whole.str());
  auto config = parse_json(here.read("out/config.json"));
  REQUIRE((wanted.ok() && config.ok()));
  wanted->find("rope_parameters")->set("rope_theta", 20000.0);
  std::erase_if(*config->map(), [](const auto& entry) { return entry.key == "troupe"; });
  CHECK(to_json(*config) == to_json(*wanted));
  CHECK(here.read("out/generation_config.json") == generation);
  goes_well(
      tests::troupe(here, {"checkpoint", "export", "tuned", "--to", "small", "--dtype", "bf16"}));
  CHECK(mentions(here.read("small/config.json"), "bfloat16"));
}

TEST_CASE("a folder whose model this program does not compute is refused by key", "[apps]") {
  const Workplace here;
  const std::string folder = TROUPE_TESTS "/golden/families/llama3/";
  std::ifstream file(folder + "config.json");
  std::ostringstream whole;
  whole << file.rdbuf();
  auto config = parse_json(whole.str());
  REQUIRE(config.ok());
  std::filesystem::create_directories(here.path() / "bad");
  std::filesystem::copy(folder + "model.safetensors", here.path() / "bad");
  config->find("rope_parameters")->set("rope_type", "dynamic");
  here.write("bad/config.json", to_json(*config));
  const Ended refused = tests::troupe(here, {"checkpoint", "import", "bad", "--to", "x"});
  CHECK(refused.code == 3);
  CHECK(refused.err.find("config.json: rope_parameters.rope_type: found \"dynamic\", wanted one of "
                         "default, linear, llama3, yarn") != std::string::npos);

  config->find("rope_parameters")->set("rope_type", "llama3");
  config->set("new_key", 1);
  config->set("other_key", true);
  here.write("bad/config.json", to_json(*config));
  const auto import_with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"checkpoint", "import", "bad", "--to", "x"};
    all.insert(all.end(), more.begin(), more.end());
    return tests::troupe(here, all);
  };
  const Ended unknown = import_with({"--accept", "new_key"});
  CHECK(unknown.code == 3);
  CHECK(mentions(unknown.err, "other_key: found true, wanted no such key"));
  goes_well(import_with({"--accept", "new_key,other_key"}));
}
