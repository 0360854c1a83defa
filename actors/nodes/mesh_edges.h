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

/// What of a process has links, and what of the run could go by them.
struct LinkedDevices {
  std::vector<LinkedDevice*> devices;  // By device of the run; null: elsewhere, or without links.
  Traffic traffic;
  transport::EdgePatience patience;
};

struct MeshEdgesOrder {
  transport::Epoch epoch;
  transport::Bound bound;  // Of each edge.
  LinkedDevices linked;    // They outlive the edges.

  /// On the threads of the devices; they must not wait.
  std::function<void(int from, transport::Parcel)> on_parcel;
  std::function<void(int other, const std::string& why)> on_lost;
};

/// The edges of one attempt between the devices of a process and those of all others: one for each
/// route of the run's tensors whose two devices are linked, by the best kind of links that joins
/// them. What has none goes by the channel of the two processes, and so do the words of edges. And
/// one that adds up for each stage whose gradients may be, where links of one kind that can join
/// all who hold it, each in a process of its own. Where nothing is linked it does nothing.
class MeshEdges {
 public:
  explicit MeshEdges(MeshEdgesOrder order);
  /// Ended.
  ~MeshEdges();
  MeshEdges(const MeshEdges&) = delete;
  MeshEdges& operator=(const MeshEdges&) = delete;

  /// What the others are to know.
  std::vector<LinkPlace> places() const;

  /// Waits until all are ready. By process: what has links there, and the channel to it, which
  /// outlives the edges. Once.
  Status form(const std::vector<std::vector<LinkPlace>>& places,
              const std::vector<transport::Sender*>& words);

  // Any thread.

  /// A word of an edge has come; perhaps from somebody who was sooner than this process.
  void hear(int from, std::span<const std::byte> word);
  /// The edge for a parcel to this player, once they are formed; null where it goes by way of the
  /// host. A tensor that goes from device to device lies in the sending device's memory, and that
  /// one has made it: what a job posts it posts no sooner.
  transport::Sender* edge(PlayerId to, std::size_t head_bytes,
                          std::span<const Tensor> tensors) const;
  /// By stage, once they are formed: where this process adds up what others do. Else null, or no
  /// place at all.
  std::vector<std::shared_ptr<transport::Adder>> adders() const { return adders_; }
  /// Voids the epoch: nothing goes or comes any more, and nobody is told.
  void abort(const std::string& why);

  /// Aborts, and waits until the devices have let go. An error where one does not in time: then it
  /// may write into its memory yet, and the process had better end.
  Status end();

 private:
  struct Route {
    int from = 0;
    int to = 0;
    const MemoryPool* memory = nullptr;  // Of the device that sends; null where that is elsewhere.
    std::unique_ptr<transport::Sender> sender;
    std::unique_ptr<transport::Receiver> receiver;  // One of the two.
  };

  /// The edges of a device whose links are of one kind.
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
  std::map<std::uint64_t, transport::Edges*> by_number_;   // Stands still once opened,
  std::vector<Route> routes_;                              // and so do these
  std::vector<std::shared_ptr<transport::Adder>> adders_;  // and these.

  mutable std::mutex mutex_;
  bool is_open_ = false;
  bool ends_ = false;
  std::string why_;                            // The first reason.
  std::vector<std::vector<std::byte>> early_;  // Words that came before they were open.
};

}  // namespace troupe::actors
