#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/memory/device.h"
#include "core/memory/exported_memory.h"
#include "transport/links/ipc_socket.h"
#include "transport/links/link.h"

namespace troupe::transport {

/// What both ends of a link as in ipc_fabric.h have in common.
class IpcLink : public Link {
 public:
  LinkReport report() final;
  std::string why_broken() const final { return problem_; }
  /// The device's memory is no other end's any more. Once this mark of the queue of copies is
  /// passed it is nobody's; 0: now.
  virtual Device::Mark hang_up() = 0;

 protected:
  /// Goes on as far as it can, now.
  virtual Status advance() = 0;
  /// What the device says goes wrong is said by exceptions.
  template <class Call>
  void try_on_device(Call&& call) {
    try {
      call();
    } catch (const std::exception& exception) {
      note(exception.what());
    }
  }
  void note(std::string problem);

  LinkReport report_;

 private:
  std::string problem_;
};

class IpcSendingLink final : public IpcLink {
 public:
  /// The memory outlives it.
  IpcSendingLink(const ExportedMemory& memory, Descriptor listening)
      : memory_(memory), listening_(std::move(listening)) {}

  void post(std::span<const Piece> pieces) override;
  void join() override {}  // Whoever reads what is sent changes nothing.
  Device::Mark hang_up() override;

 private:
  Status advance() override;
  void let_in();
  Status hear_taken();
  Status show(const MemoryRange& range);

  const ExportedMemory& memory_;
  Descriptor listening_;             // Until the other end has come.
  std::optional<IpcSocket> socket_;  // From then on.
  std::set<std::size_t> shown_;      // The offsets of pieces that the other end has.
};

class IpcReceivingLink final : public IpcLink {
 public:
  /// The device outlives it.
  IpcReceivingLink(Device& copies, ImportMemory import, Descriptor socket)
      : copies_(copies), import_(std::move(import)), socket_(std::in_place, std::move(socket)) {}

  void post(std::span<const Piece> pieces) override;
  // What is issued has ended: see finish().
  void join() override {}
  Device::Mark hang_up() override;

 private:
  Status advance() override;
  Status hear();
  Status take(const IpcWord& word);
  Status begin_copies();
  Status finish();

  Device& copies_;
  const ImportMemory import_;
  std::optional<IpcSocket> socket_;  // Until it is hung up.
  std::unique_ptr<ImportedMemory> memory_;
  std::optional<std::vector<MemoryRange>> offer_;  // Of what is taken next.
  bool waits_ = false;                             // Something is posted, and not copied yet.
  std::vector<Piece> pieces_;
  Device::Mark copied_ = 0;  // Behind the copies that are under way; 0: none are.
};

}  // namespace troupe::transport
