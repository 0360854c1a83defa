#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "transport/links/link.h"
#include "transport/links/nccl_fabric.h"
#include "transport/links/nccl_library.h"

struct CUevent_st;  // CUDA's cudaEvent_t is a pointer to it.

namespace troupe::transport {

/// Returns CUDA's text for a result, or an empty text for success.
std::string problem_of_cuda(int outcome);
/// Returns NCCL's text for a result, or an empty text for success and for work in progress.
std::string problem_of_nccl(const NcclLibrary& nccl, ncclResult_t outcome);

/// The use of a post's pieces.
enum class NcclWay : std::uint8_t { sends, receives, adds };

/// A non-blocking communicator. NCCL creates it and enqueues posted operations on a thread of its
/// own, and reports progress only when polled. Until then neither it nor its stream may be used.
class NcclLink final : public Link {
 public:
  NcclLink(const NcclLibrary& nccl, const NcclOrder& order, LinkMember member, NcclWay way)
      : nccl_(nccl), order_(order), member_(member), way_(way) {}
  /// Its communicator must have been aborted.
  ~NcclLink() override;

  /// Called once, first of all. It fails if there is no communicator.
  Status begin(const LinkId& id);

  LinkReport report() override;
  std::string why_broken() const override { return problem_; }
  void post(std::span<const Piece> pieces) override;
  void join() override;

  ncclComm_t communicator() const { return communicator_; }
  CUstream_st* stream() const { return stream_; }

 private:
  void note(const std::string& problem);
  void note(ncclResult_t outcome) { note(problem_of_nccl(nccl_, outcome)); }
  void post(const Piece& piece, int number);
  void mark_issued();
  void count_ended();

  const NcclLibrary& nccl_;
  const NcclOrder order_;
  const LinkMember member_;
  const NcclWay way_;
  ncclComm_t communicator_ = nullptr;
  CUstream_st* stream_ = nullptr;
  std::deque<CUevent_st*> marks_;   // One event behind each running operation.
  std::vector<CUevent_st*> spare_;  // Events to reuse.
  LinkReport report_;
  std::uint64_t posted_ = 0;
  std::string problem_;
};

}  // namespace troupe::transport
