#include <ifaddrs.h>
#include <netinet/in.h>

#include <condition_variable>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/nodes/mesh.h"
#include "catch.h"
#include "core/threads/real_env.h"
#include "transport/channels/socket.h"
#include "transport/real_network.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

/// Returns an address of this machine that is not loopback; empty if it has none.
std::string address_towards_others() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  std::string found;
  for (const auto* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
    transport::SocketAddress address;
    address.size = sizeof(sockaddr_in);
    std::memcpy(&address.storage, one->ifa_addr, address.size);
    if (!transport::is_loopback(address)) found = transport::to_text(address);
  }
  freeifaddrs(all);
  return found.substr(0, found.rfind(':'));
}

/// The messages that a process received, and the reason why it lost the other one.
struct HeardByProcess {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Tensor> tensors;

  bool wait_for_tensor() {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [&] { return !tensors.empty(); });
  }
};

struct ProtectedProcess {
  Result<std::unique_ptr<Mesh>> open(int here, const std::string& interface,
                                     MeshProtection protection) {
    return Mesh::open(network, {.epoch = {{1, 2}, 3},
                                .here = here,
                                .processes = 2,
                                .tokens = {10, 11},
                                .bound = {1'000'000, 8},
                                .memory = &pool,
                                .interface = interface,
                                .carriers = Carriers::tcp,
                                .linked = {},
                                .protection = std::move(protection),
                                .on_wire_message =
                                    [this](int, PlayerId, WireMessage wire_message) {
                                      const std::lock_guard lock(heard.mutex);
                                      for (auto& one : wire_message.tensors)
                                        heard.tensors.push_back(std::move(one));
                                      heard.changed.notify_all();
                                    },
                                .on_lost = [](int, const std::string&) {}});
  }

  MemoryPool pool;
  HeardByProcess heard;
  RealEnv env;
  transport::RealNetwork network;
  const std::unique_ptr<Loop> loop = env.make_loop({"mesh"});
};

struct TwoProcesses {
  /// Connects both processes. If that succeeds, sends a tensor from the first to the second.
  Status meet(const std::string& interface, const MeshProtection& first,
              const MeshProtection& second) {
    auto mesh = one.open(0, interface, first), other = two.open(1, interface, second);
    if (!mesh) return mesh.error();
    if (!other) return other.error();
    const std::vector<MeshAddress> all{(*mesh)->address(), (*other)->address()};
    std::promise<Status> here, elsewhere;
    (*mesh)->connect(all, {10, 10}, *one.loop, [&](const Status& is) { here.set_value(is); });
    (*other)->connect(all, {11, 11}, *two.loop, [&](const Status& is) { elsewhere.set_value(is); });
    const auto there = here.get_future().get(), back = elsewhere.get_future().get();
    if (!there) return there;
    if (!back) return back;
    Tensor tensor = Tensor::make(one.pool, {3}, DType::i32);
    for (int i = 0; i < 3; ++i) tensor.data<std::int32_t>()[i] = 40 + i;
    if (auto sent = (*mesh)->send(1, {PlayerId::Kind::stage, 0}, {"a", Value::Map{}, "", {tensor}});
        !sent)
      return sent;
    REQUIRE(two.heard.wait_for_tensor());
    CHECK(two.heard.tensors[0].data<std::int32_t>()[2] == 42);
    return Done{};
  }

  ProtectedProcess one, two;
};

}  // namespace

TEST_CASE("tensors leave a machine only encrypted, unless the user allows plain tensors",
          "[actors]") {
  const auto interface = address_towards_others();
  if (interface.empty()) {
    WARN("skipped: this machine has no address beside the loopback ones");
    return;
  }
  const auto first = transport::make_key_pair().value(),
             second = transport::make_key_pair().value();
  const std::vector<std::string> peers{first.public_key, second.public_key};
  constexpr auto within = PlainTensors::within_machine, anywhere = PlainTensors::anywhere;
  TwoProcesses processes;
  SECTION("with keys") {
    CHECK(processes.meet(interface, {within, first, peers}, {within, second, peers}).ok());
  }
  SECTION("in the clear, as the head has said") {
    CHECK(processes.meet(interface, {anywhere, {}, {}}, {anywhere, {}, {}}).ok());
    CHECK(processes.meet(interface, {anywhere, first, peers}, {anywhere, second, peers}).ok());
  }
  SECTION("within the machine nothing is needed") {
    CHECK(processes.meet("127.0.0.1", {within, {}, {}}, {within, {}, {}}).ok());
    CHECK(processes.meet("127.0.0.1", {within, first, peers}, {within, second, peers}).ok());
  }
  SECTION("without keys") {
    const auto refused = processes.meet(interface, {within, {}, {}}, {within, {}, {}});
    REQUIRE(!refused.ok());
    CHECK(refused.error().text ==
          interface +
              ":0: tensors would leave the machine in the clear, because this cluster has no keys; "
              "make keys with `troupe keys new`, or start the head with --plain-tensors if the "
              "network is all yours");
  }
  SECTION("with another key than the head has told") {
    const auto stranger = transport::make_key_pair().value();
    const auto refused =
        processes.meet(interface, {within, first, peers}, {within, stranger, peers});
    REQUIRE(!refused.ok());
    CHECK(refused.error().text.find("key") != std::string::npos);
  }
  SECTION("where one of them was told that the network is theirs") {
    CHECK(!processes.meet(interface, {within, first, peers}, {anywhere, second, peers}).ok());
  }
  SECTION("with keys of other processes") {
    CHECK(!processes.one.open(0, interface, {within, first, {first.public_key}}).ok());
  }
}
