// The control path of memory regions and windows.
#include <cerrno>

#include "nic_sim/device/provider.hpp"
#include "nic_sim/nic/windows.hpp"
#include "verbs/qp_rules.hpp"

namespace verbscope::sim {
namespace {

// The kernel pins memory in pages of this size, even if they are part of larger ones.
constexpr std::uint64_t kRegisteredPage = 4096;

// Number of pages of `bytes` bytes each that [begin, begin + length) touches.
std::uint64_t pages_of(std::uint64_t begin, std::uint64_t length, std::uint64_t bytes) {
  return length == 0 ? 0 : (begin + length - 1) / bytes - begin / bytes + 1;
}

// ibv_reg_mr(3). Flags of the optional range have no effect on devices that do not know them; relaxed ordering is one:
// the simulated PCIe link orders posted writes (docs/simulator.md).
int check_access(int access) {
  constexpr int kRemoteWrites = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  constexpr int kKnown = IBV_ACCESS_LOCAL_WRITE | kRemoteWrites | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND |
                         IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;
  constexpr int kUnsupported = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND;
  if ((access & ~(kKnown | kUnsupported)) != 0) return EINVAL;
  if ((access & kUnsupported) != 0) return EOPNOTSUPP;
  return (access & kRemoteWrites) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0 ? EINVAL : 0;
}

// The translations of requests to memory at `address`.
void set_translation(SimMr& mr, void* address, std::size_t length, std::uint64_t iova) {
  mr.addr = address;
  mr.length = length;
  mr.begin = iova;
  mr.bytes = length;
  mr.memory = static_cast<std::byte*>(address);
  const std::uint64_t page = std::uint64_t{1} << mr.page_bits;
  mr.to_pages = iova % page - reinterpret_cast<std::uint64_t>(address);
  mr.pages.assign(pages_of(iova, length, page), {});
}

void set_access(SimMr& mr, int access) {
  mr.access = access | Region::kLocalRead;
}

void set_pd(SimMr& mr, ibv_pd* pd) {
  mr.pd = pd;
  mr.owner = owner_of(pd);
  ++as_sim(pd).users;
}

}  // namespace

ibv_mr* SimProvider::reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  return reg_mr_iova(pd, address, length, reinterpret_cast<std::uint64_t>(address), access);
}

// As the kernel, it refuses an `iova` that is at another place in its page than `address` (ib_uverbs_reg_mr).
ibv_mr* SimProvider::reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) {
  if (const int error = check_access(access); error != 0) return no_object(error);
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  if (begin % kRegisteredPage != iova % kRegisteredPage) return no_object(EINVAL);
  if (begin + length < begin || iova + length < iova) return no_object(EINVAL);
  auto* mr = new SimMr{};
  mr->context = pd->context;
  mr->space = as_sim(pd->context).space;
  mr->page_bits = (access & IBV_ACCESS_HUGETLB) != 0 ? kHugePageBits : kPageBits;
  mr->translated_by = mr;
  set_translation(*mr, address, length, iova);
  set_access(*mr, access);
  set_pd(*mr, pd);
  nic_.memory().add(*mr);
  mr->lkey = mr->rkey = mr->key;
  spend_on_registration(begin, length);
  return mr;
}

void SimProvider::spend_on_registration(std::uint64_t begin, std::size_t length) {
  SimThread* const thread = nic_.running_thread();
  if (thread == nullptr) return;
  const HostProfile& host = nic_.profile().host;
  thread->spend(host.register_call +
                host.register_page * static_cast<std::int64_t>(pages_of(begin, length, kRegisteredPage)));
}

namespace {

// What libibverbs and the kernel refuse. Returns 0 or the errno.
int check_change(const SimMr& mr, int flags, const ibv_pd* pd, const void* address, std::size_t length, int access) {
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool changes_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 || flags == 0) return EINVAL;
  if (moves && (address == nullptr || length == 0)) return EINVAL;
  if (access != 0 && !changes_access) return EINVAL;
  if ((flags & IBV_REREG_MR_CHANGE_PD) != 0 && (pd == nullptr || pd->context != mr.context)) return EINVAL;
  return changes_access ? check_access(access) : 0;
}

}  // namespace

// The keys stay. A region that changes its place is named by its own addresses afterwards.
int SimProvider::rereg_mr(ibv_mr* verbs_mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  SimMr& mr = *static_cast<SimMr*>(verbs_mr);
  const int refusal = check_change(mr, flags, pd, address, length, access);
  if (refusal != 0 || mr.windows > 0) {
    errno = refusal != 0 ? refusal : EBUSY;
    return IBV_REREG_MR_ERR_INPUT;
  }
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    nic_.memory().drop_translations(mr);
    const auto begin = reinterpret_cast<std::uint64_t>(address);
    set_translation(mr, address, length, begin);
    spend_on_registration(begin, length);
  } else {
    spend_on_registration(0, 0);
  }
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) set_access(mr, access);
  if ((flags & IBV_REREG_MR_CHANGE_PD) != 0) {
    --as_sim(mr.pd).users;
    set_pd(mr, pd);
  }
  return 0;
}

int SimProvider::dereg_mr(ibv_mr* verbs_mr) {
  auto* mr = static_cast<SimMr*>(verbs_mr);
  if (mr->windows > 0) return EBUSY;
  nic_.memory().remove(*mr);
  nic_.memory().drop_translations(*mr);
  --as_sim(mr->pd).users;
  delete mr;
  return 0;
}

ibv_mw* SimProvider::alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) return no_object(EINVAL);
  auto* mw = new SimMw{};
  mw->context = pd->context;
  mw->pd = pd;
  mw->type = type;
  mw->is_window = true;
  nic_.memory().add(*mw);
  mw->rkey = mw->key;
  ++as_sim(pd).users;
  return mw;
}

int SimProvider::dealloc_mw(ibv_mw* verbs_mw) {
  auto* mw = static_cast<SimMw*>(verbs_mw);
  unbind(*mw);
  nic_.memory().remove(*mw);
  --as_sim(mw->pd).users;
  delete mw;
  return 0;
}

}  // namespace verbscope::sim
