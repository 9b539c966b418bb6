// The control path of XRC: domains, their shared receive queues, and the QPs that receive for these. InfiniBand
// Architecture Specification 1.3, volume 1, annex A14.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "nic_sim/device/provider.hpp"
#include "nic_sim/nic/send_layout.hpp"
#include "verbs/qp_rules.hpp"

namespace verbscope::sim {

// Errors as the kernel's (ib_uverbs_open_xrcd). Without a file each call makes a domain.
ibv_xrcd* SimProvider::open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) {
  if (attr->comp_mask != (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)) return no_object(EINVAL);
  struct stat file {};
  XrcDomain* domain = nullptr;
  if (attr->fd != -1) {
    if (fstat(attr->fd, &file) != 0) return nullptr;  // errno is set
    const auto known = std::ranges::find_if(xrc_domains_, [&file](const auto& each) {
      return each->handles > 0 && each->inode == file.st_ino && each->device == file.st_dev;
    });
    if (known != xrc_domains_.end()) domain = known->get();
    if (domain == nullptr && (attr->oflags & O_CREAT) == 0) return no_object(EAGAIN);
    if (domain != nullptr && (attr->oflags & O_EXCL) != 0) return no_object(EINVAL);
  }
  if (domain == nullptr) {
    domain = xrc_domains_.emplace_back(std::make_unique<XrcDomain>()).get();
    domain->device = file.st_dev;
    domain->inode = file.st_ino;
  }
  ++domain->handles;
  auto* xrcd = new SimXrcd{};
  xrcd->context = context;
  xrcd->domain = domain;
  ++as_sim(context).open_objects;
  return xrcd;
}

int SimProvider::close_xrcd(ibv_xrcd* verbs_xrcd) {
  auto* xrcd = static_cast<SimXrcd*>(verbs_xrcd);
  if (xrcd->users > 0) return EBUSY;
  --xrcd->domain->handles;
  --as_sim(xrcd->context).open_objects;
  delete xrcd;
  return 0;
}

ibv_srq* SimProvider::create_srq_ex(ibv_srq_init_attr_ex* attr) {
  constexpr std::uint32_t kOfDomain = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  constexpr std::uint32_t kKnown = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | kOfDomain;
  const ibv_srq_type type = (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 ? attr->srq_type : IBV_SRQT_BASIC;
  if ((attr->comp_mask & ~kKnown) != 0 || (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC)) {
    return no_object(EOPNOTSUPP);
  }
  const std::uint32_t needed = IBV_SRQ_INIT_ATTR_PD | (type == IBV_SRQT_XRC ? kOfDomain : 0);
  if ((attr->comp_mask & needed) != needed) return no_object(EINVAL);
  ibv_srq_init_attr plain{.srq_context = attr->srq_context, .attr = attr->attr};
  ibv_srq* const srq = create_srq(attr->pd, &plain);
  if (srq == nullptr || type == IBV_SRQT_BASIC) return srq;
  as_sim(srq).xrcd = static_cast<SimXrcd*>(attr->xrcd);
  as_sim(srq).cq = attr->cq;
  ++as_sim(srq).xrcd->users;
  ++as_sim(attr->cq).users;
  return srq;
}

ibv_qp* SimProvider::create_xrc_target(SimXrcd& xrcd, void* qp_context) {
  ibv_qp_init_attr attr{};
  attr.qp_context = qp_context;
  attr.qp_type = IBV_QPT_XRC_RECV;
  SimQp& qp = add_qp(attr, Transport::xrc, xrcd.context, nullptr);
  qp.send.verbs = &no_send_rules();
  qp.domain = xrcd.domain;
  qp.xrcd = &xrcd;
  ++xrcd.users;
  return &qp;
}

// The handle has no queues either: only the control path knows the QP behind it. Asynchronous events go to the handle
// that made the QP.
ibv_qp* SimProvider::open_qp(ibv_context* context, ibv_qp_open_attr* attr) {
  constexpr std::uint32_t kNeeded = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  if ((attr->comp_mask & kNeeded) != kNeeded || attr->qp_type != IBV_QPT_XRC_RECV) return no_object(EINVAL);
  SimXrcd& xrcd = *static_cast<SimXrcd*>(attr->xrcd);
  SimQp* const qp = nic_.find_qp(attr->qp_num);
  if (qp == nullptr || qp->domain == nullptr || qp->domain != xrcd.domain) return no_object(EINVAL);
  SimQp& handle = *qps_.emplace_back(std::make_unique<SimQp>());
  handle.context = context;
  if ((attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0) handle.qp_context = attr->qp_context;
  handle.qp_num = qp->qp_num;
  handle.qp_type = qp->qp_type;
  handle.state = qp->state;
  handle.transport = qp->transport;
  handle.nic = &nic_;
  handle.send.verbs = &no_send_rules();
  handle.xrcd = &xrcd;
  handle.opened = qp;
  ++qp->handles;
  ++xrcd.users;
  return &handle;
}

int SimProvider::close_xrc_target(SimQp& handle) {
  SimQp& qp = handle.opened != nullptr ? *handle.opened : handle;
  --handle.xrcd->users;
  if (--qp.handles == 0) destroy(qp);
  return 0;
}

}  // namespace verbscope::sim
