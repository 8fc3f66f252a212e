/* Which connections to Kafka go under the identity's certificate (spec/configuration.md, "Connections to Kafka"). */
#ifndef CL_TRANSPORT_H
#define CL_TRANSPORT_H

#include "pump.h"

/*
 * Where the settings renew a certificate and librdkafka's configuration asks for TLS without a certificate of its own: makes a pump for it, and librdkafka speak plainly
 * to that. Otherwise *pump stays NULL. CL_CONFIGURATION_INVALID when cipherlane.tls.peer.ids could not be kept.
 */
cl_code cl_transport_begin(rd_kafka_conf_t *conf, const cl_settings *settings, cl_pump **pump, cl_error *error);

#endif
