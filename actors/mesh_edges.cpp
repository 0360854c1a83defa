#include "actors/mesh_edges.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "transport/edge_word.h"

namespace troupe::actors {
namespace {

using transport::Edges;
using Phase = transport::Edges::Phase;

// A sender names its link, and may give it up: more is not said before the other end is open.
constexpr std::size_t early_words_of_edge = 2;
// Beyond the patience of edges: for the thread that calls a fabric to find that out.
constexpr auto slack = std::chrono::seconds(5);

/// The first of the sender's kinds that joins both; none: null. Both ends find the same.
const std::string* kind_between(int from, const std::vector<LinkPlace>& of_sender, int to,
                                const std::vector<LinkPlace>& of_receiver) {
  for (const auto& one : of_sender)
    for (const auto& other : of_receiver)
      if (one.device == from && other.device == to && are_linked(one, other)) return &one.kind;
  return nullptr;
}

}  // namespace

MeshEdges::MeshEdges(MeshEdgesOrder order) : order_(std::move(order)) {}

// They may be spoken to by nobody; what they hold of devices goes last.
MeshEdges::~MeshEdges() { routes_.clear(); }

std::vector<LinkPlace> MeshEdges::places() const {
  std::vector<LinkPlace> places;
  const auto& devices = order_.linked.devices;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i])
      for (const auto& links : devices[i]->links)
        places.push_back({static_cast<int>(i), links->kind, links->place, links->reaches});
  return places;
}

/// The same at both ends, and among those of a device ascending at all others.
std::uint64_t MeshEdges::number_of(int from, int to) const {
  return static_cast<std::uint64_t>(from) * order_.linked.devices.size() +
         static_cast<std::uint64_t>(to);
}

int MeshEdges::process_of(int device) const {
  return order_.linked.traffic.processes[static_cast<std::size_t>(device)];
}

Edges& MeshEdges::edges_of(int device, const std::string& kind) {
  for (const auto& own : edges_)
    if (own.device == device && own.links.kind == kind) return *own.edges;
  auto& linked = *order_.linked.devices[static_cast<std::size_t>(device)];
  auto& links = **std::ranges::find(linked.links, kind, &DeviceLinks::kind);
  auto edges = std::make_unique<Edges>(
      *links.fabric, transport::EdgesOrder{.epoch = order_.epoch,
                                           .memory = &linked.memory,
                                           .patience = order_.linked.patience,
                                           .wake = [&links] { links.thread.wake(); }});
  links.thread.drive(*edges);
  edges_.push_back({device, links, std::move(edges)});
  return *edges_.back().edges;
}

Status MeshEdges::form(const std::vector<std::vector<LinkPlace>>& places,
                       const std::vector<transport::Sender*>& words) {
  const auto places_of = [&](int device) -> const std::vector<LinkPlace>& {
    return places[static_cast<std::size_t>(process_of(device))];
  };
  {
    const std::lock_guard lock(mutex_);
    if (ends_) return Error{why_};
    for (const auto& [from, to] : order_.linked.traffic.routes) {
      if (process_of(from) == process_of(to)) continue;
      if (const auto* kind = kind_between(from, places_of(from), to, places_of(to)))
        open(from, to, *kind, words);
    }
    is_open_ = true;
    for (const auto& word : early_) pass_on(word);
    early_.clear();
  }
  const auto until = std::chrono::steady_clock::now() + order_.linked.patience.form + slack;
  for (const auto& own : edges_) own.edges->begin();
  for (const auto& own : edges_)
    if (own.edges->wait_while({Phase::gathering, Phase::forming}, until) != Phase::ready) {
      const auto reason = why();
      return Error{reason.empty() ? "the edges of device " + std::to_string(own.device) +
                                        " were not ready in time"
                                  : reason};
    }
  return Done{};
}

/// With the lock. Where one end of it is here.
void MeshEdges::open(int from, int to, const std::string& kind,
                     const std::vector<transport::Sender*>& words) {
  const auto& devices = order_.linked.devices;
  auto* const sending = devices[static_cast<std::size_t>(from)];
  const bool is_here = sending || devices[static_cast<std::size_t>(to)];
  if (!is_here) return;
  const int device = sending ? from : to;
  const int other = process_of(sending ? to : from);
  const auto number = number_of(from, to);
  const transport::EdgeTerms terms{number, order_.bound, words[static_cast<std::size_t>(other)]};
  const auto on_end = [this, from, to, other](const transport::ChannelEnd& end) {
    lost(from, to, other, end.text);
  };
  auto& edges = edges_of(device, kind);
  Route route{from, to, nullptr, nullptr, nullptr};
  if (sending) {
    route.memory = &sending->memory;
    route.sender = edges.open_sender(terms, on_end);
  } else {
    route.receiver = edges.open_receiver(
        terms, transport::HandedOver::at_end,
        {[this, other](transport::Parcel parcel) { order_.on_parcel(other, parcel); }, on_end});
  }
  by_number_.emplace(number, &edges);
  routes_.push_back(std::move(route));
}

void MeshEdges::hear(int from, std::span<const std::byte> word) {
  std::unique_lock lock(mutex_);
  if (is_open_) return pass_on(word);
  if (early_.size() < early_words_of_edge * order_.linked.traffic.routes.size())
    return (void)early_.emplace_back(word.begin(), word.end());
  lock.unlock();
  order_.on_lost(from, "it says more of edges than there is to say");
}

/// With the lock. What is of no edge is of no use to anybody.
void MeshEdges::pass_on(std::span<const std::byte> word) {
  const auto read = transport::read_edge_word(word);
  if (!read) return;
  const auto found = by_number_.find(read->word.edge);
  if (found != by_number_.end()) found->second->hear(word);
}

transport::Sender* MeshEdges::edge(PlayerId to, std::size_t head_bytes,
                                   std::span<const Tensor> tensors) const {
  if (routes_.empty() || tensors.empty()) return nullptr;
  const int device = order_.linked.traffic.device_of(to);
  for (const auto& route : routes_) {
    if (route.to != device || !route.sender) continue;
    const bool is_of_device = std::ranges::all_of(
        tensors, [&](const Tensor& tensor) { return route.memory->owns(*tensor.block()); });
    if (is_of_device && transport::fits_an_edge(head_bytes, tensors.size()))
      return route.sender.get();
  }
  return nullptr;
}

void MeshEdges::lost(int from, int to, int other, const std::string& why) {
  const auto text = "tensors from device " + std::to_string(from) + " to device " +
                    std::to_string(to) + ": " + why;
  {
    const std::lock_guard lock(mutex_);
    if (ends_) return;
    if (why_.empty()) why_ = text;
  }
  order_.on_lost(other, text);
}

std::string MeshEdges::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

void MeshEdges::abort(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(ends_, true)) return;
    if (why_.empty()) why_ = why;
  }
  for (const auto& own : edges_) own.edges->abort(why);
}

Status MeshEdges::end() {
  abort("the attempt has ended");
  // Twice as long as the edges wait: for a thread that does not come back from its fabric.
  const auto until = std::chrono::steady_clock::now() + 2 * order_.linked.patience.end;
  for (const auto& own : edges_) {
    const auto phase = own.edges->wait_while({Phase::gathering, Phase::forming, Phase::ready,
                                              Phase::failed, Phase::ending, Phase::stuck},
                                             until);
    if (phase != Phase::over)
      return Error{"device " + std::to_string(own.device) +
                   " does not let go of tensors that were on their way (" + why() + ")"};
    own.links.thread.leave();
  }
  return Done{};
}

}  // namespace troupe::actors
