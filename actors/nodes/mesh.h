#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/nodes/measured.h"
#include "actors/nodes/mesh_edges.h"
#include "actors/nodes/wire_message.h"
#include "actors/player_id.h"
#include "core/env.h"
#include "transport/channels/channel.h"
#include "transport/channels/door.h"
#include "transport/keys/keys.h"
#include "transport/network.h"
#include "transport/wire/fields.h"

namespace troupe::actors {

/// The addresses of a process's doors.
struct MeshAddress {
  std::string machine;  // Processes of one machine can share memory.
  std::string shm;      // Empty if the process has no such door.
  std::string tcp;
  std::vector<LinkPlace> links;  // For its devices that have links.

  static constexpr auto fields() {
    return std::tuple(transport::required("machine", &MeshAddress::machine),
                      transport::required("shm", &MeshAddress::shm),
                      transport::required("tcp", &MeshAddress::tcp),
                      transport::optional("links", &MeshAddress::links));
  }
};

/// Decodes the head of a parcel: the player that it is for, and the message without its tensors.
Result<std::pair<PlayerId, WireMessage>> read_head(std::string_view head);

/// The carriers that a process offers.
enum class Carriers : std::uint8_t { shm_and_tcp, tcp };

/// Whether tensors may leave the machine unencrypted.
enum class PlainTensors : std::uint8_t { within_machine, anywhere };

/// The protection of tensors between machines. Loopback connections and shared memory need none.
struct MeshProtection {
  PlainTensors plain = PlainTensors::within_machine;
  std::optional<transport::KeyPair> own;  // This process's keys.
  std::vector<std::string> peers;         // Public keys by process; empty without keys.
};

struct MeshOrder {
  transport::Epoch epoch;
  int here = 0;                       // This process
  int processes = 1;                  // and the number of processes.
  std::vector<std::uint64_t> tokens;  // The tokens that the others show.
  transport::Bound bound;             // For each channel.
  MemoryPool* memory = nullptr;       // Must outlive the mesh and all received tensors.
  std::string interface = "127.0.0.1";
  Carriers carriers = Carriers::shm_and_tcp;
  LinkedDevices linked = {};  // Devices whose tensors can bypass the host.
  MeshProtection protection = {};

  /// Called on threads of channels and devices; must not block.
  std::function<void(int from, PlayerId to, WireMessage)> on_wire_message;
  std::function<void(int other, const std::string& why)> on_lost;
};

/// The channels of one attempt from a process to all others, for messages between players and for
/// all tensors. Tensors between linked devices go by edges.
class Mesh {
 public:
  /// Opens the doors. The network outlives the mesh.
  static Result<std::unique_ptr<Mesh>> open(transport::Network& network, MeshOrder order);
  /// If it has edges, end() must have succeeded.
  ~Mesh();

  MeshAddress address() const;

  /// Connects to all others, showing `tokens` (by process), and forms the edges. Returns at once.
  /// Calls `then` once, as a task of the loop; not if the mesh is destroyed before. `then` may
  /// destroy the mesh. Called once. Also reports unreachable processes as lost.
  void connect(std::vector<MeshAddress> others, std::vector<std::uint64_t> tokens, Loop& loop,
               std::function<void(const Status&)> then);

  // Any thread may call the functions below, once connect() has succeeded.

  /// Returns at once.
  Status send(int process, PlayerId to, const WireMessage& wire_message);
  /// Returns whether the message's tensors go from device to device.
  bool is_linked(PlayerId to, const WireMessage& wire_message) const;
  /// Returns what the channels to other processes have measured.
  std::vector<Path> paths() const;
  /// Returns the adders by stage; see Cast.
  std::vector<std::shared_ptr<transport::Adder>> adders() const { return edges_.adders(); }
  /// Stops all transfers of the attempt between devices.
  void abort(const std::string& why) { edges_.abort(why); }

  /// Waits until devices have let go of transfers. If it fails, a device may still write to its
  /// memory, so nothing may be destroyed.
  Status end() { return edges_.end(); }

 private:
  /// Lets callbacks find out whether the mesh still exists.
  struct Existence;
  /// The state of connect().
  struct Connecting;

  Mesh(transport::Network& network, MeshOrder order);
  std::optional<Status> connect_next(const std::shared_ptr<Connecting>& connecting);
  std::optional<Status> form_edges(const std::shared_ptr<Connecting>& connecting);
  Status form_edges_now(const std::vector<MeshAddress>& others);
  Result<transport::Sending> sending_to(int other, const Connecting& connecting) const;
  bool has_keys() const;
  std::shared_ptr<const transport::ChannelKeys> keys_with(int other) const;
  Status check_exposure(const std::string& address) const;
  void lost(int other, const std::string& why);
  void arrived(int from, transport::Parcel parcel);
  void deliver(int from, transport::Parcel parcel);

  transport::Network& network_;
  MeshOrder order_;
  std::string machine_;
  std::shared_ptr<Existence> existence_;
  std::unique_ptr<transport::Door> shm_;
  std::unique_ptr<transport::Door> tcp_;
  std::vector<std::unique_ptr<transport::Receiver>> receivers_;
  std::vector<std::unique_ptr<transport::Sender>> senders_;  // Indexed by process.
  MeshEdges edges_;
};

/// Returns the id that marks the channels of an attempt.
transport::Epoch epoch_of(const std::string& run, std::uint64_t attempt);

}  // namespace troupe::actors
