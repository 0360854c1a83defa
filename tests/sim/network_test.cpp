#include "simulation/machine/network.h"

#include <array>
#include <chrono>
#include <functional>
#include <string>

#include "tests/sim/wired_process.h"
#include "tests/transport/channel_contract.h"
#include "tests/transport/control_contract.h"
#include "tests/transport/publisher_contract.h"

using namespace troupe;
using namespace troupe::simulation;
using namespace troupe::transport;
using namespace std::chrono_literals;

namespace {

class SimulatedNetworkUnderTest final : public NetworkUnderTest {
 public:
  explicit SimulatedNetworkUnderTest(const Scheduler::Options& options) : scheduler_(options) {}
  ~SimulatedNetworkUnderTest() override { CHECK(wires_.open_ends() == 0); }

  Network& network(int process) override { return *at(process).network; }
  Env& env(int process) override { return *at(process).env; }
  bool run_until(const std::function<bool()>& condition) override {
    const auto end = scheduler_.now() + 120s;
    while (scheduler_.now() < end) {
      const auto stopped = scheduler_.run_until(condition, end);
      if (stopped == Scheduler::Stopped::done) return true;
      if (stopped != Scheduler::Stopped::idle) return false;
      // The condition may act, or wait for time to pass.
      scheduler_.after(clock_, 10ms, [] {});
    }
    return false;
  }
  std::string way_to(const std::string& address) override {
    const bool is_endpoint = address.starts_with("tcp://");
    const auto to = parse_endpoint(is_endpoint ? address : "tcp://" + address).value();
    const auto way = transport::to_string(wires_.add_relay(machine_, to));
    return is_endpoint ? way : way.substr(std::string("tcp://").size());
  }
  void stop_ways() override { wires_.cut_relays(); }
  void cut_ways() override { wires_.end_over_relays(); }

 private:
  WiredProcess& at(int process) { return processes_.at(static_cast<std::size_t>(process)); }

  Scheduler scheduler_;
  QueueId clock_ = scheduler_.add_queue(Scheduler::world, "clock");
  Wires wires_{scheduler_};
  MachineId machine_ = wires_.add_machine("alpha");
  std::array<WiredProcess, 3> processes_{{{scheduler_, wires_, machine_, "process 0"},
                                          {scheduler_, wires_, machine_, "process 1"},
                                          {scheduler_, wires_, machine_, "process 2"}}};
};

Scheduler::Options drawn_options() {
  using Manner = Scheduler::Manner;
  const auto manner = GENERATE(Manner::evenly, Manner::by_priorities, Manner::in_order);
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{5}));
  return {.seed = seed, .manner = manner};
}

}  // namespace

TEST_CASE("the simulated network keeps the contract of control sockets", "[sim]") {
  SimulatedNetworkUnderTest under_test(drawn_options());
  check_control_contract(under_test);
}

TEST_CASE("the simulated network keeps the contract of publishers", "[sim]") {
  SimulatedNetworkUnderTest under_test(drawn_options());
  check_publisher_contract(under_test);
}

TEST_CASE("the simulated network keeps the contract of channels over TCP", "[sim]") {
  SimulatedNetworkUnderTest under_test(drawn_options());
  check_channel_contract(under_test, "127.0.0.1:0", "");
}

TEST_CASE("the simulated network keeps the contract of channels in shared memory", "[sim]") {
  SimulatedNetworkUnderTest under_test(drawn_options());
  check_channel_contract(under_test, shared_memory, shared_memory);
}

TEST_CASE("connecting to a simulated door that does not answer fails in time", "[sim]") {
  SimulatedNetworkUnderTest under_test(drawn_options());
  check_silent_door(under_test);
}
