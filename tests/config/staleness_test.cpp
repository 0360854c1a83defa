#include "catch.h"
#include "good_run.h"

using namespace troupe;
using namespace troupe::config;

namespace {

std::vector<std::string> asynchronous(std::vector<std::string> settings) {
  settings.insert(settings.begin(), "pipeline.schedule=pipedream");
  return settings;
}

}  // namespace

TEST_CASE("asynchronous settings may be combined freely except for a few listed combinations",
          "[config]") {
  for (const std::string predict : {"none", "msnag", "aggmsnag", "linear"})
    for (const std::string at : {"current", "forward", "extrapolated"})
      for (const std::string gap : {"none", "elementwise", "tensor_norm"})
        for (const std::string recompute : {"true", "false"})
          for (const std::string kind : {"sgd", "adam", "adamw"}) {
            const std::string said = complaint(
                asynchronous({"staleness.predict=" + predict, "staleness.linearize_at=" + at,
                              "staleness.gap_penalty=" + gap, "pipeline.recompute=" + recompute,
                              "optimizer.kind=" + kind}));
            const bool is_rejected = gap != "none" && at != "forward" && recompute == "false";
            CHECK(said.starts_with("error: ") == is_rejected);
          }
}

TEST_CASE("a gap penalty at the newest weights needs recomputed activations", "[config]") {
  CHECK(complaint(asynchronous({"staleness.gap_penalty=elementwise"})) ==
        "error: staleness.gap_penalty = \"elementwise\" with staleness.linearize_at = \"current\" "
        "needs activations of the newest weights, but pipeline.recompute = false keeps old ones; "
        "set pipeline.recompute = true, or staleness.linearize_at = \"forward\"");
}

TEST_CASE("gap_source last_update is valid only for a gap of one step", "[config]") {
  const auto with = [](const char* stages, const char* micro) {
    return complaint(asynchronous({"staleness.preset=ws_ga", "staleness.gap_source=last_update",
                                   std::string("pipeline.stages=") + stages,
                                   std::string("batch.micro=") + micro}));
  };
  CHECK(
      with("6", "16") ==
      "error: staleness.gap_source = \"last_update\" knows one update, but with pipeline.stages = "
      "6 and a step every 2 micro-batches the first stage is 3 behind; use at most 3 stages, or "
      "staleness.gap_source = \"stash\"");
  CHECK(with("3", "16").empty());
  CHECK(with("6", "4").empty());
}

TEST_CASE("pipedream-2bw needs enough micro-batches between steps", "[config]") {
  const auto with = [](const char* micro) {
    return complaint({"pipeline.schedule=pipedream-2bw", "pipeline.stages=6",
                      std::string("batch.micro=") + micro});
  };
  CHECK(with("8") ==
        "error: pipeline.schedule = \"pipedream-2bw\" keeps two versions of the weights, which "
        "takes a step every 5 micro-batches or more with pipeline.stages = 6, but it is every 4; "
        "enlarge batch.global / batch.micro, or use \"pipedream\"");
  CHECK(with("4").empty());
}

TEST_CASE("step_every must match the batch size", "[config]") {
  CHECK(complaint(asynchronous({"staleness.step_every=4"})) ==
        "error: staleness.step_every = 4 x batch.micro = 4 x replicas = 1 (= 16) is not "
        "batch.global = 32; set staleness.step_every = 8, or batch.global = 16");
  CHECK(complaint(asynchronous({"staleness.step_every=8"})).empty());
}

TEST_CASE("a flush interval is a whole number of steps", "[config]") {
  CHECK(complaint(asynchronous({"staleness.flush_every=100"})) ==
        "error: staleness.flush_every = 100 micro-batches are not a whole number of steps of 8; "
        "nearest: 96, 104");
  CHECK(complaint(asynchronous({"staleness.flush_every=96"})).empty());
}

TEST_CASE("staleness must not depend on the cluster", "[config]") {
  CHECK(complaint(asynchronous({"pipeline.stages=auto"}))
            .starts_with("error: pipeline.stages = \"auto\" does not work with the asynchronous "
                         "schedule \"pipedream\""));
  CHECK(complaint(asynchronous({"pipeline.replicas=auto"}))
            .starts_with("error: pipeline.replicas = \"auto\" does not work with the asynchronous "
                         "schedule \"pipedream\""));
}

TEST_CASE("remedies that are not linear in the gradient need targets that all count", "[config]") {
  CHECK(complaint(asynchronous({"staleness.delay_compensation=0.04", "model.loss.ignore=-100"})) ==
        "error: staleness.delay_compensation = 0.04 squares gradients before it is known how many "
        "targets of a step count, which model.loss.ignore leaves open; leave one of them out");
  // The loss of a kind may leave targets out as well.
  CHECK(complaint(asynchronous({"staleness.delay_compensation=0.04", "model.kind=bert"}))
            .find("before it is known how many targets of a step count") != std::string::npos);
  CHECK(complaint(asynchronous({"staleness.predict=aggmsnag", "model.loss.ignore=-100"}))
            .starts_with("error: staleness.predict = \"aggmsnag\" steps ahead by gradients"));
  CHECK(complaint(asynchronous({"staleness.predict=msnag", "model.loss.ignore=-100"})).empty());
  CHECK(complaint(asynchronous({"staleness.delay_compensation=0.04"})).empty());
}

TEST_CASE("predictions and penalties support only known optimizers", "[config]") {
  CHECK(complaint(asynchronous({"optimizer.kind=muon", "staleness.predict=msnag"})) ==
        "error: staleness.predict = \"msnag\" cannot predict the weights of optimizer.kind = "
        "\"muon\"; it supports sgd, adam and adamw");
  CHECK(complaint(asynchronous({"optimizer.kind=nadamw", "staleness.preset=ws_ga"})) ==
        "error: staleness.gap_penalty = \"elementwise\" does not support optimizer.kind = "
        "\"nadamw\"; it supports sgd, adam and adamw");
  CHECK(complaint(asynchronous({"optimizer.kind=nadamw", "staleness.preset=ws"})).empty());
}

TEST_CASE("nag needs a prediction", "[config]") {
  CHECK(complaint(asynchronous({"staleness.nag=true"})) ==
        "error: staleness.nag needs a prediction, but staleness.predict = \"none\"");
}

TEST_CASE("gap_source last_update cannot be combined with a prediction", "[config]") {
  const std::vector<std::string> last_update = {"staleness.preset=ws_ga",
                                                "staleness.gap_source=last_update",
                                                "optimizer.kind=sgd", "optimizer.momentum=0.9"};
  const auto with = [&](std::string more) {
    auto settings = last_update;
    settings.push_back(std::move(more));
    return complaint(asynchronous(settings));
  };
  CHECK(with("staleness.predict=msnag") ==
        "error: staleness.gap_source = \"last_update\" tells how far the weights went, but "
        "staleness.predict = \"msnag\" lets a pass see others; use staleness.gap_source = "
        "\"stash\"");
  CHECK(complaint(asynchronous(last_update)).empty());
  CHECK(with("optimizer.nesterov=true").empty());
  CHECK(with("staleness.spike_compensation=true").empty());
}

TEST_CASE("spike compensation needs sgd with momentum", "[config]") {
  const auto with = [](std::string kind, std::string momentum) {
    std::vector<std::string> settings = {"staleness.spike_compensation=true",
                                         "optimizer.kind=" + kind};
    if (!momentum.empty()) settings.push_back("optimizer.momentum=" + momentum);
    return complaint(asynchronous(settings));
  };
  CHECK(with("adamw", "") ==
        "error: staleness.spike_compensation compensates missed momentum, but optimizer.kind = "
        "\"adamw\" has none of sgd's");
  CHECK(with("sgd", "") ==
        "error: staleness.spike_compensation compensates missed momentum, but optimizer.kind = "
        "\"sgd\" has optimizer.momentum = 0");
  CHECK(with("sgd", "0.9").empty());
}

TEST_CASE("pipedream-2bw fixes the weights that passes use", "[config]") {
  const auto with = [](std::string setting) {
    return complaint({"pipeline.schedule=pipedream-2bw", std::move(setting)});
  };
  CHECK(with("staleness.predict=msnag") ==
        "error: staleness.predict = \"msnag\" chooses the weights of a pass, but under "
        "pipeline.schedule = \"pipedream-2bw\" all passes see the version before the newest; use "
        "\"pipedream\"");
  CHECK(with("staleness.linearize_at=extrapolated")
            .starts_with("error: staleness.linearize_at = \"extrapolated\" chooses"));
  CHECK(with("staleness.preset=stale").empty());
}

TEST_CASE("a setting without effect gives a warning", "[config]") {
  CHECK(complaints({"staleness.predict=msnag"}) ==
        "--set:1:19: warning: staleness.predict = \"msnag\" has no effect: the schedule \"1f1b\" "
        "is synchronous, so no weight is stale\n    1 | staleness.predict=msnag\n      |           "
        "        ^~~~~\n");
  CHECK(complaint(asynchronous({"pipeline.stages=1", "staleness.preset=ws"})) ==
        "warning: staleness.linearize_at = \"forward\" has no effect: with one stage no weight is "
        "stale");
  // A look-ahead predicts even with one stage.
  CHECK(complaint(asynchronous({"pipeline.stages=1", "staleness.predict=msnag"})) ==
        "warning: staleness.predict = \"msnag\" has no effect: with one stage no weight is stale");
  CHECK(complaint(
            asynchronous({"pipeline.stages=1", "staleness.predict=msnag", "staleness.nag=true"}))
            .empty());
  CHECK(complaint(asynchronous({"staleness.preset=aggmsnag", "pipeline.replicas=2"})) ==
        "warning: staleness.predict = \"aggmsnag\" needs gradients from pipeline.replicas = 2; "
        "msnag is used instead");
}

TEST_CASE("recomputing single stages needs explicit stage boundaries", "[config]") {
  CHECK(complaint({"pipeline.recompute=[true, false]"}) ==
        "error: pipeline.recompute has an entry for each stage, but pipeline.stages does not say "
        "which layers these are; write boundaries such as pipeline.stages = [0, 3, 6], which "
        "`troupe plan` shows");
  const auto with = [](std::string recompute) {
    return complaint(asynchronous({"pipeline.stages=[0, 2, 4, 6]", "staleness.preset=ws_ga",
                                   "staleness.linearize_at=current",
                                   "pipeline.recompute=" + std::move(recompute)}));
  };
  CHECK(with("[true, true]") ==
        "error: pipeline.recompute has 2 entries, but there are 3 stages; it must have one for "
        "each");
  // The last stage never has a delay.
  CHECK(with("[true, true, false]").empty());
  CHECK(with("[true, false, true]")
            .starts_with("error: staleness.gap_penalty = \"elementwise\" with "
                         "staleness.linearize_at = \"current\" needs activations of the newest "
                         "weights, but pipeline.recompute = [true, false, true] keeps old ones"));
}

TEST_CASE("delay compensation needs the old weights and excludes a gap penalty", "[config]") {
  CHECK(complaint(asynchronous({"staleness.preset=ws_ga", "staleness.delay_compensation=0.5"})) ==
        "error: staleness.delay_compensation = 0.5 and staleness.gap_penalty = \"elementwise\" "
        "both correct a gradient for the same gap; use one of them");
  CHECK(complaint(asynchronous(
            {"staleness.gap_source=last_update", "staleness.delay_compensation=0.5"})) ==
        "error: staleness.delay_compensation measures the gap by the old weights; use "
        "staleness.gap_source = \"stash\"");
  CHECK(complaint(asynchronous({"staleness.delay_compensation=0.5"})).empty());
}

TEST_CASE("synchronous_steps gives a warning with a synchronous schedule", "[config]") {
  CHECK(complaint({"staleness.synchronous_steps=10"}) ==
        "warning: staleness.synchronous_steps = 10 has no effect: the schedule \"1f1b\" is "
        "synchronous, so no weight is stale");
  CHECK(complaint(asynchronous({"staleness.synchronous_steps=10"})).empty());
}
