#include "transport/links/ipc_fabric.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "transport/links/ipc_link.h"

namespace troupe::transport {
namespace {

class IpcFabric final : public Fabric {
 public:
  IpcFabric(IpcOrder order, BlockHandle word)
      : order_(std::move(order)),
        word_(std::move(word)),
        poison_(*new (word_.get()->memory) std::uint64_t{0}) {}

  Result<LinkId> name_link() override {
    auto named = listen_for_ipc();
    if (!named) return named.error();
    LinkId id;
    assert(named->name.size() < id.bytes.size());
    std::memcpy(id.bytes.data(), named->name.data(), named->name.size());
    named_.emplace(std::move(named->name), std::move(named->listening));
    return id;
  }

  Result<std::unique_ptr<Link>> begin(const LinkId& id, LinkSide side) override {
    const auto* text = reinterpret_cast<const char*>(id.bytes.data());
    const std::string name(text, strnlen(text, id.bytes.size()));
    if (side == LinkSide::sends) {
      const auto named = named_.extract(name);
      if (named.empty()) return Error{"nobody here has named such a link"};
      return std::unique_ptr<Link>(
          std::make_unique<IpcSendingLink>(order_.memory, std::move(named.mapped())));
    }
    auto socket = connect_ipc(name);
    if (!socket) return socket.error();
    return std::unique_ptr<Link>(
        std::make_unique<IpcReceivingLink>(*order_.copies, order_.import, std::move(*socket)));
  }

  void end(std::vector<std::unique_ptr<Link>> links) override {
    assert(ending_.empty() && "one end comes after the other");
    named_.clear();
    for (const auto& link : links) last_ = std::max(last_, static_cast<IpcLink&>(*link).hang_up());
    ending_ = std::move(links);
  }

  /// A failed device uses no memory any more.
  bool ended() override {
    if (ending_.empty()) return true;
    const auto passed = order_.copies->passed();
    if (passed && *passed < last_) return false;
    ending_.clear();
    return true;
  }

  Poison& poison() override { return poison_; }

 private:
  const IpcOrder order_;
  const BlockHandle word_;
  Poison poison_;
  std::map<std::string, Descriptor> named_;    // Links that were named and not begun.
  std::vector<std::unique_ptr<Link>> ending_;  // Links whose copies may still run.
  Device::Mark last_ = 0;                      // The mark behind all their copies.
};

}  // namespace

Result<std::unique_ptr<Fabric>> open_ipc_fabric(IpcOrder order) {
  try {
    // Host memory that the device can also read.
    auto word = order.copies->host_memory().take(sizeof(std::uint64_t));
    return std::unique_ptr<Fabric>(std::make_unique<IpcFabric>(std::move(order), std::move(word)));
  } catch (const std::bad_alloc&) {
    return Error{"there is no memory for a word that host and device see"};
  }
}

}  // namespace troupe::transport
