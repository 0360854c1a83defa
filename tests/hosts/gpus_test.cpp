// Checks of GPUs. tests/fake_nvml replaces the driver's library.

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <string>

#include "apps/hosts/gpu_checks.h"
#include "apps/program.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::tests;

namespace {

using Variables = std::map<std::string, std::string>;

/// Runs the doctor with the library of that folder, if any.
Ended doctor_with(const std::string& folder, const Variables& variables = {},
                  std::vector<std::string> more = {}) {
  const Workplace here;
  more.insert(more.begin(), "doctor");
  return tests::troupe(here, Launch{more,
                                    {},
                                    [&] {
                                      setenv("LD_LIBRARY_PATH", folder.c_str(), 1);
                                      for (const auto& [name, value] : variables)
                                        setenv(name.c_str(), value.c_str(), 1);
                                    },
                                    {}});
}

const std::string whole = TROUPE_FAKE_NVML "/whole", lacking = TROUPE_FAKE_NVML "/lacking";

std::size_t times(const std::string& what, const std::string& in) {
  std::size_t count = 0;
  for (auto at = in.find(what); at != std::string::npos; at = in.find(what, at + 1)) ++count;
  return count;
}

/// Counts the lines about GPUs that NVML provides.
std::size_t gpu_lines(const Ended& ended) {
  return times("  GPU driver ", ended.out) + times("  GPU 0 ", ended.out) +
         times("  GPU 1 ", ended.out);
}

}  // namespace

TEST_CASE("the doctor reports the state of each GPU and warns of a hot one", "[hosts]") {
  const Ended ended = doctor_with(whole);
  INFO(ended.out << ended.err);
  CHECK(ended.out.find("ok    GPU 0           NVIDIA H200, 97 % busy, 70.5 of 141.0 GiB, 655 W, "
                       "1755 MHz, 61 C\n") != std::string::npos);
  CHECK(ended.out.find("warn  GPU 1           NVIDIA A2, 12 % busy, 1.0 of 16.0 GiB, 210 MHz, "
                       "93 C; slowed by hardware thermal slowdown, hardware slowdown\n"
                       "      fix: see to its fans") != std::string::npos);
  CHECK(gpu_lines(ended) == 2);
  CHECK(ended.code == doctor_with("").code);
}

TEST_CASE("a power cap that somebody has set is no warning", "[hosts]") {
  const Ended capped = doctor_with(whole, {{"FAKE_NVML_REASONS", "0x4"}});
  INFO(capped.out);
  CHECK(capped.out.find("ok    GPU 1           NVIDIA A2") != std::string::npos);
  CHECK(capped.out.find("; slowed by power cap\n") != std::string::npos);
  const Workplace there;
  const auto busy = there.write("busy", "0");
  const Ended idle = doctor_with(whole, {{"FAKE_NVML_REASONS", "1"}, {"FAKE_NVML_BUSY_IN", busy}});
  CHECK(idle.out.find("slowed") == std::string::npos);
  CHECK(times(", 0 % busy, ", idle.out) == 2);
}

TEST_CASE("a GPU that does not answer is reported, and the others too", "[hosts]") {
  const Ended ended = doctor_with(whole, {{"FAKE_NVML_LOST", "0"}});
  INFO(ended.out);
  CHECK(ended.out.find("warn  GPU 0           does not answer: GPU is lost\n      fix: ") !=
        std::string::npos);
  CHECK(ended.out.find("  GPU 1           NVIDIA A2") != std::string::npos);
}

TEST_CASE("with --output json a GPU is a check like any other", "[hosts]") {
  const Ended ended = doctor_with(whole, {}, {"--output", "json"});
  int seen = 0;
  for (const auto& check : ended.events("check")) {
    const auto name = text_in(check, "check");
    if (!name.starts_with("GPU ")) continue;
    ++seen;
    CHECK(text_in(check, "verdict") == (name == "GPU 0" ? "ok" : "warn"));
    CHECK((check.find("fix") != nullptr) == (name == "GPU 1"));
  }
  CHECK(seen == 2);
}

TEST_CASE("without a driver library, or without GPUs, the doctor prints no GPU checks", "[hosts]") {
  CHECK(gpu_lines(doctor_with(whole, {{"FAKE_NVML_GPUS", "0"}})) == 0);
  if (void* own = dlopen("libnvidia-ml.so.1", RTLD_LAZY)) {
    dlclose(own);
    WARN("skipped: this machine has a driver's library of its own");
    return;
  }
  const Ended ended = doctor_with("");
  INFO(ended.out);
  CHECK(gpu_lines(ended) == 0);
  CHECK(times("  GPU ", ended.out) == 1);
}

TEST_CASE("an unusable driver library is reported once, with its error", "[hosts]") {
  const Workplace here;
  here.write("libnvidia-ml.so.1", "no library at all");
  for (const auto& [folder, variables, says] :
       {std::tuple(whole, Variables{{"FAKE_NVML_INIT", "9"}}, "Driver Not Loaded"),
        std::tuple(lacking, Variables{}, "has no nvmlDeviceGetCount_v2"),
        std::tuple(here.path().string(), Variables{}, "file too short")}) {
    const Ended ended = doctor_with(folder, variables);
    INFO(ended.out);
    CHECK(times("  GPU driver ", ended.out) == 1);
    CHECK(times(says, ended.out) == 1);
    CHECK(gpu_lines(ended) == 1);
  }
}

TEST_CASE("a driver that cannot be asked is a warning only if there are GPUs", "[hosts]") {
  const Error why{"libnvidia-ml.so.1: Driver Not Loaded"};
  CHECK(judge_gpu_driver(why, 0).verdict == Verdict::skip);
  CHECK(judge_gpu_driver(why, 0).found == why.text);
  CHECK(judge_gpu_driver(why, 1).verdict == Verdict::warn);
  CHECK_FALSE(judge_gpu_driver(why, 1).fix.empty());
}

TEST_CASE("NVML's reasons have names, and unknown ones their number", "[hosts]") {
  using Names = std::vector<std::string>;
  CHECK(what_slows(0).empty());
  CHECK(what_slows(0x1).empty());  // The GPU is idle.
  CHECK(what_slows(0x4) == Names{"power cap"});
  CHECK(what_slows(0x20) == Names{"thermal slowdown"});
  CHECK(what_slows(0x88) == Names{"power brake", "hardware slowdown"});
  CHECK(what_slows(0x1205) == Names{"power cap", "reason 0x1200"});
}

TEST_CASE("values that a GPU does not report are omitted", "[hosts]") {
  actors::GpuReading gpu;
  gpu.name = "Tesla";
  CHECK(to_text(gpu) == "Tesla");
  gpu.slowed_by.emplace();
  CHECK(to_text(gpu) == "Tesla");
  CHECK(judge_gpu(gpu).verdict == Verdict::ok);
  gpu.watts = 0.4;
  gpu.used = 0;  // The total is not reported.
  CHECK(to_text(gpu) == "Tesla, 0 W");
}
