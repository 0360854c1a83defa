// Does what docs/tutorial.md and pages of docs/how-to/ say, line by line.

#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "apps/program.h"
#include "apps/terminal.h"
#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// The indented lines of a page are commands. Fenced TOML is a configuration.
struct Page {
  std::string commands, config;
  std::vector<std::string> configs;  // Each fence by itself.
  int lines = 0;
};

Page read_page(const std::string& name) {
  std::ifstream file(TROUPE_TESTS "/../docs/" + name);
  REQUIRE(file);
  Page page;
  std::string fence;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      fence = fence.empty() ? line : "";
      if (fence == "```toml") page.configs.emplace_back();
    } else if (fence == "```toml") {
      page.config += line + "\n";
      page.configs.back() += line + "\n";
    } else if (fence.empty() && line.starts_with("    ")) {
      page.commands += line.substr(4) + "\n";
      ++page.lines;
    }
  }
  return page;
}

/// Runs the commands of a page in a folder. The first one that fails ends the test.
void run_page(const Workplace& here, const Page& page) {
  here.write("commands", page.commands);
  const std::string program = std::filesystem::path(TROUPE_PROGRAM).parent_path().string();
  const std::string shell = "cd '" + here.path().string() + "' && PATH='" + program +
                            ":'$PATH bash -ex commands >out 2>err </dev/null";
  const int code = std::system(shell.c_str());
  INFO(here.read("out") << here.read("err"));
  REQUIRE(code == 0);
}

/// Runs the commands of a page on a terminal of 80 columns. Returns what the terminal shows.
std::string run_on_terminal(const Workplace& here, const Page& page) {
  here.write("commands", page.commands);
  const std::string program = std::filesystem::path(TROUPE_PROGRAM).parent_path().string();
  Terminal terminal(80);
  std::string shown;
  const Ended ended =
      tests::troupe(here, Launch{{},
                                 {},
                                 [&] {
                                   dup2(terminal.slave(), STDOUT_FILENO);
                                   dup2(terminal.slave(), STDERR_FILENO);
                                   setenv("PATH", (program + ":" + getenv("PATH")).c_str(), 1);
                                   execlp("bash", "bash", "-e", "commands", nullptr);
                                 },
                                 [&](pid_t) { shown = terminal.read_all(); }});
  INFO(shown);
  REQUIRE(ended.code == 0);
  return shown;
}

/// Returns the widest line, without sequences that clear the rest of a line or colour it.
std::string widest_line(std::string shown) {
  for (auto at = shown.find("\x1b["); at != shown.npos; at = shown.find("\x1b[", at)) {
    const auto end = shown.find_first_of("Km", at);
    shown.replace(at, end - at + 1, shown[end] == 'K' ? "\r" : "");
  }
  std::string widest, line;
  for (const char c : shown) {
    line = c == '\r' || c == '\n' ? "" : line + c;
    if (line.size() > widest.size()) widest = line;
  }
  return widest;
}

/// Joins lines that were broken between words.
std::string joined(std::string shown) {
  const std::string broken = "\r\n    ";
  for (auto at = shown.find(broken); at != shown.npos; at = shown.find(broken))
    shown.replace(at, broken.size(), " ");
  return shown;
}

}  // namespace

TEST_CASE("the page on own data leads from a text to a sample", "[apps]") {
  const Workplace here;
  const Page page = read_page("how-to/your-data.md");
  REQUIRE(page.lines == 11);
  here.write("own.toml", page.config);
  std::ifstream golden(TROUPE_TESTS "/golden/tokenizers/llama2.json");
  const auto tree = parse_json(std::string(std::istreambuf_iterator<char>(golden), {}));
  REQUIRE(tree.ok());
  std::filesystem::create_directories(here.path() / "their-model");
  here.write("their-model/tokenizer.json", to_json(*tree->find("tokenizer")));
  run_page(here, page);
  const std::string out = here.read("out");
  CHECK(mentions(out, "\nYou may"));
  CHECK(mentions(out, " nats, perplexity "));
  CHECK(mentions(out, "\"kind\": \"BPE tokenizer\""));
  CHECK(here.read("theirs_tokenizer.json") == here.read("their-model/tokenizer.json"));
  CHECK(mentions(here.read("own.html"), "validation loss"));
}

TEST_CASE("the page on own models leads from an empty file to a net", "[apps]") {
  const Workplace here;
  const Page page = read_page("how-to/bring-your-own-model.md");
  REQUIRE(page.lines == 9);
  REQUIRE(page.configs.size() == 5);
  here.write("mine.toml", page.configs[0]);
  here.write("run.toml", page.configs[1]);
  here.write("unet.toml", page.configs[2]);
  here.write("ink.toml", page.configs[3]);
  here.write("marks.toml", page.configs[4]);
  run_page(here, page);
  const std::string out = here.read("out");
  CHECK(mentions(out, "mine.toml: good"));
  CHECK(mentions(out, "block2.inner.weight"));
  CHECK(mentions(out, "up0 receives [32, 7, 7], skip0 [8, 28, 28], skip1 [16, 14, 14]"));
  const auto weights = [&](const std::string& run) {
    return here.read("runs/" + run + "/checkpoints/step-000000000040/weights.safetensors");
  };
  CHECK(weights("run") == weights("three"));
  CHECK_FALSE(weights("marks").empty());
}

TEST_CASE("the page on fine-tuning leads from a base to a tuned model", "[apps]") {
  const Workplace here;
  const Page page = read_page("how-to/fine-tune.md");
  REQUIRE(page.lines == 15);
  REQUIRE(page.configs.size() == 4);
  here.write("base.toml", page.configs[0]);
  here.write("tuned.toml", page.configs[1]);
  here.write("lora.toml", page.configs[2]);
  here.write("answers.toml", page.configs[3]);
  here.write("answers.jsonl",
             "{\"prompt\": [1, 2, 3], \"answer\": [4, 5]}\n{\"prompt\": [9, 8], \"answer\": [7, 6, "
             "5]}\n{\"prompt\": [3, 1, 4, 1, 5], \"answer\": [9]}\n");
  run_page(here, page);
  const std::string out = here.read("out");
  CHECK(mentions(out, "# group 1 takes 26 parameters: h.0.ln_1.weight, ...\n"));
  CHECK(mentions(out, "# no group takes 14 parameters: wte.weight, ...\n"));
  const auto weights = [&](const std::string& run) {
    return here.read("runs/" + run + "/checkpoints/step-000000000040/weights.safetensors");
  };
  CHECK(weights("tuned") == weights("three"));
  CHECK(weights("tuned") != weights("base"));
  CHECK(mentions(here.read("adapter/adapter_config.json"), "\"r\": 4,"));
  CHECK(mentions(here.read("adapter/adapter_model.safetensors"),
                 "base_model.model.transformer.h.2.attn.c_attn.lora_B.weight"));
  CHECK_FALSE(mentions(here.read("adapter/adapter_model.safetensors"), "wte.weight"));
  CHECK(mentions(here.read("merged/model.safetensors"), "h.2.attn.c_attn.weight"));
  CHECK_FALSE(mentions(here.read("merged/model.safetensors"), "lora"));
  CHECK_FALSE(mentions(here.read("merged/config.json"), "lora"));
  CHECK(weights("answers") != weights("base"));
  CHECK(mentions(out, "3 prompts with answers"));
  CHECK(weights("average") == weights("base"));
  CHECK(mentions(here.read("averaged/model.safetensors"), "wte.weight"));
  CHECK(here.read("averaged/model.safetensors") != weights("average"));
}

TEST_CASE("the tutorial leads from a text to a sample, and further", "[apps]") {
  const Workplace here;
  Page page = read_page("tutorial.md");
  REQUIRE(page.lines == 16);
  // The lines of a sample are those that the model writes.
  const std::string sample = "troupe sample book";
  const auto at = page.commands.find(sample);
  REQUIRE(at != page.commands.npos);
  page.commands.insert(at + sample.size(), " > sample");
  const std::string shown = run_on_terminal(here, page);
  CHECK(widest_line(shown).size() <= 80);
  INFO(widest_line(shown));
  const std::string out = joined(shown);
  CHECK(mentions(out, "book.toml is written"));
  CHECK(here.read("sample").starts_with("You may"));
  CHECK(mentions(out, ", as in training"));
  CHECK(mentions(out, "350/350"));
  CHECK(mentions(out, "removed tuned"));
  CHECK_FALSE(std::filesystem::exists(here.path() / "runs/tuned"));
  CHECK(std::filesystem::exists(here.path() / "runs/pair"));
}
