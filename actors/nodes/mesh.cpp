#include "actors/nodes/mesh.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "core/digest.h"
#include "transport/channels/socket.h"
#include "transport/links/edge_word.h"
#include "transport/wire/msgpack.h"

namespace troupe::actors {
namespace {

constexpr std::size_t label_room = std::size_t{64} << 10;

// A label starts with its length so that it cannot be mistaken for an edge word.
static_assert(transport::edge_magic > transport::most_head_bytes);

/// The part of a parcel's head before the dispatch's bytes.
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

std::string head_of(PlayerId to, const WireMessage& wire_message) {
  const std::string label =
      transport::pack(transport::to_value(Label{to, wire_message.type, wire_message.body}));
  const auto size = static_cast<std::uint32_t>(label.size());
  std::string head(sizeof size, '\0');
  std::memcpy(head.data(), &size, sizeof size);
  return head + label + wire_message.bytes;
}

}  // namespace

Result<std::pair<PlayerId, WireMessage>> read_head(std::string_view head) {
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
      WireMessage{
          std::move(label->type), std::move(label->body), std::string(head.substr(size)), {}});
}

transport::Epoch epoch_of(const std::string& run, std::uint64_t attempt) {
  const auto digest = digest_of(run);
  return {{digest.high, digest.low}, attempt};
}

struct Mesh::Existence {
  /// Calls a function with the mesh, which exists until the function has returned. Does nothing if
  /// the mesh is destroyed already.
  template <class Use>
  void use(Use use) {
    const std::lock_guard lock(mutex);
    if (mesh) use(*mesh);
  }

  std::mutex mutex;
  Mesh* mesh = nullptr;  // Null once the mesh is being destroyed.
  std::mutex forming;    // Held while edges are formed.
};

struct Mesh::Connecting {
  std::vector<MeshAddress> others;
  std::vector<std::uint64_t> tokens;
  Loop& loop;
  std::function<void(const Status&)> then;
  int next = 0;  // The next process to connect to.

  /// Takes a step, which returns a status if it was the last one, and then reports that status.
  template <class Step>
  void go_on(Existence& existence, Step step) {
    std::optional<Status> status;
    existence.use([&](Mesh& mesh) { status = step(mesh); });
    if (status) then(*status);
  }
};

Mesh::Mesh(transport::Network& network, MeshOrder order)
    : network_(network),
      order_(std::move(order)),
      machine_(network.machine_id()),
      existence_(std::make_shared<Existence>()),
      edges_({.epoch = order_.epoch,
              .bound = order_.bound,
              .linked = order_.linked,
              .on_parcel = [this](int from, transport::Parcel parcel) { deliver(from, parcel); },
              .on_lost = [this](int other, const std::string& why) { lost(other, why); }}) {
  existence_->mesh = this;
}

// Channels end first, so that no callback runs while the rest is destroyed.
Mesh::~Mesh() {
  {
    const std::lock_guard lock(existence_->mutex);
    existence_->mesh = nullptr;
  }
  edges_.abort("the attempt has ended");
  { const std::lock_guard formed(existence_->forming); }
  (void)edges_.end().ok();
  senders_.clear();
  receivers_.clear();
}

Result<std::unique_ptr<Mesh>> Mesh::open(transport::Network& network, MeshOrder order) {
  std::unique_ptr<Mesh> mesh(new Mesh(network, std::move(order)));
  const auto& given = mesh->order_;
  const auto& peers = given.protection.peers;
  if (!peers.empty() && peers.size() != static_cast<std::size_t>(given.processes))
    return Error{"found " + std::to_string(peers.size()) + " keys for " +
                 std::to_string(given.processes) + " processes"};
  if (auto safe = mesh->check_exposure(given.interface + ":0"); !safe) return safe.error();
  if (given.carriers == Carriers::shm_and_tcp) {
    auto shm = network.open_door(transport::shared_memory, {.epoch = given.epoch});
    if (!shm) return shm.error();
    mesh->shm_ = std::move(*shm);
  }
  auto tcp = network.open_door(given.interface + ":0", {.epoch = given.epoch});
  if (!tcp) return tcp.error();
  mesh->tcp_ = std::move(*tcp);
  mesh->senders_.resize(static_cast<std::size_t>(given.processes));
  for (int other = 0; other < given.processes; ++other) {
    if (other == given.here) continue;
    for (auto* door : {mesh->shm_.get(), mesh->tcp_.get()}) {
      if (!door) continue;
      transport::Listener listener{
          [mesh = mesh.get(), other](transport::Parcel parcel) { mesh->arrived(other, parcel); },
          [mesh = mesh.get(), other](const transport::ChannelEnd& end) {
            mesh->lost(other, end.text);
          }};
      mesh->receivers_.push_back(
          door->expect(transport::Token{given.tokens[static_cast<std::size_t>(other)]},
                       {.bound = given.bound,
                        .memory = given.memory,
                        .listener = std::move(listener),
                        .keys = door == mesh->tcp_.get() ? mesh->keys_with(other) : nullptr}));
    }
  }
  return mesh;
}

MeshAddress Mesh::address() const {
  return {machine_, shm_ ? shm_->address() : "", tcp_->address(), edges_.places()};
}

void Mesh::connect(std::vector<MeshAddress> others, std::vector<std::uint64_t> tokens, Loop& loop,
                   std::function<void(const Status&)> then) {
  const auto connecting = std::make_shared<Connecting>(
      Connecting{std::move(others), std::move(tokens), loop, std::move(then)});
  loop.post([existence = existence_, connecting] {
    connecting->go_on(*existence, [&](Mesh& mesh) { return mesh.connect_next(connecting); });
  });
}

/// Connects to one process after another. Returns a status when there is nothing more to do.
std::optional<Status> Mesh::connect_next(const std::shared_ptr<Connecting>& connecting) {
  if (connecting->next == order_.here) ++connecting->next;
  const int other = connecting->next++;
  if (other >= order_.processes) return form_edges(connecting);
  auto sending = sending_to(other, *connecting);
  if (!sending) return sending.error();
  const auto& to = connecting->others[static_cast<std::size_t>(other)];
  const bool share = !to.shm.empty() && to.machine == machine_ && shm_;
  network_.connect(share ? transport::shared_memory + to.shm : to.tcp, std::move(*sending),
                   connecting->loop,
                   [existence = existence_, connecting,
                    other](Result<std::unique_ptr<transport::Sender>> sender) {
                     connecting->go_on(*existence, [&](Mesh& mesh) -> std::optional<Status> {
                       if (!sender) {
                         mesh.lost(other, sender.error().text);
                         return sender.error();
                       }
                       mesh.senders_[static_cast<std::size_t>(other)] = std::move(*sender);
                       return mesh.connect_next(connecting);
                     });
                   });
  return {};
}

/// Returns the parameters of the channel to a process. Fails if the channel would be unprotected.
Result<transport::Sending> Mesh::sending_to(int other, const Connecting& connecting) const {
  const auto i = static_cast<std::size_t>(other);
  const auto& to = connecting.others[i].tcp;
  if (auto safe = check_exposure(to); !safe) return safe.error();
  transport::Sending sending{
      .epoch = order_.epoch,
      .token = transport::Token{connecting.tokens[i]},
      .bound = order_.bound,
      .memory = order_.memory,
      .on_end = [existence = existence_, other](const transport::ChannelEnd& end) {
        existence->use([&](Mesh& mesh) { mesh.lost(other, end.text); });
      }};
  const auto address = transport::tcp_address(to);
  if (address && !transport::is_loopback(*address)) sending.keys = keys_with(other);
  return sending;
}

/// Forms the edges, which waits for all processes. Returns a status if there are none.
std::optional<Status> Mesh::form_edges(const std::shared_ptr<Connecting>& connecting) {
  if (order_.linked.devices.empty()) return Done{};
  const auto formed = std::make_shared<Status>(Error{"the attempt has ended"});
  connecting->loop.aside(
      "edges",
      [existence = existence_, connecting, formed] {
        const std::lock_guard forming(existence->forming);
        Mesh* mesh = nullptr;
        existence->use([&](Mesh& here) { mesh = &here; });
        // Its destructor waits until the edges are formed.
        if (mesh) *formed = mesh->form_edges_now(connecting->others);
      },
      [existence = existence_, connecting, formed] {
        connecting->go_on(*existence, [&](Mesh&) { return *formed; });
      });
  return {};
}

Status Mesh::form_edges_now(const std::vector<MeshAddress>& others) {
  std::vector<std::vector<LinkPlace>> places(others.size());
  // Links between machines use NCCL, which cannot encrypt.
  const bool anywhere = order_.protection.plain == PlainTensors::anywhere;
  std::ranges::transform(others, places.begin(), [&](const MeshAddress& other) {
    return anywhere || other.machine == machine_ ? other.links : std::vector<LinkPlace>();
  });
  std::vector<transport::Sender*> words(senders_.size());
  std::ranges::transform(senders_, words.begin(), [](const auto& sender) { return sender.get(); });
  return edges_.form(places, words);
}

Status Mesh::send(int process, PlayerId to, const WireMessage& wire_message) {
  auto* sender = senders_.at(static_cast<std::size_t>(process)).get();
  if (!sender) return Error{"there is no channel to process " + std::to_string(process) + " yet"};
  const std::string head = head_of(to, wire_message);
  if (auto* edge = edges_.edge(to, head.size(), wire_message.tensors)) sender = edge;
  return sender->send(std::as_bytes(std::span(head)), wire_message.tensors);
}

bool Mesh::is_linked(PlayerId to, const WireMessage& wire_message) const {
  return edges_.edge(to, head_of(to, wire_message).size(), wire_message.tensors) != nullptr;
}

std::vector<Path> Mesh::paths() const {
  std::vector<Path> paths;
  for (std::size_t process = 0; process < senders_.size(); ++process)
    if (const auto path = senders_[process] ? senders_[process]->path() : std::nullopt)
      paths.push_back({static_cast<int>(process), path->latency.count(), path->bytes_per_second});
  return paths;
}

bool Mesh::has_keys() const {
  return order_.protection.own.has_value() && !order_.protection.peers.empty();
}

/// Returns null if tensors go unencrypted.
std::shared_ptr<const transport::ChannelKeys> Mesh::keys_with(int other) const {
  const auto& [plain, own, peers] = order_.protection;
  if (plain == PlainTensors::anywhere || !has_keys()) return nullptr;
  return std::make_shared<const transport::ChannelKeys>(
      transport::ChannelKeys{*own, peers[static_cast<std::size_t>(other)]});
}

/// Fails if tensors for this address would leave the machine unencrypted without consent.
Status Mesh::check_exposure(const std::string& address) const {
  const auto parsed = transport::tcp_address(address);
  if (!parsed) return parsed.error();
  if (transport::is_loopback(*parsed) || has_keys() ||
      order_.protection.plain == PlainTensors::anywhere)
    return Done{};
  return Error{address +
               ": tensors would leave the machine in the clear, because this cluster has no keys; "
               "make keys with `troupe keys new`, or start the head with --plain-tensors if the "
               "network is all yours"};
}

/// Aborts the edges, since the attempt cannot go on and devices should not wait for each other.
void Mesh::lost(int other, const std::string& why) {
  edges_.abort(why);
  order_.on_lost(other, why);
}

/// Handles a parcel that came by a channel.
void Mesh::arrived(int from, transport::Parcel parcel) {
  if (transport::read_edge_word(parcel.head)) return edges_.hear(from, parcel.head);
  deliver(from, parcel);
}

void Mesh::deliver(int from, transport::Parcel parcel) {
  auto read = read_head({reinterpret_cast<const char*>(parcel.head.data()), parcel.head.size()});
  if (!read) return lost(from, read.error().text);
  auto& [to, wire_message] = *read;
  for (auto& tensor : parcel.tensors) wire_message.tensors.push_back(std::move(tensor));
  order_.on_wire_message(from, to, std::move(wire_message));
}

}  // namespace troupe::actors
