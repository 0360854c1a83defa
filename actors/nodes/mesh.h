#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "actors/nodes/dispatch.h"
#include "actors/nodes/mesh_edges.h"
#include "actors/player_id.h"
#include "transport/channels/channel.h"
#include "transport/channels/channel_thread.h"
#include "transport/channels/door.h"
#include "transport/keys.h"
#include "transport/wire/fields.h"

namespace troupe::actors {

/// Where the channels of a process end.
struct MeshAddress {
  std::string machine;  // Processes of one machine share memory.
  std::string shm;      // Empty where the process has no such door.
  std::string tcp;
  std::vector<LinkPlace> links;  // Of its devices that have any.

  static constexpr auto fields() {
    return std::tuple(transport::required("machine", &MeshAddress::machine),
                      transport::required("shm", &MeshAddress::shm),
                      transport::required("tcp", &MeshAddress::tcp),
                      transport::optional("links", &MeshAddress::links));
  }
};

/// Which carriers a process offers to others.
enum class Carriers : std::uint8_t { shm_and_tcp, tcp };

/// Whether tensors may leave the machine in the clear.
enum class PlainTensors : std::uint8_t { within_machine, anywhere };

/// What protects tensors between machines. Loopback connections and shared memory need nothing.
struct MeshProtection {
  PlainTensors plain = PlainTensors::within_machine;
  std::optional<transport::KeyPair> own;  // Of this process.
  std::vector<std::string> peers;  // By process: the public keys; empty in a cluster without keys.
};

struct MeshOrder {
  transport::Epoch epoch;
  int here = 0;                       // This process,
  int processes = 1;                  // among so many.
  std::vector<std::uint64_t> tokens;  // What each of the others will show.
  transport::Bound bound;             // Of each channel.
  MemoryPool* memory = nullptr;       // Outlives the mesh and what comes.
  std::string interface = "127.0.0.1";
  Carriers carriers = Carriers::shm_and_tcp;
  LinkedDevices linked = {};  // Whose tensors need not go by way of the host.
  MeshProtection protection = {};

  /// On the threads of channels and devices; they must not wait.
  std::function<void(int from, PlayerId to, Dispatch)> on_dispatch;
  std::function<void(int other, const std::string& why)> on_lost;
};

/// The channels of one attempt between a process of a run and all others: for what players tell one
/// another, and for all tensors. Those that go from one linked device to another go by edges.
class Mesh {
 public:
  static Result<std::unique_ptr<Mesh>> open(transport::ChannelThread& thread, MeshOrder order);
  /// Where it has edges, end() went well.
  ~Mesh();

  MeshAddress address() const;

  /// Waits until all others have let this process in, by order of `tokens`, and the edges are
  /// ready: not for an actor. Once. Reports a process that it cannot reach as lost, too.
  Status connect(const std::vector<MeshAddress>& others, const std::vector<std::uint64_t>& tokens);

  // Any thread, once connected.

  /// Returns at once.
  Status send(int process, PlayerId to, const Dispatch& dispatch);
  /// Whether its tensors go from device to device.
  bool is_linked(PlayerId to, const Dispatch& dispatch) const;
  /// By stage: as a cast has them.
  std::vector<std::shared_ptr<transport::Adder>> adders() const { return edges_.adders(); }
  /// From now on nothing of the attempt goes from device to device.
  void abort(const std::string& why) { edges_.abort(why); }

  /// Waits until devices have let go of what was on its way. An error where one does not in time:
  /// it may write into its memory yet, so that nothing may be destroyed.
  Status end() { return edges_.end(); }

 private:
  Mesh(transport::ChannelThread& thread, MeshOrder order);
  bool has_keys() const;
  std::shared_ptr<const transport::ChannelKeys> keys_with(int other) const;
  Status check_exposure(const std::string& address) const;
  void lost(int other, const std::string& why);
  void arrived(int from, transport::Parcel parcel);
  void deliver(int from, transport::Parcel parcel);

  transport::ChannelThread& thread_;
  MeshOrder order_;
  std::string machine_;
  std::unique_ptr<transport::Door> shm_;
  std::unique_ptr<transport::Door> tcp_;
  std::vector<std::unique_ptr<transport::Receiver>> receivers_;
  std::vector<std::unique_ptr<transport::Sender>> senders_;  // By process.
  MeshEdges edges_;
};

/// Tells machines apart, also two that were started from one image.
std::string this_machine_id();

/// What the channels of an attempt of a run are marked with.
transport::Epoch epoch_of(const std::string& run, std::uint64_t attempt);

}  // namespace troupe::actors
