// model.from: a model from a folder of Hugging Face.

#include <map>
#include <string>
#include <vector>

#include "catch.h"
#include "config/load.h"
#include "config/pages/render.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::config;

namespace {

const std::string tiny_gpt2 =
    R"({"model_type": "gpt2", "vocab_size": 96, "n_positions": 32, "n_embd": 16,
                             "n_layer": 3, "n_head": 2, "activation_function": "gelu_new"})";
const std::string tuned = R"([model]
from = "../gpt2"
dropout = 0.1

[data]
train = "made:markov"

[batch]
global = 4

[train]
steps = 1
)";

Result<Loaded> load_tuned(const std::string& config,
                          const std::vector<std::string>& settings = {}) {
  const std::map<std::string, std::string> files = {{"runs/a.toml", tuned},
                                                    {"./gpt2/config.json", config}};
  return load({.path = "runs/a.toml",
               .settings = settings,
               .read = [&](const std::string& path) -> Result<std::string> {
                 const auto found = files.find(path);
                 if (found != files.end()) return found->second;
                 return Error{path + ": cannot open: No such file or directory"};
               }});
}

/// Returns the first line of the error, without the place.
std::string reason(const Result<Loaded>& loaded) {
  REQUIRE_FALSE(loaded.ok());
  const std::string text = loaded.error().text;
  const auto at = text.find("error: ");
  REQUIRE(at != text.npos);
  return text.substr(at + 7, text.find('\n') - at - 7);
}

}  // namespace

TEST_CASE("a folder of Hugging Face gives the model and its weights", "[config]") {
  const auto result = load_tuned(tiny_gpt2);
  REQUIRE(result.ok());
  const auto& model = result->config.model;
  CHECK(model.kind == "gpt2");
  CHECK(to_json(model.options).find(R"("width":16)") != std::string::npos);
  CHECK(to_json(model.options).find(R"("layers":3)") != std::string::npos);
  CHECK(to_json(model.options).find(R"("dropout":0.1)") != std::string::npos);
  CHECK(model.init == "./gpt2");
  CHECK(to_json(result->tree).find("from") == std::string::npos);
  // Options that the configuration states hold.
  const auto other = load_tuned(tiny_gpt2, {"model.context=8", "model.init=random"});
  REQUIRE(other.ok());
  CHECK(other->config.model.init == "random");
  CHECK(to_json(other->config.model.options).find(R"("context":8)") != std::string::npos);
}

TEST_CASE("a folder whose model this program would compute differently is refused", "[config]") {
  CHECK(reason(load_tuned(R"({"model_type": "gpt2", "n_inner": 7, "n_embd": 16, "n_head": 2})"))
            .starts_with("model.from: ./gpt2/config.json: n_inner: found 7, wanted 64"));
  CHECK(reason(load_tuned("{")).starts_with("model.from: ./gpt2/config.json:1:"));
  CHECK(reason(load_tuned(tiny_gpt2, {"model.from=there"})) ==
        "model.from: ./there/config.json: cannot open: No such file or directory");
  CHECK(reason(load_tuned(tiny_gpt2, {"model.from=3"})) ==
        "model.from: found 3, wanted a folder with config.json and weights");
  CHECK(reason(load_tuned(tiny_gpt2, {"model.kind=llama"})) ==
        "model.from: the model there is of the kind \"gpt2\", but model.kind is \"llama\"; leave "
        "one of them out");
  const std::string unknown = tiny_gpt2.substr(0, tiny_gpt2.size() - 1) + R"(, "odd": 1})";
  CHECK(reason(load_tuned(unknown))
            .starts_with("model.from: ./gpt2/config.json: odd: found 1, wanted no such key"));
  const auto accepted = load_tuned(unknown, {"model.accept=[\"odd\"]"});
  REQUIRE(accepted.ok());
  CHECK(!accepted->tree.find("model")->find("accept"));
  CHECK(reason(load_tuned(unknown, {"model.accept=odd"})) ==
        "model.from: model.accept is \"odd\", wanted a list of keys of config.json such as "
        "[\"mlp_bias\"]");
  const auto alone = load({.path = "a.toml", .read = [](const std::string&) -> Result<std::string> {
                             return std::string("[model]\nkind = \"gpt2\"\naccept = [\"odd\"]\n");
                           }});
  CHECK(reason(alone) == "model.accept is for the config.json of model.from, which is not there");
  Diagnostics refused;
  CHECK_FALSE(load_message(*parse_json(R"({"model": {"kind": "mlp", "accept": ["x"]}})"),
                           "run.submit", refused));
  CHECK(refused.all().front().key == "model.accept");
  Diagnostics found;
  CHECK_FALSE(load_message(*parse_json(R"({"model": {"from": "gpt2"}})"), "run.submit", found));
  CHECK(found.all().front().message == "a message cannot name the folder of a model");
}
