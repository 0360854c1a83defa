#include <filesystem>

#include "catch.h"
#include "config/load.h"
#include "config/pages/render.h"

using namespace troupe;
using namespace troupe::config;

namespace fs = std::filesystem;

namespace {

const fs::path runs = fs::path(TROUPE_ROOT) / "config";

RunConfig run(const std::string& name) {
  const auto loaded = load({.path = (runs / name).string()});
  INFO((loaded ? "" : loaded.error().text));
  REQUIRE(loaded.ok());
  return loaded->config;
}

}  // namespace

TEST_CASE("every configuration that we ship is valid without a warning", "[config]") {
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(runs)) {
    if (entry.path().extension() != ".toml") continue;
    ++seen;
    const auto loaded = load({.path = entry.path().string()});
    INFO((loaded ? loaded->warnings : loaded.error().text));
    REQUIRE(loaded.ok());
    CHECK(loaded->warnings.empty());
    CHECK(loaded->config.name == entry.path().stem().string());
    CHECK(loaded->config.batch.micro.has_value());
  }
  CHECK(seen >= 7);
}

TEST_CASE("gpt-small matches its description", "[config]") {
  const auto config = run("gpt-small.toml");
  CHECK(*config.model.options.find("layers")->integer() == 6);
  CHECK(*config.model.options.find("width")->integer() == 384);
  CHECK(*config.model.options.find("context")->integer() == 256);
  CHECK(*config.model.options.find("vocab")->integer() == 4096);
  CHECK(config.optimizer.rate.kind == models::LearningRate::Kind::cosine);
  CHECK(config.optimizer.rate.lr == 3e-4);
  CHECK(config.optimizer.rate.warmup_steps == 20);
  CHECK(config.optimizer.rate.total_steps == 1000);
  CHECK(config.optimizer.rate.min_lr == 3e-5);
  CHECK(config.pipeline.stages.count == 2);
  CHECK(config.pipeline.cuts == models::Cuts::sublayers);
  CHECK(config.train.eval_every == 100);
}

TEST_CASE("defaults are those of the chosen optimizer", "[config]") {
  using Config = models::OptimizerConfig;
  const std::pair<const char*, Config::Kind> kinds[] = {{"sgd", Config::Kind::sgd},
                                                        {"adam", Config::Kind::adam},
                                                        {"adamw", Config::Kind::adamw},
                                                        {"nadamw", Config::Kind::nadamw},
                                                        {"muon", Config::Kind::muon}};
  for (const auto& [name, kind] : kinds) {
    Value body;
    body.set("model", Value::Map{{"kind", "mlp", {}}, {"dims", Value::List{2, 2}, {}}});
    body.set("data", Value::Map{{"train", "x", {}}});
    body.set("batch", Value::Map{{"global", 1, {}}});
    body.set("train", Value::Map{{"steps", 1, {}}});
    body.set("optimizer", Value::Map{{"kind", name, {}}});
    const auto loaded = load_message(body, "run.submit");
    REQUIRE(loaded.ok());
    const auto& made = loaded->config.optimizer;
    const auto wanted = Config::of(kind);
    CHECK(made.kind == wanted.kind);
    CHECK(made.rate.lr == wanted.rate.lr);
    CHECK(made.momentum == wanted.momentum);
    CHECK(made.nesterov == wanted.nesterov);
    CHECK(made.beta1 == wanted.beta1);
    CHECK(made.beta2 == wanted.beta2);
    CHECK(made.eps == wanted.eps);
    CHECK(made.weight_decay == wanted.weight_decay);
    CHECK(made.clip_norm == wanted.clip_norm);
  }
}
