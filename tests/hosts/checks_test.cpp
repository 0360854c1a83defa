#include <chrono>

#include "apps/hosts/gpu_checks.h"
#include "apps/hosts/machine_checks.h"
#include "apps/hosts/place_checks.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::apps;

namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20, gib = mib << 10;
using Days = std::chrono::duration<int, std::ratio<86400>>;

void expect(const Check& check, Verdict verdict, const std::string& says) {
  INFO(to_text(check));
  CHECK(check.verdict == verdict);
  CHECK((check.found + " " + check.fix).find(says) != std::string::npos);
  if (verdict == Verdict::warn || verdict == Verdict::fail) CHECK(!check.fix.empty());
}

}  // namespace

TEST_CASE("a check is printed as a line, with a second line if there is a fix", "[hosts]") {
  CHECK(to_text({"memory", Verdict::ok, "3.0 GiB", ""}) == "ok    memory          3.0 GiB\n");
  CHECK(to_text({"open files", Verdict::fail, "256", "ulimit -n 65536"}) ==
        "FAIL  open files      256\n      fix: ulimit -n 65536\n");
  const Check check{"clock", Verdict::warn, "found", "fix"};
  const Check again = from_event(to_event(check));
  CHECK(to_text(again) == to_text(check));
  CHECK(from_event(Value::Map{}).verdict == Verdict::fail);
}

TEST_CASE("a processor without fused multiply-add is slow but valid", "[hosts]") {
  expect(judge_processor({"Xeon", true, true, "bf16-blocks"}), Verdict::ok, "AVX-512");
  expect(judge_processor({"Core 2", false, false, "fp32"}), Verdict::warn, "same bits come slowly");
  CHECK(determinism_class({"a", true, true, "bf16-pairs"}) !=
        determinism_class({"b", true, true, "fp32"}));
  CHECK(determinism_class({"a", true, true, "fp32"}) ==
        determinism_class({"b", true, false, "fp32"}));
}

TEST_CASE("the number of cores is limited by the control group", "[hosts]") {
  expect(judge_cores({.online = 8, .usable = 8}), Verdict::ok, "8 cores");
  expect(judge_cores({.online = 8, .usable = 2}), Verdict::ok, "2 cores of 8");
  expect(judge_cores({.online = 8, .usable = 8, .quota = 2.5, .used = 2}), Verdict::ok,
         "the control group gives the time of 2.5, so 2 threads");
  expect(judge_cores({.online = 8, .usable = 8, .quota = 0.5, .used = 1}), Verdict::warn,
         "at least one core");
  expect(judge_cores({.online = 8, .usable = 8, .quota = 16.0}), Verdict::ok, "");
  expect(judge_cores({.online = 64, .usable = 64, .numa_nodes = 2}), Verdict::warn, "numactl");
}

TEST_CASE("available memory is what is free and what the control group allows", "[hosts]") {
  expect(judge_memory({8 * gib, 4 * gib, {}}), Verdict::ok, "4.0 GiB of 8.0 GiB");
  expect(judge_memory({8 * gib, 512 * mib, {}}), Verdict::warn, "");
  expect(judge_memory({8 * gib, 64 * mib, {}}), Verdict::fail, "");
  expect(judge_memory({8 * gib, 4 * gib, 100 * mib}), Verdict::fail, "control group");
}

TEST_CASE("missing anonymous shared memory is a failure, a small /dev/shm a warning", "[hosts]") {
  expect(judge_shared_memory({8 * gib, true}), Verdict::ok, "");
  expect(judge_shared_memory({64 * mib, true}), Verdict::warn, "medium: Memory");
  expect(judge_shared_memory({0, true}), Verdict::warn, "--shm-size");
  expect(judge_shared_memory({8 * gib, false}), Verdict::fail, "--carrier tcp");
}

TEST_CASE("limits of open files and locked memory are judged", "[hosts]") {
  expect(judge_open_files({65536, 65536}), Verdict::ok, "");
  expect(judge_open_files({{}, {}}), Verdict::ok, "any number");
  expect(judge_open_files({512, 4096}), Verdict::warn, "ulimit -n");
  expect(judge_open_files({128, 128}), Verdict::fail, "ulimit -n");
  expect(judge_locked_memory({8 * mib, 8 * mib}, 0), Verdict::skip, "8MiB; only GPUs");
  expect(judge_locked_memory({8 * mib, 8 * mib}, 1), Verdict::warn, "LimitMEMLOCK");
  expect(judge_locked_memory({{}, {}}, 1), Verdict::ok, "");
  expect(judge_gpus(0, Error{"built without"}), Verdict::skip, "there is none; built without");
  expect(judge_gpus(2, Error{"no driver"}), Verdict::skip, "2 NVIDIA devices; no driver");
  expect(judge_gpus(0, 0), Verdict::skip, "there is none");
  expect(judge_gpus(2, 1), Verdict::ok, "1 GPU for train.device = \"cuda\"");
  const Result<std::string> libraries = std::string("cuBLASLt 13.1.0, cuDNN 9.19.0");
  const Result<std::string> none = Error{"libcudnn.so.9: it is not there"};
  const Error no_compiler{"libnvrtc.so.13: it is not there"};
  expect(judge_gpu_libraries(libraries, Done{}, 1), Verdict::ok,
         "cuDNN 9.19.0; GPUs compute in bf16, fp16 and tf32");
  expect(judge_gpu_libraries(libraries, no_compiler, 1), Verdict::warn,
         "cuDNN 9.19.0, but libnvrtc.so.13: it is not there; a slower kernel in fp32");
  expect(judge_gpu_libraries(none, no_compiler, 1), Verdict::warn,
         "libcudnn.so.9: it is not there; GPUs comp");
  expect(judge_gpu_libraries(none, no_compiler, 0), Verdict::skip,
         "libcudnn.so.9: it is not there");
}

TEST_CASE("a library of another series, or without a needed feature, is reported", "[hosts]") {
  const LibraryFacts good{"ZeroMQ", "4.3.4", "4.3.5", "with CURVE", ""};
  expect(judge_libraries({good}), Verdict::ok, "ZeroMQ 4.3.5 with CURVE");
  const LibraryFacts older{"ZeroMQ", "4.3.4", "4.1.7", "with CURVE", ""};
  expect(judge_libraries({good, older}), Verdict::warn, "compiled with 4.3.4");
  const LibraryFacts bare{"ZeroMQ", "4.3.4", "4.3.4", "", "CURVE"};
  expect(judge_libraries({bare, older}), Verdict::fail, "without CURVE");
}

TEST_CASE("a slow machine gives a warning", "[hosts]") {
  expect(judge_speed({2, 100e9, 10e9}), Verdict::ok, "100 GFLOP/s in fp32 by 2 threads");
  expect(judge_speed({2, 1e9, 10e9}), Verdict::warn, "another program uses the cores");
}

TEST_CASE("loopback connections and listening ports are judged", "[hosts]") {
  expect(judge_loopback(std::chrono::nanoseconds(41'600)), Verdict::ok, "in 42 us");
  expect(judge_loopback(Error{"Network is unreachable"}), Verdict::fail, "ip link set lo up");
  expect(judge_ports({{4700, {}}, {4701, {}}}), Verdict::ok, "4700, 4701 are free");
  expect(judge_ports({{4700, Error{"Address already in use"}}, {4701, {}}}), Verdict::warn,
         "has 4700 (Address already in use)");
}

TEST_CASE("the interface for other machines is neither lo nor a bridge to containers", "[hosts]") {
  const Interface lo{"lo", "127.0.0.1", true, true, {}}, docker{"docker0", "172.17.0.1", true},
      eth0{"eth0", "10.0.0.1", true, false, 1000}, ib0{"ib0", "10.1.0.1", true, false, 100'000},
      eth6{"eth0", "[2001:db8::1]", true, false, 1000},
      off{"eth9", "10.9.0.1", false, false, 400'000};
  const auto chosen = [](std::vector<Interface> all) {
    const Interface* one = choose_interface(all);
    return one ? one->address : "none";
  };
  CHECK(chosen({lo, docker, eth0}) == "10.0.0.1");
  CHECK(chosen({lo, docker, eth6, eth0}) == "10.0.0.1");
  CHECK(chosen({lo, eth0, ib0, off}) == "10.1.0.1");
  CHECK(chosen({lo, eth6}) == "[2001:db8::1]");
  CHECK(chosen({lo, docker}) == "none");
  for (const std::string name : {"veth12ab", "br-0f9e", "virbr0", "cni0", "flannel.1"})
    CHECK(chosen({lo, {name, "10.5.0.1", true}}) == "none");
  expect(judge_interfaces({lo, docker, eth6, eth0}), Verdict::ok,
         "eth0 10.0.0.1, 1000 Mbit/s; not docker0, lo");
  expect(judge_interfaces({lo, docker}), Verdict::warn, "ip link set");
}

TEST_CASE("a listener on all interfaces is dialed by an address of its machine", "[hosts]") {
  CHECK(reached_at("tcp://0.0.0.0:4701", "tcp://10.0.0.1:4700") == "tcp://10.0.0.1:4701");
  CHECK(reached_at("tcp://*:4701", "10.0.0.1") == "tcp://10.0.0.1:4701");
  CHECK(reached_at("tcp://10.0.0.9:4701", "10.0.0.1") == "tcp://10.0.0.9:4701");
  CHECK(reached_at("tcp://0.0.0.0:4701", "ipc:///run/head") == "tcp://127.0.0.1:4701");
  CHECK(reached_at("ipc:///run/events", "10.0.0.1") == "ipc:///run/events");
  CHECK(address_of_listener("tcp://10.0.0.1:4700") == "10.0.0.1");
  CHECK(address_of_listener("ipc:///run/head") == "127.0.0.1");
  CHECK(*address_towards("tcp://127.0.0.1:4700") == "127.0.0.1");
}

TEST_CASE("a clock that is before the program's build is wrong", "[hosts]") {
  using Clock = std::chrono::system_clock;
  const Clock::time_point made{Days(20'000)};
  expect(judge_clock({made + Days(1), made, {}}), Verdict::ok, "2024-10-05");
  expect(judge_clock({made - Days(365), made, {}}), Verdict::fail, "timedatectl");
  expect(judge_clock({Clock::time_point(), made, {}}), Verdict::fail, "1970-01-01");
  expect(judge_clock({made + Days(5000), made, {}}), Verdict::warn, "ten years");
  expect(judge_clock({made, made, std::chrono::nanoseconds(-1)}), Verdict::fail, "went back");
}

TEST_CASE("a full or slow disk is reported", "[hosts]") {
  const DiskFacts good{"/data", std::uint64_t{50} << 30, 400e6};
  expect(judge_disk(good), Verdict::ok, "/data: 50.0 GiB free, writes 400 MB/s");
  expect(judge_disk(DiskFacts{"/data", std::uint64_t{1} << 30, 400e6}), Verdict::warn, "make room");
  expect(judge_disk(DiskFacts{"/data", 1 << 20, 0}), Verdict::fail, "make room");
  expect(judge_disk(DiskFacts{"/data", std::uint64_t{50} << 30, 5e6}), Verdict::warn,
         "checkpoints will take long");
  expect(judge_disk(Error{"/data: cannot create: Read-only file system"}), Verdict::fail,
         "Read-only");
}

TEST_CASE("the facts of this machine can be read", "[hosts]") {
  CHECK(read_cores().usable >= 1);
  const auto memory = read_memory();
  CHECK(memory.total > memory.available);
  CHECK(memory.available > 0);
  CHECK(try_loopback().ok());
  CHECK(read_clock().made.time_since_epoch().count() > 0);
  bool has_loopback = false;
  for (const auto& one : read_interfaces()) has_loopback |= one.is_loopback;
  CHECK(has_loopback);
  for (const auto& one : read_libraries()) CHECK(one.found.find('.') != std::string::npos);
}
