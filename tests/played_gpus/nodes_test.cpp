// Runs over nodes with GPUs, each a process of its own.

#include <signal.h>

#include <map>
#include <memory>

#include "played_gpus/runs.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

enum class Gpus { one_for_all, one_each };

/// Returns the records of two processes with such GPUs, and of the link between them if `way` names
/// one.
Lines tale_of_two(Gpus gpus, const std::string& way) {
  Lines lines{"GPU 0", gpus == Gpus::one_each ? "GPU 1" : "GPU 0"};
  if (!way.empty()) lines.insert({way, way});
  return lines;
}

}  // namespace

TEST_CASE("a run over nodes with GPUs has the bits of one process over every kind of link",
          "[cluster]") {
  const Workplace here;
  here.write("run.toml", configuration(gpt2));
  const auto wanted = train(here, {});
  // With two replicas the order of a sum does not matter.
  const Settings sums{"pipeline.stages=2", "pipeline.replicas=2", "exactness=samples"};
  const auto with_sums = train(here, on_gpu + sums);
  const auto in_bf16 = train(here, on_gpu + Settings{"precision.compute=bf16"});
  struct Way {
    Gpus gpus;
    std::vector<std::string> words;
    std::string way;  // As the processes record it; empty: through the host.
  };
  for (const auto& [gpus, words, way] : std::vector<Way>{
           {Gpus::one_for_all, {}, "shared memory"},
           {Gpus::one_each, {}, "NCCL"},
           {Gpus::one_each, {"--carrier", "tcp"}, ""},
       }) {
    const auto path = (here.path() / ("tale-" + way)).string();
    CAPTURE(way);
    {
      const Variable tale("CUDA_ON_CORES_TALE", path);
      Cluster cluster(here, {});
      for (const std::string number : {"0", "1"}) {
        const Variable gpu("CUDA_ON_CORES_GPU", gpus == Gpus::one_each ? number : "0");
        cluster.start_node("node-" + number, words);
      }
      const auto submit = [&](const Settings& settings, const std::string& bits) {
        Process run(here, with({"submit", "run.toml", "--wait"}, on_gpu + settings));
        const auto code = run.wait();
        INFO(run.said());
        REQUIRE(code == 0);
        CHECK(digest(here, "run") == bits);
      };
      submit({"pipeline.stages=2"}, wanted);
      submit({"pipeline.stages=4", "pipeline.schedule=zb-h1"}, wanted);
      submit({"pipeline.replicas=2"}, wanted);
      submit(sums, with_sums);
      submit({"pipeline.stages=2", "precision.compute=bf16"}, in_bf16);
      cluster.end();
      for (const auto& node : cluster.nodes)
        CHECK(node->said().find("by way of the host") == std::string::npos);
    }
    CHECK(tale_at(path) == tale_of_two(gpus, way));
  }
}

TEST_CASE("nodes that train starts take turns with the machine's GPUs, and train itself uses none",
          "[cluster]") {
  const Workplace here;
  here.write("run.toml", configuration(gpt2));
  const auto wanted = train(here, {});
  for (const auto& [gpus, way] : std::map<Gpus, std::string>{{Gpus::one_for_all, "shared memory"},
                                                             {Gpus::one_each, "NCCL"}}) {
    const auto path = (here.path() / ("tale-" + way)).string();
    const Variable tale("CUDA_ON_CORES_TALE", path);
    const Variable count("CUDA_ON_CORES_GPUS", gpus == Gpus::one_each ? "2" : "1");
    CHECK(train(here, on_gpu + Settings{"pipeline.stages=2"}, {"--nodes", "2"}) == wanted);
    CHECK(tale_at(path) == tale_of_two(gpus, way));
  }
}

TEST_CASE("a run continues without a killed node with a GPU, and has the same bits", "[cluster]") {
  const Settings longer{"train.steps=30", "pipeline.stages=2", "log.every=5"};
  const Workplace here;
  here.write("run.toml", configuration(gpt2));
  const auto wanted = train(here, longer);
  for (const auto gpus : {Gpus::one_for_all, Gpus::one_each}) {
    Cluster cluster(here, {});
    const auto start = [&](const std::string& number) {
      const Variable gpu("CUDA_ON_CORES_GPU", gpus == Gpus::one_each ? number : "0");
      cluster.start_node("node-" + number);
    };
    start("0");
    start("1");
    Process run(here, with({"submit", "run.toml", "--wait", "--output", "plain"}, on_gpu + longer));
    REQUIRE(run.says("step 10 "));
    cluster.nodes[0]->send(SIGKILL);
    start("2");
    const auto code = run.wait();
    INFO(run.said());
    CHECK(code == 0);
    CHECK(run.said().find("recovering from the newest state in memory") != std::string::npos);
    CHECK(digest(here, "run") == wanted);
  }
  CHECK(processes_of_program(here) == 0);
}
