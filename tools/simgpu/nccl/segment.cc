#include "tools/simgpu/nccl/segment.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>

#include "tools/simgpu/nccl/error.h"

namespace simgpu::nccl {
namespace {

constexpr std::size_t kPage = 4096;

constexpr std::size_t RoundUp(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

struct Layout {
  std::size_t rank_states, slots, contributions, data, mailboxes, mail, end;

  explicit Layout(std::size_t ranks) {
    rank_states = kPage;
    slots = rank_states + ranks * sizeof(RankState);
    contributions = slots + kRingSlots * sizeof(RingSlot);
    data = RoundUp(contributions + kRingSlots * ranks * sizeof(Contribution), kPage);
    mailboxes = data + kRingSlots * ranks * kMessageMax;
    mail = RoundUp(mailboxes + ranks * ranks * sizeof(Mailbox), kPage);
    end = mail + ranks * ranks * kMailSlots * kMessageMax;
  }
};

void Wake(Word& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

}  // namespace

ncclResult_t Segment::Join(const Invitation& invitation, int ranks, int rank, std::unique_ptr<Segment>* segment) {
  int descriptor = -1;
  if (const ncclResult_t result = OpenInvitation(invitation, &descriptor); result != ncclSuccess) return result;
  const Layout layout(static_cast<std::size_t>(ranks));
  // Every rank sets the same size, unless their numbers of ranks differ; growing first keeps the mapping below valid
  // until the count is compared.
  void* base = MAP_FAILED;
  if (lseek(descriptor, 0, SEEK_END) >= static_cast<off_t>(layout.end) ||
      ftruncate(descriptor, static_cast<off_t>(layout.end)) == 0) {
    base = mmap(nullptr, layout.end, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  }
  const int error = errno;
  close(descriptor);
  if (base == MAP_FAILED) {
    return Fail(ncclSystemError, "cannot map %zu bytes of shared memory for %d ranks: %s", layout.end, ranks,
                std::strerror(error));
  }
  madvise(base, layout.end, MADV_DONTDUMP);
  std::unique_ptr<Segment> joined(new Segment(base, layout.end, ranks));

  auto* header = static_cast<SegmentHeader*>(base);
  std::uint32_t count = 0;
  std::atomic_ref(header->rank_count).compare_exchange_strong(count, static_cast<std::uint32_t>(ranks));
  if (count != 0 && count != static_cast<std::uint32_t>(ranks)) {
    return Fail(ncclInvalidArgument, "rank %d expects a communicator of %d ranks, another rank one of %u", rank, ranks,
                count);
  }
  RankState& state = joined->rank(rank);
  // Two processes that claim the same rank: the pid is the claim, the phase its completion.
  std::int32_t nobody = 0;
  const ProcessIdentity self = CurrentProcess();
  if (!std::atomic_ref(state.process.pid).compare_exchange_strong(nobody, self.pid)) {
    return Fail(ncclInvalidUsage, "rank %d of the communicator is already taken, by pid %d", rank, nobody);
  }
  state.process.start_time = self.start_time;
  state.phase.store(RankPhase::kJoined, std::memory_order_release);
  AddAndWake(joined->joined(), static_cast<std::uint32_t>(ranks));
  *segment = std::move(joined);
  return ncclSuccess;
}

Segment::Segment(void* base, std::size_t bytes, int ranks)
    : base_(static_cast<char*>(base)), bytes_(bytes), ranks_(ranks) {
  const Layout layout(static_cast<std::size_t>(ranks));
  rank_states_ = reinterpret_cast<RankState*>(base_ + layout.rank_states);
  slots_ = reinterpret_cast<RingSlot*>(base_ + layout.slots);
  contributions_ = reinterpret_cast<Contribution*>(base_ + layout.contributions);
  data_ = base_ + layout.data;
  mailboxes_ = reinterpret_cast<Mailbox*>(base_ + layout.mailboxes);
  mail_ = base_ + layout.mail;
}

Segment::~Segment() { munmap(base_, bytes_); }

Word& Segment::joined() const {
  static_assert(sizeof(Word) == sizeof(SegmentHeader::joined));
  return *reinterpret_cast<Word*>(base_ + offsetof(SegmentHeader, joined));
}

Contribution& Segment::contribution(std::uint32_t sequence, int rank) const {
  return contributions_[sequence % kRingSlots * static_cast<std::uint32_t>(ranks_) + static_cast<std::uint32_t>(rank)];
}

char* Segment::data(std::uint32_t sequence, int rank) const {
  return data_ +
         (std::size_t{sequence % kRingSlots} * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank)) *
             kMessageMax;
}

char* Segment::mail(int sender, int receiver, std::uint32_t number) const {
  const std::size_t box =
      static_cast<std::size_t>(sender) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(receiver);
  return mail_ + (box * kMailSlots + number % kMailSlots) * kMessageMax;
}

void AddAndWake(Word& word, std::uint32_t wake_at) {
  if (word.fetch_add(1, std::memory_order_acq_rel) + 1 == wake_at) Wake(word);
}

void SetAndWake(Word& word, std::uint32_t value) {
  word.store(value, std::memory_order_release);
  Wake(word);
}

void WaitForChange(const Word& word, std::uint32_t seen, std::int64_t nanoseconds) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec timeout{.tv_sec = nanoseconds / kSecond, .tv_nsec = nanoseconds % kSecond};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

}  // namespace simgpu::nccl
