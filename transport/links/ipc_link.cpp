#include "transport/links/ipc_link.h"

#include <cassert>
#include <utility>

namespace troupe::transport {
namespace {

Error end_is_gone() {
  return {"the other end is gone: its process has ended, or has given the link up"};
}

Error not_sane_end(const char* what) { return {std::string("the other end ") + what}; }

}  // namespace

LinkReport IpcLink::report() {
  if (report_.phase == LinkReport::Phase::broken) return report_;
  try_on_device([&] {
    if (auto went = advance(); !went) note(went.error().text);
  });
  return report_;
}

void IpcLink::note(std::string problem) {
  if (report_.phase == LinkReport::Phase::broken) return;
  problem_ = std::move(problem);
  report_.phase = LinkReport::Phase::broken;
}

void IpcSendingLink::post(std::span<const Piece> pieces) {
  assert(socket_ && "nothing is posted before the link is ready");
  std::vector<MemoryRange> ranges;
  for (const auto& piece : pieces) {
    ranges.push_back({memory_.offset_of(piece.memory), piece.bytes});
    if (auto shown = show(ranges.back()); !shown) return note(shown.error().text);
  }
  socket_->say({IpcKind::offer, ++report_.issued, std::move(ranges), {}});
}

Device::Mark IpcSendingLink::hang_up() {
  listening_ = Descriptor();
  socket_.reset();
  return 0;
}

Status IpcSendingLink::advance() {
  if (!socket_) let_in();
  if (!socket_) return Done{};
  // Words that the other end sent before it went still count.
  const bool is_gone = socket_->is_gone();
  if (auto heard = hear_taken(); !heard) return heard;
  if (is_gone && report_.ended < report_.issued) return end_is_gone();
  return Done{};
}

void IpcSendingLink::let_in() {
  auto socket = accept_ipc(listening_);
  if (!socket) return;
  listening_ = Descriptor();
  socket_.emplace(std::move(socket));
  socket_->say({IpcKind::opening, 0, {{0, memory_.reserved()}}, {}});
  report_.phase = LinkReport::Phase::ready;
}

Status IpcSendingLink::hear_taken() {
  for (;;) {
    const auto word = socket_->hear();
    if (!word) return word.error();
    if (!*word) return Done{};
    if ((*word)->kind != IpcKind::taken || (*word)->number != report_.ended + 1 ||
        report_.ended == report_.issued)
      return not_sane_end("takes what it was not offered");
    ++report_.ended;
  }
}

/// Exports all pieces of memory that contain the range.
Status IpcSendingLink::show(const MemoryRange& range) {
  for (auto at = range.offset; at < range.offset + range.bytes;) {
    const auto piece = memory_.piece_at(at);
    at = piece.offset + piece.bytes;
    if (!shown_.insert(piece.offset).second) continue;
    auto file = memory_.export_piece(piece.offset);
    if (!file) return file.error();
    socket_->say({IpcKind::piece, 0, {piece}, std::move(*file)});
  }
  return Done{};
}

void IpcReceivingLink::post(std::span<const Piece> pieces) {
  assert(!waits_ && "one is posted when the last is issued");
  waits_ = true;
  pieces_.assign(pieces.begin(), pieces.end());
}

Device::Mark IpcReceivingLink::hang_up() {
  socket_.reset();
  return copied_;
}

Status IpcReceivingLink::advance() {
  const bool is_gone = socket_->is_gone();
  if (auto heard = hear(); !heard) return heard;
  if (is_gone && !offer_ && (waits_ || report_.phase == LinkReport::Phase::forming))
    return end_is_gone();
  if (waits_ && offer_ && copied_ == 0)
    if (auto begun = begin_copies(); !begun) return begun;
  return copied_ == 0 ? Done{} : finish();
}

/// Reads words up to the next offer; later words wait in the socket.
Status IpcReceivingLink::hear() {
  while (!offer_) {
    const auto word = socket_->hear();
    if (!word) return word.error();
    if (!*word) return Done{};
    if (auto taken = take(**word); !taken) return taken;
  }
  return Done{};
}

Status IpcReceivingLink::take(const IpcWord& word) {
  const bool has_one = word.ranges.size() == 1;
  switch (word.kind) {
    case IpcKind::opening: {
      if (memory_ || !has_one) return not_sane_end("opens its memory twice, or not at all");
      auto memory = import_(word.ranges[0].bytes);
      if (!memory) return memory.error();
      memory_ = std::move(*memory);
      report_.phase = LinkReport::Phase::ready;
      return Done{};
    }
    case IpcKind::piece:
      if (!memory_ || !has_one || !word.file) return not_sane_end("shows no piece of its memory");
      return memory_->add(word.ranges[0], word.file);
    case IpcKind::offer:
      if (!memory_ || word.number != report_.ended + 1)
        return not_sane_end("offers what is not its turn");
      offer_ = word.ranges;
      return Done{};
    case IpcKind::taken:
      return not_sane_end("says what only a receiver has to say");
  }
  return Done{};
}

Status IpcReceivingLink::begin_copies() {
  if (offer_->size() != pieces_.size())
    return not_sane_end("offers other tensors than it has said");
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if ((*offer_)[i].bytes != pieces_[i].bytes || !memory_->at((*offer_)[i]))
      return not_sane_end("offers other memory than it has shown");
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    copies_.copy(memory_->at((*offer_)[i]), copies_.place(), pieces_[i].memory, pieces_[i].bytes);
  copied_ = copies_.mark();
  return Done{};
}

/// Acknowledges finished copies. The sender keeps its memory until it is told, or hangs up. So the
/// copies are valid if it has not hung up when they are done. A receive counts as issued only then:
/// earlier, the listener could get garbage that no poison word marks.
Status IpcReceivingLink::finish() {
  const auto passed = copies_.passed();
  if (!passed) return passed.error();
  if (*passed < copied_) return Done{};
  if (socket_->is_gone()) return end_is_gone();
  waits_ = false;
  copied_ = 0;
  offer_.reset();
  report_.issued = ++report_.ended;
  socket_->say({IpcKind::taken, report_.ended, {}, {}});
  return Done{};
}

}  // namespace troupe::transport
