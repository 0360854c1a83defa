#include <cassert>
#include <cstring>

#include "sim_world.h"

namespace sim_device {

using namespace troupe;
using namespace troupe::transport;

class SimLink final : public Link {
 public:
  SimLink(SimWorld& world, End& end) : world_(world), end_(end) {}
  ~SimLink() override {
    const SimWorld::Lock lock(world_.mutex_);
    if (!end_.aborted) world_.note_misuse("a link went and was not given back");
  }

  LinkReport report() override {
    const SimWorld::Lock lock(world_.mutex_);
    world_.meanwhile(*end_.device);
    return end_.report;
  }

  std::string why_broken() const override { return "the device at the other end has died"; }

  void post(std::span<const Piece> pieces) override {
    const SimWorld::Lock lock(world_.mutex_);
    world_.meanwhile(*end_.device);
    if (end_.report.phase == LinkReport::Phase::forming) world_.note_misuse("posted too early");
    if (end_.report.issued != end_.posted) world_.note_misuse("posted while another was");
    for (const auto& piece : pieces)
      if (SimWorld::has_yet_to_use(*end_.device, piece))
        world_.note_misuse("posted what its device has yet to use");
    end_.posting.push_back(
        {.kind = Item::Kind::transfer, .pieces = {pieces.begin(), pieces.end()}});
    ++end_.posted;
    world_.most_under_way_ =
        std::max<std::size_t>(world_.most_under_way_, end_.posted - end_.report.ended);
  }

  void join() override {
    const SimWorld::Lock lock(world_.mutex_);
    const auto event = std::make_shared<bool>(false);
    end_.queue.push_back({.kind = Item::Kind::mark, .event = event});
    end_.device->work.push_back({.kind = Item::Kind::wait, .event = event});
    world_.meanwhile(*end_.device);
  }

 private:
  friend class SimFabric;
  SimWorld& world_;
  End& end_;
};

class SimFabric final : public Fabric {
 public:
  SimFabric(SimWorld& world, Device& device)
      : world_(world), device_(device), poison_(device.poison_word) {}

  Result<LinkId> name_link() override {
    const SimWorld::Lock lock(world_.mutex_);
    world_.meanwhile(device_);
    const std::uint64_t number = world_.bonds_.size() + 1;
    world_.bonds_[number];
    LinkId id;
    std::memcpy(id.bytes.data(), &number, sizeof number);
    return id;
  }

  Result<std::unique_ptr<Link>> begin(const LinkId& id, LinkSide side) override {
    return begin(id, LinkMember{side == LinkSide::sends ? 0 : 1, 2}, false);
  }

  bool adds() const override { return true; }
  Result<std::unique_ptr<Link>> begin_adding(const LinkId& id, LinkMember member) override {
    return begin(id, member, true);
  }

  void end(std::vector<std::unique_ptr<Link>> links) override {
    {
      const SimWorld::Lock lock(world_.mutex_);
      if (device_.ending) world_.note_misuse("links were given back before others were gone");
      world_.meanwhile(device_);
      for (const auto& link : links) static_cast<SimLink&>(*link).end_.aborted = true;
      for (const auto& link : links) drop_posting(static_cast<SimLink&>(*link).end_);
      device_.ending = !links.empty();
      world_.long_meanwhile(device_);
    }
    links.clear();
  }

  bool ended() override {
    const SimWorld::Lock lock(world_.mutex_);
    world_.meanwhile(device_);
    return !device_.ending || !device_.alive;  // A dead device touches no memory.
  }

  Poison& poison() override { return poison_; }

 private:
  Result<std::unique_ptr<Link>> begin(const LinkId& id, LinkMember member, bool adds) {
    const SimWorld::Lock lock(world_.mutex_);
    world_.meanwhile(device_);
    std::uint64_t number = 0;
    std::memcpy(&number, id.bytes.data(), sizeof number);
    const auto found = world_.bonds_.find(number);
    if (found == world_.bonds_.end()) return Error{"nobody has named such a link"};
    auto& bond = found->second;
    bond.adds = adds;
    bond.ends.resize(static_cast<std::size_t>(member.of));
    auto& place = bond.ends[static_cast<std::size_t>(member.number)];
    if (place) return Error{"a link has one end twice"};
    device_.ends.push_back(std::make_unique<End>());
    place = device_.ends.back().get();
    place->device = &device_;
    place->member = static_cast<std::size_t>(member.number);
    place->bond = number;
    return std::unique_ptr<Link>(std::make_unique<SimLink>(world_, *place));
  }

  /// Items that were not issued either all get into the queue before the abort, or never do.
  void drop_posting(End& end) {
    if (world_.random_() % 2 == 0)
      for (auto& item : end.posting) end.queue.push_back(std::move(item));
    end.posting.clear();
  }

  SimWorld& world_;
  Device& device_;
  Poison poison_;
};

std::unique_ptr<Fabric> SimWorld::fabric(int device) {
  return std::make_unique<SimFabric>(*this, at(device));
}

}  // namespace sim_device
