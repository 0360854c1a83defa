#include "transport/links/nccl_link.h"

#include <cuda_runtime.h>

#include <cstring>

namespace troupe::transport {

static_assert(sizeof(ncclUniqueId) == sizeof(LinkId));

std::string problem_of_cuda(int outcome) {
  if (outcome == cudaSuccess) return "";
  return std::string("CUDA: ") + cudaGetErrorString(static_cast<cudaError_t>(outcome));
}

std::string problem_of_nccl(const NcclLibrary& nccl, ncclResult_t outcome) {
  if (outcome == ncclSuccess || outcome == ncclInProgress) return "";
  std::string text = std::string("NCCL: ") + nccl.text_of(outcome);
  // The last warning is the process's and is never cleared, so it may concern something else. But
  // it gives the cause, while the outcome's own text gives only its kind.
  const char* last = nccl.last_error(nullptr);
  if (last && *last) text += std::string("; its last warning: ") + last;
  return text;
}

NcclLink::~NcclLink() {
  for (auto* event : marks_) (void)cudaEventDestroy(event);
  for (auto* event : spare_) (void)cudaEventDestroy(event);
  if (stream_) (void)cudaStreamDestroy(stream_);
}

Status NcclLink::begin(const LinkId& id) {
  // High priority: short transfers would otherwise wait behind long matrix products.
  int least = 0, most = 0;
  note(problem_of_cuda(cudaDeviceGetStreamPriorityRange(&least, &most)));
  note(problem_of_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, most)));
  if (!problem_.empty()) return Error{problem_};

  ncclUniqueId unique;
  std::memcpy(&unique, id.bytes.data(), sizeof unique);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.minCTAs = 1;
  config.maxCTAs = way_ == NcclWay::adds ? order_.most_adding_blocks : order_.most_blocks;
  note(nccl_.init(&communicator_, member_.of, unique, member_.number, &config));
  // A communicator that exists despite an error must be aborted; report() tells its state.
  if (!communicator_) return Error{problem_.empty() ? "NCCL: it makes nothing" : problem_};
  return Done{};
}

LinkReport NcclLink::report() {
  if (report_.phase == LinkReport::Phase::broken) return report_;
  ncclResult_t state = ncclInProgress;
  note(nccl_.state_of(communicator_, &state));
  note(state);
  if (state == ncclSuccess) {
    if (report_.phase == LinkReport::Phase::forming) report_.phase = LinkReport::Phase::ready;
    if (report_.issued < posted_) mark_issued();
  }
  count_ended();
  return report_;
}

void NcclLink::post(std::span<const Piece> pieces) {
  ++posted_;
  note(nccl_.begin_group());
  for (std::size_t i = 0; i < pieces.size(); ++i) post(pieces[i], static_cast<int>(i));
  note(nccl_.end_group());
}

/// Posts one piece. A sum reduces each piece to the member of its number, because ncclReduceScatter
/// requires pieces of equal size.
void NcclLink::post(const Piece& piece, int number) {
  if (piece.bytes == 0) return;
  switch (way_) {
    case NcclWay::sends:
      return note(nccl_.send(piece.memory, piece.bytes, ncclInt8, 1, communicator_, stream_));
    case NcclWay::receives:
      return note(nccl_.receive(piece.memory, piece.bytes, ncclInt8, 0, communicator_, stream_));
    case NcclWay::adds:
      return note(nccl_.reduce(piece.memory, piece.memory, piece.bytes / sizeof(float), ncclFloat32,
                               ncclSum, number, communicator_, stream_));
  }
}

/// Waits for the mark behind the last operation, since NCCL may already use the stream again.
void NcclLink::join() {
  if (!marks_.empty()) note(problem_of_cuda(cudaStreamWaitEvent(order_.queue, marks_.back(), 0)));
}

/// Marks the posted operation as issued. Only one is posted at a time, so one mark is missing.
void NcclLink::mark_issued() {
  cudaEvent_t mark = nullptr;
  if (spare_.empty()) {
    note(problem_of_cuda(cudaEventCreateWithFlags(&mark, cudaEventDisableTiming)));
  } else {
    mark = spare_.back();
    spare_.pop_back();
  }
  if (!mark) return;
  note(problem_of_cuda(cudaEventRecord(mark, stream_)));
  marks_.push_back(mark);
  report_.issued = posted_;
}

void NcclLink::count_ended() {
  while (!marks_.empty()) {
    const auto outcome = cudaEventQuery(marks_.front());
    if (outcome == cudaErrorNotReady) return;
    note(problem_of_cuda(outcome));
    if (outcome != cudaSuccess) return;
    spare_.push_back(marks_.front());
    marks_.pop_front();
    ++report_.ended;
  }
}

void NcclLink::note(const std::string& problem) {
  if (problem.empty() || !problem_.empty()) return;
  problem_ = problem;
  report_.phase = LinkReport::Phase::broken;
}

}  // namespace troupe::transport
