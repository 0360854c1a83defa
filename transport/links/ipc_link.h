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

/// The common part of both ends of a link of ipc_fabric.h.
class IpcLink : public Link {
 public:
  LinkReport report() final;
  std::string why_broken() const final { return problem_; }
  /// Gives the link up: the other end may not use this device's memory any more. Returns the mark
  /// of the copy queue behind which this end's memory is free; 0 means now.
  virtual Device::Mark hang_up() = 0;

 protected:
  /// Makes all progress that is possible now.
  virtual Status advance() = 0;
  /// Turns exceptions, by which a device reports errors, into the state `broken`.
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
  /// The memory must outlive the link.
  IpcSendingLink(const ExportedMemory& memory, Descriptor listening)
      : memory_(memory), listening_(std::move(listening)) {}

  void post(std::span<const Piece> pieces) override;
  void join() override {}  // Later work cannot disturb a send: it only reads.
  Device::Mark hang_up() override;

 private:
  Status advance() override;
  void let_in();
  Status hear_taken();
  Status show(const MemoryRange& range);

  const ExportedMemory& memory_;
  Descriptor listening_;             // Set until the other end has connected.
  std::optional<IpcSocket> socket_;  // Set from then on.
  std::set<std::size_t> shown_;      // Offsets of pieces that the other end has imported.
};

class IpcReceivingLink final : public IpcLink {
 public:
  /// The device must outlive the link.
  IpcReceivingLink(Device& copies, ImportMemory import, Descriptor socket)
      : copies_(copies), import_(std::move(import)), socket_(std::in_place, std::move(socket)) {}

  void post(std::span<const Piece> pieces) override;
  // finish() reports operations as issued only after they have ended.
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
  std::optional<IpcSocket> socket_;  // Set until hang_up().
  std::unique_ptr<ImportedMemory> memory_;
  std::optional<std::vector<MemoryRange>> offer_;  // The ranges to copy next.
  bool waits_ = false;                             // A receive is posted and not copied yet.
  std::vector<Piece> pieces_;
  Device::Mark copied_ = 0;  // The mark behind the running copies; 0: none run.
};

}  // namespace troupe::transport
