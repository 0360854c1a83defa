#include "actors/mesh.h"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <utility>

#include "core/digest.h"
#include "transport/msgpack.h"
#include "transport/shm_channel.h"
#include "transport/tcp_channel.h"

namespace troupe::actors {
namespace {

constexpr std::size_t label_room = std::size_t{64} << 10;

/// What stands before a dispatch's bytes in the head of a parcel.
struct Label {
  PlayerId to;
  std::string type;
  Value body;

  static constexpr auto fields() {
    return std::tuple(transport::required("to", &Label::to),
                      transport::required("type", &Label::type),
                      transport::required("body", &Label::body));
  }
};

std::string head_of(PlayerId to, const Dispatch& dispatch) {
  const std::string label =
      transport::pack(transport::to_value(Label{to, dispatch.type, dispatch.body}));
  const auto size = static_cast<std::uint32_t>(label.size());
  std::string head(sizeof size, '\0');
  std::memcpy(head.data(), &size, sizeof size);
  return head + label + dispatch.bytes;
}

Result<std::pair<PlayerId, Dispatch>> read_head(std::string_view head) {
  std::uint32_t size = 0;
  if (head.size() < sizeof size) return Error{"found a parcel whose head has no label"};
  std::memcpy(&size, head.data(), sizeof size);
  head.remove_prefix(sizeof size);
  if (size > head.size())
    return Error{"found a label of " + std::to_string(size) + " bytes in a head of " +
                 std::to_string(head.size())};
  const auto value = transport::unpack(head.substr(0, size), {}, 2 * size + label_room, "parcel");
  if (!value) return value.error();
  auto label = transport::from_value<Label>(*value, "parcel");
  if (!label) return label.error();
  return std::pair(
      label->to,
      Dispatch{std::move(label->type), std::move(label->body), std::string(head.substr(size)), {}});
}

}  // namespace

std::string this_machine_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char host[256] = {};
  (void)gethostname(host, sizeof host - 1);
  return std::string(host) + "/" + boot;
}

transport::Epoch epoch_of(const std::string& run, std::uint64_t attempt) {
  const auto digest = digest_of(run);
  return {{digest.high, digest.low}, attempt};
}

Mesh::Mesh(transport::ChannelThread& thread, MeshOrder order)
    : thread_(thread), order_(std::move(order)), machine_(this_machine_id()) {}

// Nothing may be called any more when the rest goes.
Mesh::~Mesh() {
  senders_.clear();
  receivers_.clear();
}

Result<std::unique_ptr<Mesh>> Mesh::open(transport::ChannelThread& thread, MeshOrder order) {
  std::unique_ptr<Mesh> mesh(new Mesh(thread, std::move(order)));
  const auto& given = mesh->order_;
  if (given.carriers == Carriers::shm_and_tcp) {
    auto shm = transport::open_shm_door(thread, {.epoch = given.epoch});
    if (!shm) return shm.error();
    mesh->shm_ = std::move(*shm);
  }
  auto tcp = transport::open_tcp_door(thread, given.interface + ":0", {.epoch = given.epoch});
  if (!tcp) return tcp.error();
  mesh->tcp_ = std::move(*tcp);
  mesh->senders_.resize(static_cast<std::size_t>(given.processes));
  for (int other = 0; other < given.processes; ++other) {
    if (other == given.here) continue;
    for (auto* door : {mesh->shm_.get(), mesh->tcp_.get()}) {
      if (!door) continue;
      transport::Listener listener{
          [mesh = mesh.get(), other](transport::Parcel parcel) { mesh->arrived(other, parcel); },
          [mesh = mesh.get(), other](const transport::ChannelEnd& end) { mesh->lost(other, end); }};
      mesh->receivers_.push_back(door->expect(
          transport::Token{given.tokens[static_cast<std::size_t>(other)]},
          {.bound = given.bound, .memory = given.memory, .listener = std::move(listener)}));
    }
  }
  return mesh;
}

MeshAddress Mesh::address() const {
  return {machine_, shm_ ? shm_->address() : "", tcp_->address()};
}

Status Mesh::connect(const std::vector<MeshAddress>& others,
                     const std::vector<std::uint64_t>& tokens) {
  for (int other = 0; other < order_.processes; ++other) {
    if (other == order_.here) continue;
    const auto& to = others[static_cast<std::size_t>(other)];
    transport::Sending sending{
        .epoch = order_.epoch,
        .token = transport::Token{tokens[static_cast<std::size_t>(other)]},
        .bound = order_.bound,
        .memory = order_.memory,
        .on_end = [this, other](const transport::ChannelEnd& end) { lost(other, end); }};
    const bool share = !to.shm.empty() && to.machine == machine_ && shm_;
    auto sender = share ? transport::connect_shm(thread_, to.shm, std::move(sending))
                        : transport::connect_tcp(thread_, to.tcp, std::move(sending));
    if (!sender) return sender.error();
    senders_[static_cast<std::size_t>(other)] = std::move(*sender);
  }
  return Done{};
}

Status Mesh::send(int process, PlayerId to, const Dispatch& dispatch) {
  auto* sender = senders_.at(static_cast<std::size_t>(process)).get();
  if (!sender) return Error{"there is no channel to process " + std::to_string(process) + " yet"};
  const std::string head = head_of(to, dispatch);
  return sender->send(std::as_bytes(std::span(head)), dispatch.tensors);
}

void Mesh::lost(int other, const transport::ChannelEnd& end) { order_.on_lost(other, end.text); }

void Mesh::arrived(int from, transport::Parcel parcel) {
  auto read = read_head({reinterpret_cast<const char*>(parcel.head.data()), parcel.head.size()});
  if (!read) return order_.on_lost(from, read.error().text);
  auto& [to, dispatch] = *read;
  for (auto& tensor : parcel.tensors) dispatch.tensors.push_back(std::move(tensor));
  order_.on_dispatch(from, to, std::move(dispatch));
}

}  // namespace troupe::actors
