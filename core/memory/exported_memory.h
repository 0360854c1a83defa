#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/descriptor.h"
#include "core/result.h"

/// Memory of a device that other processes of the machine may read: how one process gives it away,
/// and how another one finds it. In both it is a range of addresses, into which pieces are put as
/// they are needed. So a place in it has the same offset in both.
namespace troupe {

struct MemoryRange {
  std::size_t offset = 0;  // From the beginning of that memory.
  std::size_t bytes = 0;

  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

/// Memory of this process. Any thread.
class ExportedMemory {
 public:
  virtual ~ExportedMemory() = default;

  /// How long the range of addresses is, with pieces or without.
  virtual std::size_t reserved() const = 0;
  /// Where in it an address lies.
  virtual std::size_t offset_of(const std::byte* address) const = 0;
  /// The piece in which this offset lies, and there is one. Once it is there it stays.
  virtual MemoryRange piece_at(std::size_t offset) const = 0;
  /// A file by which another process opens the piece that begins there. What it has opened remains
  /// as long as it wants it, even if this process ends.
  virtual Result<Descriptor> export_piece(std::size_t offset) const = 0;
};

/// Memory of another process, which a device of this one reads. It goes with its owner, when no
/// device reads it any more.
class ImportedMemory {
 public:
  virtual ~ImportedMemory() = default;

  /// Puts in a piece that the other process has exported.
  virtual Status add(const MemoryRange& piece, const Descriptor& file) = 0;
  /// Null where not all of it has been put in.
  virtual const std::byte* at(const MemoryRange& range) const = 0;
};

/// Takes addresses for memory of which so much is reserved.
using ImportMemory = std::function<Result<std::unique_ptr<ImportedMemory>>(std::size_t reserved)>;

}  // namespace troupe
