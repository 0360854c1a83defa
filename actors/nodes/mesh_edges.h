#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "actors/nodes/traffic.h"
#include "actors/play/linked_device.h"
#include "actors/player_id.h"
#include "core/result.h"
#include "transport/channels/channel.h"
#include "transport/links/edges.h"

namespace troupe::actors {

/// The devices of a process that have links, and the run's traffic that can use links.
struct LinkedDevices {
  std::vector<LinkedDevice*> devices;  // Indexed by the run's device; null: elsewhere, or no links.
  Traffic traffic;
  transport::EdgePatience patience;
};

struct MeshEdgesOrder {
  transport::Epoch epoch;
  transport::Bound bound;  // For each edge.
  LinkedDevices linked;    // Must outlive the edges.

  /// Called on the devices' threads; must not block.
  std::function<void(int from, transport::Parcel)> on_parcel;
  std::function<void(int other, const std::string& why)> on_lost;
};

/// The edges of one attempt between this process's devices and all others. Each route whose devices
/// are linked has an edge, by the best kind of links that joins them. All other tensors, and the
/// edges' words, use the channel of the two processes. A stage whose gradients may be summed by
/// links has an adding edge if one kind of links joins all its holders and each is in its own
/// process. Without links this does nothing.
class MeshEdges {
 public:
  explicit MeshEdges(MeshEdgesOrder order);
  /// Must have ended.
  ~MeshEdges();
  MeshEdges(const MeshEdges&) = delete;
  MeshEdges& operator=(const MeshEdges&) = delete;

  /// Returns the links to tell the other processes about.
  std::vector<LinkPlace> places() const;

  /// Forms all edges and waits until they are ready. `places`: the links of each process; `words`:
  /// the channels to them, which must outlive the edges. Called once.
  Status form(const std::vector<std::vector<LinkPlace>>& places,
              const std::vector<transport::Sender*>& words);

  // Any thread may call the functions below.

  /// Handles an edge's word. It may come from a process that is ahead of this one.
  void hear(int from, std::span<const std::byte> word);
  /// Returns the edge for a parcel to this player, or null if it goes by way of the host; null
  /// before form() has returned. Tensors must be complete and in the sending device's memory: a job
  /// may post them only when it is done.
  transport::Sender* edge(PlayerId to, std::size_t head_bytes,
                          std::span<const Tensor> tensors) const;
  /// Returns the adders by stage, after form(); null, or missing, if this process does not sum that
  /// stage.
  std::vector<std::shared_ptr<transport::Adder>> adders() const { return adders_; }
  /// Voids the attempt: nothing is sent or received any more, and no callback is called.
  void abort(const std::string& why);

  /// Aborts, and waits until the devices have let go. If it fails, a device may still write to its
  /// memory, and the process should end.
  Status end();

 private:
  struct Route {
    int from = 0;
    int to = 0;
    const MemoryPool* memory = nullptr;  // The sending device's memory; null if that is elsewhere.
    std::unique_ptr<transport::Sender> sender;
    std::unique_ptr<transport::Receiver> receiver;  // One of both is set.
  };

  /// A device's edges over one kind of links.
  struct OfLinks {
    int device = 0;
    DeviceLinks& links;
    std::unique_ptr<transport::Edges> edges;
  };

  using Places = std::vector<std::vector<LinkPlace>>;

  std::uint64_t number_of(int from, int to) const;
  std::uint64_t number_of_sum(std::size_t stage) const;
  int process_of(int device) const;
  transport::Edges& edges_of(int device, const std::string& kind);
  void open(int from, int to, const std::string& kind,
            const std::vector<transport::Sender*>& words);
  void open_sum(std::size_t stage, const Places& places,
                const std::vector<transport::Sender*>& words);
  const std::string* kind_that_adds(const std::vector<int>& devices, int here,
                                    const Places& places) const;
  void pass_on(std::span<const std::byte> word);
  void lost(const std::string& what, int other, const std::string& why);
  std::string why() const;

  const MeshEdgesOrder order_;
  std::vector<OfLinks> edges_;
  std::map<std::uint64_t, transport::Edges*> by_number_;   // Constant after form(),
  std::vector<Route> routes_;                              // like this one
  std::vector<std::shared_ptr<transport::Adder>> adders_;  // and this one.

  mutable std::mutex mutex_;
  bool is_open_ = false;
  bool ends_ = false;
  std::string why_;                            // The first reason.
  std::vector<std::vector<std::byte>> early_;  // Words that arrived before form().
};

}  // namespace troupe::actors
