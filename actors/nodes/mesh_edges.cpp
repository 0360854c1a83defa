#include "actors/nodes/mesh_edges.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "transport/links/edge_word.h"

namespace troupe::actors {
namespace {

using transport::Edges;
using transport::LinkMember;
using Phase = transport::Edges::Phase;

// Before the other end is open, a sender only names its link and may give it up.
constexpr std::size_t early_words_of_edge = 2;
// Extra time for the fabric's thread to notice that the patience is over.
constexpr auto slack = std::chrono::seconds(5);

/// Returns the first kind of the sender's links that joins both devices, or null. Both ends agree.
const std::string* kind_between(int from, const std::vector<LinkPlace>& of_sender, int to,
                                const std::vector<LinkPlace>& of_receiver) {
  for (const auto& one : of_sender)
    for (const auto& other : of_receiver)
      if (one.device == from && other.device == to && are_linked(one, other)) return &one.kind;
  return nullptr;
}

}  // namespace

MeshEdges::MeshEdges(MeshEdgesOrder order) : order_(std::move(order)) {}

// The handles go first: nobody may use them, and they refer to devices.
MeshEdges::~MeshEdges() {
  routes_.clear();
  adders_.clear();
}

std::vector<LinkPlace> MeshEdges::places() const {
  std::vector<LinkPlace> places;
  const auto& devices = order_.linked.devices;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i])
      for (const auto& links : devices[i]->links)
        places.push_back({static_cast<int>(i), links->kind, links->place, links->reaches});
  return places;
}

/// Returns a number that both ends agree on and that orders a device's edges equally everywhere.
std::uint64_t MeshEdges::number_of(int from, int to) const {
  return static_cast<std::uint64_t>(from) * order_.linked.devices.size() +
         static_cast<std::uint64_t>(to);
}

std::uint64_t MeshEdges::number_of_sum(std::size_t stage) const {
  const auto devices = order_.linked.devices.size();
  return devices * devices + stage;
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
    for (std::size_t stage = 0; stage < order_.linked.traffic.sums.size(); ++stage)
      open_sum(stage, places, words);
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

/// Opens a route if one of its ends is here. The caller holds the lock.
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
    lost("tensors from device " + std::to_string(from) + " to device " + std::to_string(to), other,
         end.text);
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

/// Opens a stage's sum if one end is here. All holders decide alike. The caller holds the lock.
void MeshEdges::open_sum(std::size_t stage, const Places& places,
                         const std::vector<transport::Sender*>& words) {
  const auto& devices = order_.linked.traffic.sums[stage];
  LinkMember member{.number = -1, .of = static_cast<int>(devices.size())};
  std::set<int> processes;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    processes.insert(process_of(devices[i]));
    if (order_.linked.devices[static_cast<std::size_t>(devices[i])])
      member.number = static_cast<int>(i);
  }
  if (member.number < 0 || processes.size() < devices.size()) return;
  const int here = devices[static_cast<std::size_t>(member.number)];
  const auto* kind = kind_that_adds(devices, here, places);
  if (!kind) return;
  processes.erase(process_of(here));
  transport::SumTerms terms{.number = number_of_sum(stage), .member = member, .others = {}};
  for (const int process : processes)
    terms.others.push_back(words[static_cast<std::size_t>(process)]);
  auto& edges = edges_of(here, *kind);
  adders_.resize(order_.linked.traffic.sums.size());
  // It is unknown which of the others is to blame.
  adders_[stage] = edges.open_adder(
      terms, [this, stage, other = *processes.begin()](const transport::ChannelEnd& end) {
        lost("the sum of the gradients of stage " + std::to_string(stage), other, end.text);
      });
  by_number_.emplace(terms.number, &edges);
}

/// Returns the first kind of the first device's links by which all devices reach each other.
const std::string* MeshEdges::kind_that_adds(const std::vector<int>& devices, int here,
                                             const Places& places) const {
  const auto place_of = [&](int device, const std::string& kind) {
    const auto& of_process = places[static_cast<std::size_t>(process_of(device))];
    const auto found = std::ranges::find_if(of_process, [&](const LinkPlace& place) {
      return place.device == device && place.kind == kind;
    });
    return found == of_process.end() ? nullptr : &*found;
  };
  const auto joins_all = [&](const std::string& kind) {
    return std::ranges::all_of(devices, [&](int one) {
      return std::ranges::all_of(devices, [&](int other) {
        const auto *from = place_of(one, kind), *to = place_of(other, kind);
        return from && to && (one == other || are_linked(*from, *to));
      });
    });
  };
  const auto& own = order_.linked.devices[static_cast<std::size_t>(here)]->links;
  for (const auto& first : places[static_cast<std::size_t>(process_of(devices[0]))]) {
    if (first.device != devices[0] || !joins_all(first.kind)) continue;
    const auto links = std::ranges::find(own, first.kind, &DeviceLinks::kind);
    if (links != own.end() && (*links)->fabric->adds()) return &first.kind;
  }
  return nullptr;
}

void MeshEdges::hear(int from, std::span<const std::byte> word) {
  std::unique_lock lock(mutex_);
  if (is_open_) return pass_on(word);
  const auto& traffic = order_.linked.traffic;
  if (early_.size() < early_words_of_edge * (traffic.routes.size() + traffic.sums.size()))
    return (void)early_.emplace_back(word.begin(), word.end());
  lock.unlock();
  order_.on_lost(from, "it says more of edges than there is to say");
}

/// Passes a word on; ignores words of unknown edges. The caller holds the lock.
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

void MeshEdges::lost(const std::string& what, int other, const std::string& why) {
  const auto text = what + ": " + why;
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
  // Twice the edges' patience, in case a thread does not return from its fabric.
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
