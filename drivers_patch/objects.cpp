#include "drivers_patch/objects.hpp"

#include "drivers_patch/data_path.hpp"
#include "drivers_patch/process.hpp"
#include "drivers_patch/verify.hpp"

namespace verbscope::driver {
namespace {

// The caller holds process.control.
QpRecord* make_qp_record(ibv_qp& qp, const WrappedContext& context, const QpFacts& facts) {
  QpRecord* const record = process.arena.make<QpRecord>();
  if (record == nullptr) return nullptr;
  record->number = process.qps++;
  record->context = context.record->number;
  record->qp_num = qp.qp_num;
  record->facts = facts;
  const auto nth = static_cast<std::uint32_t>(context.record->qps_made);
  record->facts.doorbell_register = doorbell_register_of(context.registers, nth);
  record->facts.shared_register = is_shared(context.registers, record->facts.doorbell_register);
  record->object = &qp;
  ++context.record->qps_made;
  return record;
}

CqRecord* make_cq_record(const void* cq, const WrappedContext& context) {
  CqRecord* const record = process.arena.make<CqRecord>();
  if (record == nullptr) return nullptr;
  record->number = process.cqs++;
  record->context = context.record->number;
  record->object = cq;
  ++context.record->cqs_made;
  Arena::publish(*record);
  return record;
}

SrqRecord* make_srq_record(const ibv_srq& srq, const WrappedContext& context, std::uint32_t max_sge) {
  SrqRecord* const record = process.arena.make<SrqRecord>();
  if (record == nullptr) return nullptr;
  record->number = process.srqs++;
  record->context = context.record->number;
  record->max_sge = max_sge;
  record->object = &srq;
  Arena::publish(*record);
  return record;
}

template <class Record>
Record* inserted(Record* record) {
  return record != nullptr && insert_keys(*record) ? record : nullptr;
}

template <class Record>
Record* detach(const void* object) {
  if (!counting()) return nullptr;
  const std::lock_guard guard(process.control);
  Record* const record = find_record<Record>(object);
  if (record == nullptr) return nullptr;
  erase_keys(*record);
  return record;
}

}  // namespace

void attach_qp(ibv_qp& qp, ibv_qp_ex* extended, const ibv_qp_cap& cap, bool signal_all, std::uint32_t mtu) {
  if (!counting()) return;
  const ErrnoGuard errno_guard;
  const std::lock_guard guard(process.control);
  const WrappedContext* const context = find_context(qp.context);
  if (context == nullptr || find_record<QpRecord>(&qp) != nullptr) return;
  QpRecord* const record = make_qp_record(qp, *context,
                                          {.type = qp.qp_type,
                                           .mtu = mtu,
                                           .max_inline = cap.max_inline_data,
                                           .max_send_sge = cap.max_send_sge,
                                           .max_recv_sge = cap.max_recv_sge,
                                           .signal_all = signal_all});
  if (record == nullptr) return;
  record->extended = extended;
  record->builder_calls = extended == nullptr ? nullptr : process.arena.make<BuilderCalls>();
  Arena::publish(*record);
  if (!insert_keys(*record)) return erase_keys(*record);
  if (record->builder_calls == nullptr) return;
  record->builder_calls->qp = record;
  if (context->checks != nullptr) verify_builder(*extended, *record->builder_calls);
  wrap_builder(*extended, *record->builder_calls);
}

void modify_qp(const ibv_qp& qp, const ibv_qp_attr& attr, int mask) {
  if (!counting()) return;
  const std::lock_guard guard(process.control);
  QpRecord* const record = find_record<QpRecord>(&qp);
  if (record == nullptr) return;
  if ((mask & IBV_QP_PATH_MTU) != 0) record->facts.mtu = mtu_bytes_of(attr.path_mtu);
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) record->facts.reads_at_once = attr.max_rd_atomic;
  if ((mask & IBV_QP_STATE) != 0 && (attr.qp_state == IBV_QPS_RESET || attr.qp_state == IBV_QPS_ERR)) {
    const bool unused = record->counts.load() == nullptr;
    if (!unused) record->no_samples = true;
  }
  if (const WrappedContext* const context = find_context(qp.context)) ++context->record->modifications;
}

QpRecord* detach_qp(const ibv_qp& qp) {
  if (!counting()) return nullptr;
  const std::lock_guard guard(process.control);
  QpRecord* const record = find_record<QpRecord>(&qp);
  if (record == nullptr) return nullptr;
  erase_keys(*record);
  record->alive = false;
  if (const WrappedContext* const context = find_context(qp.context)) ++context->record->qps_gone;
  return record;
}

void restore_qp(QpRecord* record) {
  if (record == nullptr) return;
  const std::lock_guard guard(process.control);
  record->alive = true;
  if (const WrappedContext* const context = find_context(static_cast<const ibv_qp*>(record->object)->context)) {
    --context->record->qps_gone;
  }
  insert_keys(*record);
}

void attach_cq(ibv_cq& cq) {
  if (!counting()) return;
  const ErrnoGuard errno_guard;
  const std::lock_guard guard(process.control);
  const WrappedContext* const context = find_context(cq.context);
  if (context != nullptr && find_record<CqRecord>(&cq) == nullptr) inserted(make_cq_record(&cq, *context));
}

void attach_cq_ex(ibv_cq_ex& cq) {
  if (!counting()) return;
  const ErrnoGuard errno_guard;
  const std::lock_guard guard(process.control);
  const WrappedContext* const context = find_context(cq.context);
  if (context == nullptr || find_record<CqRecord>(&cq) != nullptr) return;
  if (CqRecord* const record = inserted(make_cq_record(&cq, *context))) wrap_polling(cq, record->calls);
}

CqRecord* detach_cq(const ibv_cq& cq) {
  return detach<CqRecord>(&cq);
}

void restore_cq(CqRecord* record) {
  if (record == nullptr) return;
  const std::lock_guard guard(process.control);
  inserted(record);
}

void attach_srq(ibv_srq& srq, std::uint32_t max_sge) {
  if (!counting()) return;
  const ErrnoGuard errno_guard;
  const std::lock_guard guard(process.control);
  const WrappedContext* const context = find_context(srq.context);
  if (context != nullptr && find_record<SrqRecord>(&srq) == nullptr) inserted(make_srq_record(srq, *context, max_sge));
}

SrqRecord* detach_srq(const ibv_srq& srq) {
  return detach<SrqRecord>(&srq);
}

void restore_srq(SrqRecord* record) {
  if (record == nullptr) return;
  const std::lock_guard guard(process.control);
  inserted(record);
}

// For a QP that was created in a way that is not wrapped, or before counting began.
QpRecord* adopt_qp(ibv_qp* qp, const WrappedContext& context) {
  const std::lock_guard guard(process.control);
  if (QpRecord* const known = find_record<QpRecord>(qp)) return known;
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  QpFacts facts{.type = qp->qp_type, .adopted = true};
  if (process.query_qp != nullptr &&
      process.query_qp(qp, &attr, IBV_QP_CAP | IBV_QP_PATH_MTU | IBV_QP_MAX_QP_RD_ATOMIC, &init) == 0) {
    facts.max_inline = init.cap.max_inline_data;
    facts.max_send_sge = init.cap.max_send_sge;
    facts.max_recv_sge = init.cap.max_recv_sge;
    facts.signal_all = init.sq_sig_all != 0;
    facts.reads_at_once = attr.max_rd_atomic;
    if (attr.path_mtu >= IBV_MTU_256 && attr.path_mtu <= IBV_MTU_4096) facts.mtu = mtu_bytes_of(attr.path_mtu);
  }
  QpRecord* const record = make_qp_record(*qp, context, facts);
  if (record == nullptr) return nullptr;
  Arena::publish(*record);
  if (insert_keys(*record)) return record;
  erase_keys(*record);
  return nullptr;
}

CqRecord* adopt_cq(ibv_cq* cq, const WrappedContext& context) {
  const std::lock_guard guard(process.control);
  CqRecord* const known = find_record<CqRecord>(cq);
  return known != nullptr ? known : inserted(make_cq_record(cq, context));
}

SrqRecord* adopt_srq(ibv_srq* srq, const WrappedContext& context) {
  const std::lock_guard guard(process.control);
  SrqRecord* const known = find_record<SrqRecord>(srq);
  return known != nullptr ? known : inserted(make_srq_record(*srq, context, 1));
}

}  // namespace verbscope::driver
