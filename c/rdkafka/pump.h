/*
 * TLS outside librdkafka: what it takes for a plain connection to a broker is one end of a pair of sockets, behind which a thread runs mutual TLS under the
 * certificate of an identity. So a certificate is renewed without a new handle: new connections take the newest, and a connection that gets near the end of
 * its own is closed between requests, which librdkafka takes for a broker's idle close.
 */
#ifndef CL_PUMP_H
#define CL_PUMP_H

#include "api.h"
#include "tls.h"

typedef struct cl_pump cl_pump;

/* NULL with *error set. The arguments are those of cl_tls_new: the share of `identity` is taken over in any case. */
cl_pump *cl_pump_new(cl_identity *identity, const cl_tls_terms *terms, cl_error *error);

/* Closes all connections and stops the thread. NULL is allowed. */
void cl_pump_free(cl_pump *pump);

/* Says that the calling thread, one of librdkafka's, works for this handle. */
void cl_pump_serve(cl_pump *pump, const rd_kafka_t *rk);

/* Before the rd_kafka_t is destroyed: logs nothing with it any more. */
void cl_pump_mute(cl_pump *pump);

/* For rd_kafka_conf_set_connect_cb: puts an end of a pair in the place of librdkafka's socket. 0, or an errno. */
int cl_pump_connect(int socket, const struct sockaddr *address, int size, const char *name, void *opaque);

#endif
