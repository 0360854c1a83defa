// Samples that a run writes while it trains.

#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "apps/events/event_text.h"
#include "apps/program.h"
#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

using Words = std::vector<std::string>;

const std::string text_config = R"(name = "book"
[model]
kind = "gpt2"
vocab = 256
context = 16
width = 16
heads = 2
layers = 2
[data]
train = "book.txt"
[batch]
global = 8
[optimizer]
lr = 1e-2
[train]
steps = 6
[sample]
every = 2
prompt = "You"
tokens = 12
seed = 5
)";

/// A folder with a text and a configuration that writes samples of it.
struct Book {
  Book() {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "You may copy line " + std::to_string(i) + ".\n";
    here.write("book.txt", text);
    here.write("book.toml", text_config);
  }
  Ended train(const Words& more) const {
    Words words = {"train", "book.toml", "--output", "json"};
    words.insert(words.end(), more.begin(), more.end());
    return tests::troupe(here, words);
  }

  Workplace here;
};

/// Returns the samples as "STEP TEXT", one for each line.
std::string samples_in(const Ended& ended) {
  std::string all;
  for (const auto& sample : ended.events("sample"))
    all += text_of(sample, "step") + " " + text_of(sample, "text") + "|";
  return all;
}

/// Returns the texts of all samples that the run's folder has.
std::map<std::int64_t, std::string> samples_by_step(const Book& book) {
  std::map<std::int64_t, std::string> samples;
  std::istringstream events(book.here.read("runs/book/events.jsonl"));
  for (std::string line; std::getline(events, line) && line.ends_with('}');) {
    const auto event = parse_json(line);
    if (event && text_of(*event, "type") == "sample")
      samples[integer_in(*event, "step")] = text_of(*event, "text");
  }
  return samples;
}

std::string last_weights(const Ended& ended) {
  const auto saved = ended.events("checkpoint.saved");
  REQUIRE_FALSE(saved.empty());
  return text_of(saved.back(), "weights");
}

}  // namespace

TEST_CASE("a run writes samples, and troupe sample writes the same ones", "[apps]") {
  const Book book;
  const Ended trained = book.train({});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const auto samples = trained.events("sample");
  REQUIRE(samples.size() == 3);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto step = integer_in(samples[i], "step");
    CHECK(step == static_cast<std::int64_t>(2 * i + 2));
    CHECK(text_of(samples[i], "prompt") == "You");
    const Ended again = tests::troupe(
        book.here, {"sample", "runs/book/checkpoints/step-00000000000" + std::to_string(step),
                    "--prompt", "You", "--tokens", "12", "--seed", "5"});
    REQUIRE(again.code == 0);
    // A byte that is no character stands for itself there.
    if (text_of(samples[i], "text").find("\xef\xbf\xbd") == std::string::npos)
      CHECK(again.out == "You" + text_of(samples[i], "text") + "\n");
  }
  CHECK(mentions(book.here.read("runs/book/events.jsonl"), R"("type":"sample")"));
}

TEST_CASE("each token is that which follows a prompt of the text before it", "[apps]") {
  const Book book;
  REQUIRE(book.train({"--set", "train.steps=20"}).code == 0);
  const auto sample = [&](const std::string& prompt, int tokens) {
    const Ended ended = tests::troupe(book.here, {"sample", "book", "--prompt", prompt, "--tokens",
                                                  std::to_string(tokens), "--temperature", "0"});
    REQUIRE(ended.code == 0);
    REQUIRE(ended.out.size() == prompt.size() + static_cast<std::size_t>(tokens) + 1);
    return ended.out.substr(0, ended.out.size() - 1);
  };
  // The context is 16: texts of any length end within it, at it and behind it.
  const std::string text = sample("You may", 40);
  INFO(text);
  for (const std::size_t length : {8, 9, 14, 15, 16, 17, 18, 30, 46})
    CHECK(sample(text.substr(0, length), 1) == text.substr(0, length + 1));
  CHECK(sample(text.substr(0, 16), 20) == text.substr(0, 36));
  CHECK(sample(text.substr(0, 20), 20) == text.substr(0, 40));
}

TEST_CASE("samples change no bit of the training, and no plan changes a sample", "[apps]") {
  const Book plain, sampled, piped;
  const Ended without = plain.train({"--set", "sample.every=100"});
  const Ended with = sampled.train({});
  const Ended in_two =
      piped.train({"--nodes", "2", "--set", "pipeline.stages=2", "--set", "batch.micro=1"});
  INFO(without.err << with.err << in_two.err);
  REQUIRE(without.code == 0);
  REQUIRE(with.code == 0);
  REQUIRE(in_two.code == 0);
  CHECK(samples_in(without).empty());
  CHECK(last_weights(with) == last_weights(without));
  CHECK_FALSE(samples_in(with).empty());
  CHECK(samples_in(in_two) == samples_in(with));
}

TEST_CASE("a resumed run writes the samples of an undisturbed one", "[apps]") {
  const Book book, resumed;
  const Ended whole = book.train({});
  const Ended first = resumed.train({"--set", "train.steps=3"});
  const Ended rest = resumed.train({"--resume"});
  INFO(first.err << rest.err);
  REQUIRE(rest.code == 0);
  CHECK(samples_in(first) + samples_in(rest) == samples_in(whole));
}

TEST_CASE("a run that was killed writes the samples of an undisturbed one", "[apps]") {
  const Words longer = {"train",           "book.toml", "--set",
                        "train.steps=400", "--set",     "sample.every=20"};
  const Book undisturbed, killed;
  REQUIRE(tests::troupe(undisturbed.here, longer).code == 0);
  Launch launch;
  launch.arguments = longer;
  launch.while_it_runs = [&](pid_t child) {
    while (samples_by_step(killed).size() < 2) {
      const timespec pause{0, 1'000'000};
      nanosleep(&pause, nullptr);
    }
    kill(child, SIGKILL);
  };
  REQUIRE(tests::troupe(killed.here, launch).code == 128 + SIGKILL);
  Words resume = longer;
  resume.emplace_back("--resume");
  REQUIRE(tests::troupe(killed.here, resume).code == 0);
  const auto wanted = samples_by_step(undisturbed), found = samples_by_step(killed);
  // Samples that waited when the process died are missing. On a busy machine some others may be
  // missing, because their checkpoints were removed first.
  CHECK(found.contains(400));
  std::size_t same = 0;
  for (const auto& [step, text] : found) {
    CAPTURE(step);
    if (!wanted.contains(step)) continue;
    CHECK(wanted.at(step) == text);
    ++same;
  }
  CHECK(same >= 2);
}

TEST_CASE("a model that writes no text cannot be told to write samples", "[apps]") {
  const Book book;
  const auto refused = [&](const Words& more) {
    Words words = {"config", "check", "book.toml", "--data"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = tests::troupe(book.here, words);
    CHECK(ended.code == 3);
    const Ended trained = book.train(more);
    CHECK(trained.code == 3);
    return ended.err;
  };
  const std::string without_text =
      refused({"--set", "data.train=made:markov?states=16", "--set", "model.vocab=16"});
  CHECK(mentions(without_text, "has no tokenizer, so its tokens have no text"));
  book.here.write("mlp.toml",
                  "[model]\nkind = \"mlp\"\ndims = [8, 4]\n[data]\ntrain = "
                  "\"made:gaussians?dims=8&classes=4\"\n[batch]\nglobal = 8\n[train]\nsteps = 2\n"
                  "[sample]\nevery = 1\n");
  const Ended mlp = tests::troupe(book.here, {"config", "check", "mlp.toml"});
  CHECK(mlp.code == 3);
  CHECK(mentions(mlp.err, "a model of the kind \"mlp\" writes no text"));
}

TEST_CASE("a sample has one line on a terminal, and controls nothing", "[apps]") {
  const Value sample(Value::Map{{"type", "sample", {}},
                                {"step", 4, {}},
                                {"prompt", "You", {}},
                                {"text", " may\ncopy \x1b[2J", {}}});
  CHECK(apps::sentence(sample) == "step 4  sample: \"You may copy ?[2J\"");
}
