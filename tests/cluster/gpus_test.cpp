// The head's reports on its nodes' GPUs. tests/fake_nvml replaces the driver's library.

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.h"
#include "cluster/cluster.h"
#include "core/json.h"
#include "transport/sockets.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// Sets an environment variable for processes that start during its life.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

const char* const library = TROUPE_FAKE_NVML "/whole";

std::string said_by_http(const Process& head, const std::string& path, const std::string& last) {
  const std::string before = "http://";
  const auto from = head.said().find(before) + before.size();
  RawConnection line("tcp://" + head.said().substr(from, head.said().find('/', from) - from));
  line.send("GET " + path + " HTTP/1.1\r\n\r\n");
  REQUIRE(line.wait_for(last));
  REQUIRE(line.closed());
  return line.received();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a head reports the state of its nodes' GPUs wherever it is asked", "[cluster]") {
  const Workplace here;
  Process head(here, head_words({"--http", "127.0.0.1:0"}));
  REQUIRE(head.says("http://"));
  REQUIRE(head.says("/\n"));
  const auto address = head_of(here);
  Process plain(here, {"node", "--name", "plain", "--cores", "1"});
  REQUIRE(plain.says("joined"));
  Process events(here, {"events", "--head", address, "--output", "json"});
  const auto busy = here.write("busy", "97");
  const Variable path("LD_LIBRARY_PATH", library), file("FAKE_NVML_BUSY_IN", busy.c_str());
  Process node(here, {"node", "--name", "alpha", "--cores", "1"});
  // Waits until the node has sent its readings.
  REQUIRE(head.says("warning: GPU 1 of node alpha is slowed by hardware thermal slowdown"));
  const auto asked = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--head", address});
    const Ended ended = tests::troupe(here, words);
    REQUIRE(ended.code == 0);
    return ended.out;
  };

  const std::string lines =
      "\n    GPU 0: NVIDIA H200, 97 % busy, 70.5 of 141.0 GiB, 655 W, 1755 MHz, 61 C\n"
      "    GPU 1: NVIDIA A2, 97 % busy, 1.0 of 16.0 GiB, 210 MHz, 93 C; slowed by hardware "
      "thermal slowdown, hardware slowdown\n";
  for (const char* command : {"status", "nodes", "top"}) {
    const auto text = asked({command});
    INFO(text);
    CHECK(has(text, lines));
    CHECK(text.find("GPU 0") == text.rfind("GPU 0"));  // Each GPU appears only once.
  }
  CHECK(has(said_by_http(head, "/", "</body>"), lines));

  const auto answer = parse_json(asked({"status", "--output", "json"}));
  REQUIRE(answer);
  const auto& nodes = *answer->find("nodes")->list();
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].find("gpus") == nullptr);
  const auto& gpus = *nodes[1].find("gpus")->list();
  REQUIRE(gpus.size() == 2);
  CHECK(to_json(gpus[0]) ==
        R"({"number":0,"name":"NVIDIA H200","busy":0.97,"used":75698798592,"memory":151397597184,)"
        R"("watts":655.4,"megahertz":1755,"celsius":61,"slowed_by":[]})");
  CHECK(gpus[1].find("watts") == nullptr);
  CHECK(gpus[1].find("slowed_by")->list()->size() == 2);

  const auto metrics = said_by_http(head, "/metrics", "process_resident_memory_bytes ");
  INFO(metrics);
  const std::string first = "{node=\"alpha\",gpu=\"0\",name=\"NVIDIA H200\"} ",
                    second = "{node=\"alpha\",gpu=\"1\",name=\"NVIDIA A2\"";
  for (const std::string& line :
       {"busy" + first + "0.97\n", "memory_used_bytes" + first + "75698798592\n",
        "memory_bytes" + first + "151397597184\n", "power_watts" + first + "655.4\n",
        "clock_hertz" + first + "1.755e+09\n", "temperature_celsius" + first + "61\n",
        "fault" + first + "0\n", "slowed" + second + ",by=\"hardware slowdown\"} 1\n"})
    CHECK(has(metrics, "\ntroupe_gpu_" + line));
  CHECK(has(metrics, "# TYPE troupe_gpu_power_watts gauge\n"));
  CHECK_FALSE(has(metrics, "troupe_gpu_power_watts" + second));
  CHECK_FALSE(has(metrics, "node=\"plain\",gpu"));

  // A plan counts the GPUs' memory, minus what CUDA takes, divided among the nodes of the host.
  here.write("gpt.toml", gpt);
  const auto plan = asked({"plan", "gpt.toml", "--set", "train.device=cuda", "--set",
                           "pipeline.stages=2", "--set", "precision.compute=fp32"});
  INFO(plan);
  CHECK(has(plan, "  alpha:gpu0  "));
  CHECK(has(plan, "  69.5 GiB  "));
  CHECK(has(plan, "  plain:gpu0  "));
  CHECK(has(plan, "  unknown  "));
  const Ended full = tests::troupe(
      here, {"plan", "gpt.toml", "--head", address, "--set", "train.device=cuda", "--set",
             "precision.compute=fp32", "--set", "pipeline.stages=2", "--set", "model.width=65536"});
  CHECK(full.code == 3);
  INFO(full.err);
  CHECK(has(full.err, "does not fit: "));
  CHECK(has(full.err, "iB and has "));

  // GPUs are read repeatedly, but each warning comes once.
  CHECK(events.says("\"text\":\"GPU 1 of node alpha is slowed by"));
  here.write("busy.new", "41");
  std::filesystem::rename(here.path() / "busy.new", busy);
  const auto end = std::chrono::steady_clock::now() + usual_patience;
  while (!has(asked({"status"}), "NVIDIA H200, 41 % busy, ") &&
         std::chrono::steady_clock::now() < end) {
  }
  CHECK(has(asked({"status"}), "NVIDIA H200, 41 % busy, "));
  for (Process* process : {&node, &plain}) process->send(SIGTERM);
  CHECK(node.wait() == 0);
  CHECK(plain.wait() == 0);
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
  CHECK(head.said().find("warning: GPU") == head.said().rfind("warning: GPU"));
}

TEST_CASE("a node whose driver never answers works, and ends when asked to", "[cluster]") {
  const Workplace here;
  Process head(here, head_words());
  REQUIRE(head.says("troupe submit"));
  const Variable path("LD_LIBRARY_PATH", library), stuck("FAKE_NVML_STUCK", "1");
  // The patience exceeds the test's, so the node must end by itself.
  Process node(here, {"node", "--name", "alpha", "--cores", "1", "--leave-patience", "600"});
  REQUIRE(node.says("joined"));
  const Ended status = tests::troupe(here, {"status", "--head", head_of(here)});
  CHECK(has(status.out, "alpha"));
  CHECK_FALSE(has(status.out, "GPU"));
  node.send(SIGTERM);
  CHECK(node.wait() == 0);
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
}

TEST_CASE("a node whose driver is not loaded reports that once, and sends its head no readings",
          "[cluster]") {
  const Workplace here;
  Process head(here, head_words({"--http", "127.0.0.1:0"}));
  REQUIRE(head.says("http://"));
  REQUIRE(head.says("/\n"));
  const Variable path("LD_LIBRARY_PATH", library), fails("FAKE_NVML_INIT", "9");
  Process node(here, {"node", "--name", "alpha", "--cores", "1"});
  REQUIRE(node.says("joined"));
  const std::string why =
      "cannot read the state of this machine's GPUs: libnvidia-ml.so.1: Driver Not Loaded\n";
  REQUIRE(node.says(why));
  CHECK_FALSE(has(said_by_http(head, "/metrics", "process_resident_memory_bytes "), "troupe_gpu"));
  CHECK_FALSE(has(said_by_http(head, "/", "</body>"), "GPU"));
  node.send(SIGTERM);
  CHECK(node.wait() == 0);
  CHECK(node.said().find(why) == node.said().rfind(why));
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
}
