#include "actors/link_probe.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/digest.h"
#include "core/memory/tensor.h"
#include "core/units.h"

namespace troupe::actors {
namespace {

constexpr auto doors_stay_open = std::chrono::seconds(20);
/// For each of the channels that a probe makes.
constexpr auto patience = std::chrono::milliseconds(1000);
constexpr transport::Bound bound{.bytes = static_cast<std::size_t>(probe_bytes), .parcels = 2};

/// The carriers, in the order in which they are measured.
enum Carrier { shm, tcp };
constexpr std::array<const char*, 2> carrier_names = {"shm", "tcp"};
/// A way is measured by several channels. The first ones carry an empty parcel, and the others one
/// with numbers. The least times count, since a busy machine delays some of them.
constexpr int empty_parcels = 3;
constexpr int channels = empty_parcels + probes_of_rate;

/// Returns the token of a channel of the node with this number.
transport::Token token_of(std::int64_t secret, int node, int carrier, int channel) {
  const auto number =
      (node * static_cast<int>(carrier_names.size()) + carrier) * channels + channel;
  return transport::Token{digest_of(std::to_string(secret) + " " + std::to_string(number)).high};
}

transport::Epoch epoch_of(std::int64_t question, std::int64_t secret) {
  const auto digest = digest_of("probe " + std::to_string(secret));
  return {{digest.high, digest.low}, static_cast<std::uint64_t>(question)};
}

}  // namespace

NodeDoors LinkProbe::open(const OpenDoors& order) {
  receivers_.clear();
  doors_.clear();
  if (closing_) context_.loop.cancel(*closing_);
  NodeDoors opened{.question = order.question, .machine = context_.network.machine_id()};
  const std::array<std::string, 2> places = {context_.shares_memory ? transport::shared_memory : "",
                                             context_.tcp_at};
  std::array<std::string, 2> addresses;
  for (std::size_t carrier = 0; carrier < places.size(); ++carrier) {
    if (places[carrier].empty()) continue;
    auto door = context_.network.open_door(places[carrier],
                                           {.epoch = epoch_of(order.question, order.secret)});
    if (!door) {
      opened.why = door.error().text;
      continue;
    }
    for (int node = 0; node < order.nodes; ++node)
      for (int channel = 0; channel < channels; ++channel)
        receivers_.push_back((*door)->expect(
            token_of(order.secret, node, static_cast<int>(carrier), channel),
            {.bound = bound,
             .memory = &memory_,
             .listener = {[](transport::Parcel) {}, [](const transport::ChannelEnd&) {}}}));
    addresses[carrier] = (*door)->address();
    doors_.push_back(std::move(*door));
  }
  opened.shm = addresses[shm];
  opened.tcp = addresses[tcp];
  closing_ = context_.loop.after(doors_stay_open, [this] {
    closing_.reset();
    receivers_.clear();
    doors_.clear();
  });
  return opened;
}

/// The ways of an order that are not measured yet, and what was measured.
struct LinkProbe::Measuring {
  ProbeLinks order;
  std::function<void(NodeLinks)> then;
  NodeLinks measured;
  std::size_t target = 0;
  int carrier = 0;
  int channel = 0;
  std::chrono::nanoseconds least{};  // The least time that a parcel of this size took.
  bool has_arrived = false;          // The last parcel has,
  std::chrono::nanoseconds took{};   // after this time.

  const ProbeTarget& to() const { return order.targets[target]; }
  /// Goes to the next way.
  void next_way() {
    channel = 0;
    if (++carrier < static_cast<int>(carrier_names.size())) return;
    carrier = 0;
    ++target;
  }
  ProbedLink& link() { return measured.links.back(); }
};

void LinkProbe::measure(ProbeLinks order, std::function<void(NodeLinks)> then) {
  const auto measuring = std::make_shared<Measuring>();
  measuring->measured.question = order.question;
  measuring->order = std::move(order);
  measuring->then = std::move(then);
  go_on(measuring);
}

/// Makes the next channel, or ends.
void LinkProbe::go_on(const std::shared_ptr<Measuring>& measuring) {
  const auto machine = context_.network.machine_id();
  const auto leads_there = [&] {
    const auto& to = measuring->to();
    if (measuring->carrier == tcp) return !to.tcp.empty();
    return context_.shares_memory && !to.shm.empty() && to.machine == machine;
  };
  auto& all = measuring->order.targets;
  while (measuring->target < all.size() && measuring->channel == 0 && !leads_there())
    measuring->next_way();
  if (measuring->target == all.size()) return measuring->then(std::move(measuring->measured));
  const auto& to = measuring->to();
  if (measuring->channel == 0)
    measuring->measured.links.push_back(
        {.to = to.name, .carrier = carrier_names[static_cast<std::size_t>(measuring->carrier)]});
  const auto address = measuring->carrier == shm ? transport::shared_memory + to.shm : to.tcp;
  transport::Sending sending{.epoch = epoch_of(measuring->order.question, measuring->order.secret),
                             .token = token_of(measuring->order.secret, measuring->order.here,
                                               measuring->carrier, measuring->channel),
                             .bound = bound,
                             .memory = &memory_,
                             .on_end = [](const transport::ChannelEnd&) {},
                             .patience = patience};
  context_.network.connect(address, std::move(sending), context_.loop,
                           [this, measuring](Result<std::unique_ptr<transport::Sender>> sender) {
                             if (sender) return send_by(std::move(*sender), measuring);
                             measuring->link().why = sender.error().text;
                             measuring->next_way();
                             go_on(measuring);
                           });
}

/// Sends a parcel, waits aside until it has arrived, and goes on.
void LinkProbe::send_by(std::unique_ptr<transport::Sender> sender,
                        const std::shared_ptr<Measuring>& measuring) {
  const std::shared_ptr<transport::Sender> sending = std::move(sender);
  (void)context_.loop.aside(
      "probing",
      [this, sending, measuring] {
        std::vector<Tensor> tensors;
        if (measuring->channel >= empty_parcels) {
          auto& numbers = tensors.emplace_back(
              sending->lend({probe_bytes / static_cast<std::int64_t>(sizeof(float))}, DType::f32));
          // No number of a run leaves the machine.
          std::fill_n(numbers.data<float>(), numbers.count(), 0.0f);
        }
        constexpr std::array<std::byte, 1> head{};
        const auto began = context_.env.now();
        measuring->has_arrived = sending->send(head, tensors) && sending->close(patience);
        measuring->took = context_.env.now() - began;
      },
      [this, measuring] {
        auto& link = measuring->link();
        const auto channel = measuring->channel;
        link.bytes += channel < empty_parcels ? 1 : probe_bytes;
        if (!measuring->has_arrived) {
          link.why = "nothing arrived within " + std::to_string(patience.count()) + " ms";
          measuring->next_way();
          return go_on(measuring);
        }
        const bool is_first = channel == 0 || channel == empty_parcels;
        measuring->least = is_first ? measuring->took : std::min(measuring->least, measuring->took);
        const double took = in_seconds(measuring->least);
        if (channel < empty_parcels)
          link.round_trip = took;
        else if (took > 0)
          link.bytes_per_second = static_cast<double>(probe_bytes) / took;
        if (++measuring->channel == channels) measuring->next_way();
        go_on(measuring);
      });
}

}  // namespace troupe::actors
