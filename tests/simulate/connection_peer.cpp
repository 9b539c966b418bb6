// One side of a connection by librdmacm, for connection_manager_test.py: prints the events that it gets.
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

rdma_event_channel* channel = nullptr;

[[noreturn]] void fail(const char* what) {
  std::printf("%s: %s\n", what, std::strerror(errno));
  std::exit(1);
}
void check(const char* what, int result) {
  if (result != 0) fail(what);
}

// An event, after which its identifier is still valid.
struct Event {
  rdma_cm_event_type type;
  rdma_cm_id* id;
};

Event next_event() {
  rdma_cm_event* event = nullptr;
  check("rdma_get_cm_event", rdma_get_cm_event(channel, &event));
  std::printf("%s %d", rdma_event_str(event->event), event->status);
  if (event->id->qp_type == IBV_QPT_RC && event->param.conn.private_data_len > 0)
    std::printf(" '%s'", static_cast<const char*>(event->param.conn.private_data));
  std::printf("\n");
  std::fflush(stdout);
  const Event seen{event->event, event->id};
  check("rdma_ack_cm_event", rdma_ack_cm_event(event));
  return seen;
}

// Ends without a word, as by a signal, but with a status that `verbscope simulate` does not take for a failure.
[[noreturn]] void die() {
  std::fflush(stdout);
  _exit(0);
}

void expect(rdma_cm_event_type type) {
  if (next_event().type != type) std::exit(1);
}

void create_qp(rdma_cm_id* id) {
  ibv_qp_init_attr attr{};
  attr.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  attr.qp_type = IBV_QPT_RC;
  check("rdma_create_qp", rdma_create_qp(id, nullptr, &attr));
}

rdma_conn_param greeting(const char* text) {
  rdma_conn_param param{};
  param.private_data = text;
  param.private_data_len = static_cast<std::uint8_t>(std::strlen(text) + 1);
  param.responder_resources = param.initiator_depth = 1;
  param.retry_count = param.rnr_retry_count = 7;
  return param;
}

void destroy(rdma_cm_id* id) {
  if (id->qp != nullptr) rdma_destroy_qp(id);
  check("rdma_destroy_id", rdma_destroy_id(id));
}

void serve(const std::string& how, sockaddr* address) {
  rdma_cm_id* listener = nullptr;
  check("rdma_create_id", rdma_create_id(channel, &listener, nullptr, RDMA_PS_TCP));
  check("rdma_bind_addr", rdma_bind_addr(listener, address));
  rdma_cm_id* second = nullptr;
  check("rdma_create_id", rdma_create_id(channel, &second, nullptr, RDMA_PS_TCP));
  if (rdma_bind_addr(second, address) != 0) std::printf("second listener: %s\n", std::strerror(errno));
  check("rdma_destroy_id", rdma_destroy_id(second));
  check("rdma_listen", rdma_listen(listener, 1));
  if (how == "die_listening") die();
  const Event request = next_event();
  if (how == "die") die();
  if (how == "refuse") {
    const char text[] = "no";
    check("rdma_reject", rdma_reject(request.id, text, sizeof text));
    destroy(request.id);
    return destroy(listener);
  }
  if (how == "forget") return destroy(listener);  // and the request with the file, at the end
  create_qp(request.id);
  rdma_conn_param param = greeting("welcome");
  check("rdma_accept", rdma_accept(request.id, &param));
  expect(RDMA_CM_EVENT_ESTABLISHED);
  if (how == "die_connected") die();
  if (how == "destroy") {
    destroy(request.id);
    return destroy(listener);
  }
  if (how == "leave") check("rdma_disconnect", rdma_disconnect(request.id));
  expect(RDMA_CM_EVENT_DISCONNECTED);
  if (how != "leave") check("rdma_disconnect", rdma_disconnect(request.id));
  expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
  destroy(request.id);
  destroy(listener);
}

void ask(const std::string& how, sockaddr* address) {
  rdma_cm_id* id = nullptr;
  check("rdma_create_id", rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP));
  check("rdma_resolve_addr", rdma_resolve_addr(id, nullptr, address, 1000));
  if (next_event().type != RDMA_CM_EVENT_ADDR_RESOLVED) return destroy(id);
  check("rdma_resolve_route", rdma_resolve_route(id, 1000));
  expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  create_qp(id);
  rdma_conn_param param = greeting("hello");
  check("rdma_connect", rdma_connect(id, &param));
  if (how == "vanish") die();
  if (next_event().type != RDMA_CM_EVENT_ESTABLISHED) return destroy(id);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  check("ibv_query_qp", ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init));
  std::printf("QP in state %d, GUID of device %d\n", attr.qp_state, ibv_get_device_guid(id->verbs->device) != 0);
  if (how == "leave") check("rdma_disconnect", rdma_disconnect(id));
  expect(RDMA_CM_EVENT_DISCONNECTED);
  destroy(id);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(argv[3], argv[4], &hints, &found) != 0) fail("getaddrinfo");
  channel = rdma_create_event_channel();
  if (channel == nullptr) fail("rdma_create_event_channel");
  (std::string(argv[1]) == "server" ? serve : ask)(argv[2], found->ai_addr);
  rdma_destroy_event_channel(channel);
  freeaddrinfo(found);
  std::printf("end\n");
}
