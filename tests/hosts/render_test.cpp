#include "apps/hosts/render.h"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "catch.h"
#include "core/json.h"
#include "hosts/here.h"

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::tests;

namespace {

const std::string folder = std::string(TROUPE_TEST_DATA) + "/data/";

JobOrder job() {
  return {"tiny", "{\n  \"name\": \"tiny\"\n}\n", 3,       8, 0,
          "16Gi", std::chrono::seconds(90),       "troupe"};
}

std::string kubernetes(KubernetesOrder::Flavour flavour) {
  KubernetesOrder order;
  order.job = job();
  order.job.gpus = 4;
  order.flavour = flavour;
  order.image = "registry.example/troupe:1";
  order.shared_memory = "2Gi";
  order.storage = "50Gi";
  order.name_space = "learning";
  order.priority_class = "urgent";
  order.node_labels = {{"example.com/has-gpu", "true"}, {"zone", "a \"b\" # c"}};
  order.tolerations = {{"nvidia.com/gpu", {}, Toleration::Effect::no_schedule}, {"team", "ml"}};
  return render_kubernetes(order);
}

std::string ssh() {
  return render_ssh({{"alpha", 2}, {"me@10.0.0.7", 1}},
                    {"up-0123456789abcdef",
                     "tcp://10.0.0.1:4700",
                     "/etc/troupe/{host}.key",
                     std::string(40, 'k'),
                     {"/opt/troupe", "/data/it's here", {{"WORDS", "two words"}}},
                     std::chrono::seconds(30)});
}

/// Compares a text with a reviewed file. Rewrites the file if TROUPE_WRITE_GOLDEN is set.
void check_golden(const std::string& name, const std::string& text) {
  if (std::getenv("TROUPE_WRITE_GOLDEN")) std::ofstream(folder + name) << text;
  std::ifstream file(folder + name);
  CHECK(text == std::string(std::istreambuf_iterator<char>(file), {}));
}

/// Returns whether a checker accepts the text in a file. Shows its output if it does not.
bool passes(const std::string& program, const std::string& text) {
  const Workplace here;
  const std::string path = here.write("text", text);
  const int status = std::system((program + " " + path + " >" + path + ".said 2>&1").c_str());
  if (status != 0) UNSCOPED_INFO(here.read("text.said"));
  return status == 0;
}

const std::string shellcheck = "shellcheck --severity=style --shell=";
const std::string check_kubernetes = "/usr/bin/python3 " TROUPE_TEST_DATA "/check_kubernetes.py ";

}  // namespace

TEST_CASE("the rendered script for Slurm matches the reviewed file and passes shellcheck",
          "[hosts]") {
  auto order = job();
  order.memory = "16G";  // Slurm's notation.
  order.gpus = 4;
  const auto text = render_slurm({.job = order,
                                  .time = "2-00:00:00",
                                  .partition = "gpu",
                                  .account = "the \"lab\" \\ #1",
                                  .qos = "high",
                                  .constraint = "a100&nvlink",
                                  .lines = {"--mail-type=END"}});
  check_golden("slurm.sh", text);
  CHECK(passes(shellcheck + "bash", text));
  for (const std::string option :
       {"--requeue", "--no-kill", "--signal=B:TERM@90", "--nodes=3", "--cpus-per-task=8",
        "--partition=gpu", "--mem=16G", "--time=2-00:00:00", "--open-mode=append", "--gres=gpu:4",
        "--account=\"the \\\"lab\\\" \\\\ #1\"", "--qos=high", "--constraint=\"a100&nvlink\"",
        "--mail-type=END"})
    CHECK(text.find("#SBATCH " + option + "\n") != std::string::npos);
  SlurmOrder whole;
  whole.job = job();
  whole.job.cores = 0;
  const auto exclusive = render_slurm(whole);
  CHECK(exclusive.find("#SBATCH --exclusive\n") != std::string::npos);
  // Other users of a machine that jobs share could read the page.
  CHECK(exclusive.find("--http off") == std::string::npos);
  CHECK(text.find("--http off") != std::string::npos);
}

TEST_CASE("the rendered Kubernetes objects match the reviewed files in three flavours", "[hosts]") {
  using Flavour = KubernetesOrder::Flavour;
  for (const auto& [flavour, name] : {std::pair(Flavour::job, "job"),
                                      {Flavour::jobset, "jobset"},
                                      {Flavour::statefulset, "statefulset"}}) {
    const auto text = kubernetes(flavour);
    check_golden(std::string(name) + ".yaml", text);
    CHECK(passes(check_kubernetes + name, text));
    // The checker itself must be able to fail.
    CHECK(!passes(check_kubernetes + name, text.substr(0, text.size() * 2 / 3)));
  }
  CHECK(!passes(check_kubernetes + "job", kubernetes(Flavour::jobset)));
}

TEST_CASE("evictions of Kubernetes leave all nodes but as many as allowed", "[hosts]") {
  using Flavour = KubernetesOrder::Flavour;
  KubernetesOrder order;
  order.job = job();
  const auto limit = [&](Flavour flavour, int evicted) {
    order.flavour = flavour;
    order.evicted = evicted;
    const auto text = render_kubernetes(order);
    const auto at = text.find("kind: PodDisruptionBudget");
    const auto begin = text.find("spec:\n  ", at) + 8;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  REQUIRE(order.job.nodes == 3);
  CHECK(limit(Flavour::job, 1) == "minAvailable: 2");
  CHECK(limit(Flavour::jobset, 2) == "minAvailable: 1");
  CHECK(limit(Flavour::job, 5) == "minAvailable: 0");
  CHECK(limit(Flavour::statefulset, 1) == "maxUnavailable: 1");
}

TEST_CASE("the scripts in a head's pod pass shellcheck", "[hosts]") {
  const auto text = kubernetes(KubernetesOrder::Flavour::job);
  const auto script = [&](const std::string& name) {
    const std::string first = "  " + name + ": |\n";
    std::string script;
    for (std::size_t at = text.find(first) + first.size(); text.compare(at, 4, "    ") == 0;) {
      const auto line = text.find('\n', at) + 1;
      script += text.substr(at + 4, line - at - 4);
      at = line;
    }
    return script;
  };
  CHECK(passes(shellcheck + "sh", script("lead.sh")));
  CHECK(passes(shellcheck + "bash", script("healthz.sh")));
}

TEST_CASE("a toleration is read as kubectl writes a taint", "[hosts]") {
  using Effect = Toleration::Effect;
  const auto all = Toleration::parse("nvidia.com/gpu");
  CHECK((all && all->key == "nvidia.com/gpu" && !all->value && all->effect == Effect::every));
  const auto one = Toleration::parse("team=ml:NoExecute");
  CHECK((one && one->key == "team" && one->value == "ml" && one->effect == Effect::no_execute));
  const auto empty = Toleration::parse("spot=:PreferNoSchedule");
  CHECK((empty && empty->value == "" && empty->effect == Effect::prefer_no_schedule));
  for (const std::string wrong : {"", "=ml", ":NoSchedule", "a:b", "a:"}) {
    INFO(wrong);
    CHECK(!Toleration::parse(wrong));
  }
}

TEST_CASE("the rendered script for ssh, and the scripts of up, pass shellcheck", "[hosts]") {
  check_golden("ssh.sh", ssh());
  CHECK(passes(shellcheck + "bash", ssh()));
  const NodesOrder order{"up-00", "tcp://10.0.0.1:4700", "", "", {"/opt/troupe", "/data", {}}};
  CHECK(passes(shellcheck + "sh", script_that_starts({"alpha", 3}, order)));
  CHECK(passes(shellcheck + "sh", script_that_ends("up-00", std::chrono::seconds(5))));
}

TEST_CASE("a rendered job contains the complete configuration", "[hosts]") {
  const Workplace here;
  const std::string config = R"(
name = "tiny"
[model]
kind = "mlp"
dims = [8, 16, 4]
[data]
train = "made:gaussians?dims=8&classes=4"
[batch]
global = 8
micro = 4
[train]
steps = 7
)";
  here.write("tiny.toml", config);
  const Ended slurm = tests::troupe(here, {"render", "slurm", "tiny.toml", "--nodes", "4"});
  INFO(slurm.err);
  REQUIRE(slurm.code == 0);
  CHECK(passes(shellcheck + "bash", slurm.out));
  const auto begin = slurm.out.find("<<'RUN'\n") + 8, end = slurm.out.find("\nRUN\n");
  REQUIRE(end != std::string::npos);
  here.write("run.json", slurm.out.substr(begin, end - begin));
  CHECK(tests::troupe(here, {"config", "check", "run.json"}).code == 0);
  CHECK(parse_json(here.read("run.json"))->find("train")->find("steps")->number() == 7);

  const Ended k8s = tests::troupe(here, {"render", "k8s", "tiny.toml", "--flavour", "jobset"});
  REQUIRE(k8s.code == 0);
  CHECK(passes(check_kubernetes + "jobset", k8s.out));
  const Ended odd = tests::troupe(here, {"render", "k8s", "tiny.toml", "--set", "name=Tiny_1"});
  CHECK(odd.code == 3);
  CHECK(odd.err.find("small letters") != std::string::npos);
  CHECK(tests::troupe(here, {"render", "k8s", "nothing.toml"}).code == 3);

  const auto placed = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"render", "k8s", "tiny.toml"});
    return tests::troupe(here, words);
  };
  const Ended on_gpus =
      placed({"--set", "train.device=cuda", "--gpus", "2", "--namespace", "ml", "--node-label",
              "has-gpu=true", "--toleration", "nvidia.com/gpu:NoSchedule", "--priority-class", "p",
              "--nodes", "5", "--max-evicted", "2"});
  REQUIRE(on_gpus.code == 0);
  CHECK(passes(check_kubernetes + "job", on_gpus.out));
  for (const std::string part :
       {"nvidia.com/gpu: \"2\"", "\"has-gpu\": \"true\"", "namespace: \"ml\"",
        "{key: \"nvidia.com/gpu\", operator: Exists, effect: NoSchedule}", "minAvailable: 3",
        "create secret generic -n ml"})
    CHECK(on_gpus.out.find(part) != std::string::npos);
  for (const auto& wrong : {std::vector<std::string>{"--namespace", "A b"},
                            {"--node-label", "has-gpu"},
                            {"--toleration", "a:b"},
                            {"--image", "a\nb"}}) {
    INFO(wrong.front());
    const Ended refused = placed(wrong);
    CHECK(refused.code == 2);
    CHECK(refused.err.find("error: " + wrong.front() + ": ") == 0);
  }
}

TEST_CASE("a rendered job asks for GPUs if the run uses them, and takes no broken lines",
          "[hosts]") {
  const Workplace here;
  const std::string config = TROUPE_CONFIG "/quickstart.toml";
  const auto slurm = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"render", "slurm", config});
    return tests::troupe(here, words);
  };
  CHECK(slurm({}).out.find("gres") == std::string::npos);
  const auto on_gpus = slurm({"--set", "train.device=cuda"});
  CHECK(on_gpus.out.find("#SBATCH --gres=gpu:1\n") != std::string::npos);
  const auto two = slurm({"--set", "train.device=cuda", "--gpus", "2"});
  CHECK(two.out.find("#SBATCH --gres=gpu:2\n") != std::string::npos);
  const auto unused = slurm({"--gpus", "2"});
  CHECK(unused.code == 3);
  CHECK(unused.err.find("--set train.device=cuda") != std::string::npos);
  CHECK(slurm({"--line=--mail-type=END"}).out.find("#SBATCH --mail-type=END\n") !=
        std::string::npos);
  CHECK(slurm({"--line", "mail-type=END"}).code == 2);
  const auto broken = slurm({"--qos", "a\nrm -rf b"});
  CHECK(broken.code == 2);
  CHECK(broken.err.find("line end") != std::string::npos);
}

TEST_CASE("the script for ssh may take the head's key from the environment", "[hosts]") {
  const Workplace here;
  here.write("hosts", "alpha\n");
  const auto render = [&](const char* key) {
    return tests::troupe(
        here,
        Launch{{"render", "ssh", "hosts", "--head", "10.0.0.1:4700", "--node-keys", "/k/{host}"},
               {},
               [&] { key ? setenv("TROUPE_HEAD_KEY", key, 1) : unsetenv("TROUPE_HEAD_KEY"); },
               {}});
  };
  CHECK(render(nullptr).code == 2);
  const std::string key(40, 'k');
  CHECK(render(key.c_str()).out.find("TROUPE_HEAD_KEY=" + key) != std::string::npos);
}

TEST_CASE("a rendered ssh script starts and ends the nodes", "[hosts]") {
  const Workplace here;
  // Replaces the node: prints that it has joined, and waits.
  const auto node =
      here.write("node", "#!/bin/sh\necho joined \"$3\" as \"$5\"\nexec sleep 1000\n");
  std::filesystem::permissions(node, std::filesystem::perms::owner_all);
  here.write("hosts", "alpha slots=2\nbeta\nlocked\n");
  const Ended text =
      with_ssh(here, {"render", "ssh", "hosts", "--head", "10.0.0.1:4700", "--program", node});
  REQUIRE(text.code == 0);
  const auto script = here.write("nodes.sh", text.out);
  const auto run = [&](const std::string& word) {
    const std::string command =
        "PATH=" TROUPE_TEST_DATA "/bin:$PATH XDG_STATE_HOME=" + here.path().string() + " bash " +
        script + " " + word + " >" + here.path().string() + "/said 2>&1";
    return WEXITSTATUS(std::system(command.c_str()));
  };
  CHECK(run("") == 2);
  CHECK(run("up") == 1);
  INFO(here.read("said"));
  for (const std::string says :
       {"alpha: joined tcp://10.0.0.1:4700 as alpha-0", "beta: joined",
        "locked: me@locked: Permission denied", "error: 1 of 3 machines failed"})
    CHECK(here.read("said").find(says) != std::string::npos);
  CHECK(run("down") == 1);
  INFO(here.read("said"));
  // Both machines are this one, so the first script ends all three processes.
  CHECK(here.read("said").find("ended 3 processes") != std::string::npos);
}
