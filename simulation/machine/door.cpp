#include <algorithm>
#include <cassert>
#include <cstring>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "core/units.h"
#include "simulation/machine/sockets.h"
#include "transport/channels/door_rules.h"
#include "transport/channels/frame.h"
#include "transport/channels/socket.h"
#include "transport/network.h"

namespace troupe::simulation {
namespace {

using transport::Carrier;
using transport::ChannelEnd;
using transport::Verdict;

class SimulatedReceiver;

/// The receivers that wait for senders, by token. The door and its receivers share it, since any
/// may go first.
using Guests = std::map<std::uint64_t, SimulatedReceiver*>;

class SimulatedReceiver final : public transport::Receiver, private Plugged {
 public:
  SimulatedReceiver(std::shared_ptr<Guests> guests, transport::Token token,
                    const transport::Epoch& epoch, transport::Receiving receiving)
      : guests_(std::move(guests)), epoch_(epoch), receiving_(std::move(receiving)) {
    const bool is_new = guests_->emplace(static_cast<std::uint64_t>(token), this).second;
    assert(is_new && "every channel has a token of its own");
  }
  ~SimulatedReceiver() override {
    std::erase_if(*guests_, [this](const auto& entry) { return entry.second == this; });
    if (!plug_) return;
    plug_.send({"goodbye"});
    plug_.close(Plug::Rest::arrives);
  }

  transport::ChannelCounters counters() const override { return {parcels_, bytes_, 0}; }

  transport::Admission judge(const transport::Hello& hello, const transport::KeyOffer& offer,
                             bool stays_here) const {
    return transport::judge_at_receiver(hello, offer, receiving_, stays_here);
  }
  void arrive(Plug plug, Carrier carrier) {
    plug_ = std::move(plug);
    plug_.set_owner(*this);
    if (carrier == Carrier::tcp) plug_.set_patience(patience_of_paths);
  }

 private:
  void hear(Parts parts) override {
    // A frame: its front and the payload, as in frame.h. It ends the channel if it is not sane.
    if (auto sane = take(parts); !sane) end(ChannelEnd::Why::broken, sane.error().text);
  }
  void over(Over) override {
    end(ChannelEnd::Why::lost, "the other process died (connection closed without notice)");
  }

  Status take(const Parts& parts) {
    transport::FrameHeader header;
    if (parts.size() != 2 || parts[0].size() < sizeof header) return Error{"found no frame"};
    std::memcpy(&header, parts[0].data(), sizeof header);
    const auto front = std::as_bytes(std::span(parts[0])).subspan(sizeof header);
    const auto wanted =
        transport::check_header(header, {epoch_.number, parcels_, receiving_.bound});
    if (!wanted) return wanted.error();
    if (front.size() != *wanted) return Error{"found a front of another size"};
    if (auto right = transport::check_front_checksum(header, front); !right) return right;
    std::vector<transport::TensorPlan> plans;
    if (auto sane = transport::check_records(header, front, plans); !sane) return sane;
    if (header.kind == transport::FrameKind::goodbye) {
      end(ChannelEnd::Why::closed, "the channel was closed by its sender");
      return Done{};
    }
    std::vector<Tensor> tensors;
    std::size_t bytes = 0;
    if (!plans.empty()) {
      if (parts[1].size() != header.payload_bytes) return Error{"found another payload"};
      BlockHandle block;
      try {
        block = receiving_.memory->take(header.payload_bytes);
      } catch (const std::bad_alloc&) {
        return Error{"no memory for " + size_text(header.payload_bytes) + " of tensors"};
      }
      std::memcpy(block.get()->memory, parts[1].data(), parts[1].size());
      for (const auto& plan : plans) {
        tensors.push_back(Tensor::over(block, plan.offset, plan.shape, plan.type));
        bytes += plan.bytes;
      }
    }
    ++parcels_;
    bytes_ += bytes;
    plug_.tell(parcels_);
    // Last: the process may end within it.
    receiving_.listener.on_parcel({front.first(header.head_bytes), tensors});
    return Done{};
  }

  void end(ChannelEnd::Why why, const std::string& text) {
    plug_.close();
    if (receiving_.listener.on_end) receiving_.listener.on_end({why, text});
  }

  std::shared_ptr<Guests> guests_;
  const transport::Epoch epoch_;
  transport::Receiving receiving_;
  Plug plug_;
  std::uint64_t parcels_ = 0;
  std::uint64_t bytes_ = 0;
};

class SimulatedDoor final : public transport::Door, private Listening {
 public:
  SimulatedDoor(Wires& wires, const Wires::Party& who, const transport::DoorOrder& order,
                Carrier carrier)
      : wires_(wires), who_(who), order_(order), carrier_(carrier) {}

  Status open(const transport::Endpoint& at) {
    auto bound = wires_.listen(who_, at, *this);
    if (!bound) return bound.error();
    place_ = std::move(bound->place);
    address_ = carrier_ == Carrier::tcp
                   ? bound->endpoint.host + ":" + std::to_string(bound->endpoint.port)
                   : bound->endpoint.path;
    return Done{};
  }

  std::string address() const override { return address_; }
  std::unique_ptr<transport::Receiver> expect(transport::Token token,
                                              transport::Receiving receiving) override {
    return std::make_unique<SimulatedReceiver>(guests_, token, order_.epoch, std::move(receiving));
  }
  transport::DoorCounters counters() const override { return counters_; }

 private:
  void accept(Plug plug, Parts said) override {
    const auto hello = said.size() == 2 ? from_part<transport::Hello>(said[0]) : std::nullopt;
    const auto offer = said.size() == 2 ? from_part<transport::KeyOffer>(said[1]) : std::nullopt;
    if (!hello || !offer || hello->magic != transport::hello_magic) {
      ++counters_.garbage;
      return;
    }
    transport::Admission admission{transport::judge_at_door(*hello, order_, carrier_), {}};
    const auto guest = guests_->find(hello->token);
    if (admission.verdict == Verdict::welcome)
      admission = guest == guests_->end() ? transport::Admission{Verdict::unknown_token, {}}
                                          : guest->second->judge(*hello, *offer, plug.stays_here());
    ++(counters_.*transport::counter_of(admission.verdict));
    transport::Answer answer;
    answer.verdict = admission.verdict;
    const auto greeting =
        admission.agreement ? admission.agreement->answer : transport::KeyAnswer{};
    plug.send({to_part(answer), to_part(greeting)}, Plug::Traced::no);
    if (admission.verdict != Verdict::welcome) return plug.close(Plug::Rest::arrives);
    auto& receiver = *guest->second;
    guests_->erase(guest);
    receiver.arrive(std::move(plug), carrier_);
  }

  Wires& wires_;
  Wires::Party who_;
  transport::DoorOrder order_;
  Carrier carrier_;
  ListeningPlace place_;
  std::string address_;
  std::shared_ptr<Guests> guests_ = std::make_shared<Guests>();
  transport::DoorCounters counters_;
};

}  // namespace

Result<transport::Endpoint> endpoint_of_door(const std::string& tcp) {
  if (const auto address = transport::tcp_address(tcp); !address) return address.error();
  const auto colon = tcp.rfind(':');
  return transport::Endpoint{
      transport::Endpoint::Kind::tcp, tcp.substr(0, colon), std::stoi(tcp.substr(colon + 1)), {}};
}

transport::Endpoint endpoint_of_shm_door(const std::string& address) {
  return {transport::Endpoint::Kind::ipc, {}, 0, address};
}

Result<std::unique_ptr<transport::Door>> make_door(Wires& wires, const Wires::Party& who,
                                                   const std::string& at,
                                                   const transport::DoorOrder& order) {
  const bool is_shared = at == transport::shared_memory;
  const auto endpoint = is_shared
                            ? endpoint_of_shm_door(wires.scheduler().name(who.process) + "/" +
                                                   std::to_string(wires.scheduler().draw_bits()))
                            : endpoint_of_door(at);
  if (!endpoint) return endpoint.error();
  auto door =
      std::make_unique<SimulatedDoor>(wires, who, order, is_shared ? Carrier::shm : Carrier::tcp);
  if (auto opened = door->open(*endpoint); !opened) return opened.error();
  return std::unique_ptr<transport::Door>(std::move(door));
}

}  // namespace troupe::simulation
