#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/descriptor.h"
#include "core/result.h"

/// Shares a device's memory with other processes of the machine, for reading. Both processes
/// reserve a range of addresses and map pieces into it as needed, so a place has the same offset in
/// both.
namespace troupe {

struct MemoryRange {
  std::size_t offset = 0;  // From the beginning of the shared memory.
  std::size_t bytes = 0;

  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

/// Device memory of this process that other processes can read. Any thread may call it.
class ExportedMemory {
 public:
  virtual ~ExportedMemory() = default;

  /// Returns the length of the reserved range of addresses, mapped or not.
  virtual std::size_t reserved() const = 0;
  /// Returns the offset of an address in the range.
  virtual std::size_t offset_of(const std::byte* address) const = 0;
  /// Returns the piece that contains `offset`; it must exist. A piece is never removed.
  virtual MemoryRange piece_at(std::size_t offset) const = 0;
  /// Returns a file descriptor with which another process maps the piece that begins at `offset`.
  /// The mapping stays valid even after this process has ended.
  virtual Result<Descriptor> export_piece(std::size_t offset) const = 0;
};

/// Memory of another process that a device of this process reads. Its owner destroys it only after
/// no device reads it any more.
class ImportedMemory {
 public:
  virtual ~ImportedMemory() = default;

  /// Maps a piece that the other process has exported.
  virtual Status add(const MemoryRange& piece, const Descriptor& file) = 0;
  /// Returns the address of a range, or null if part of it is not mapped yet.
  virtual const std::byte* at(const MemoryRange& range) const = 0;
};

/// Reserves `reserved` bytes of addresses for another process's memory.
using ImportMemory = std::function<Result<std::unique_ptr<ImportedMemory>>(std::size_t reserved)>;

}  // namespace troupe
