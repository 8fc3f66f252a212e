/* Whether a handle needs a pump. */
#include "transport.h"

#include "error.h"

#include <string.h>

#define VALUE_MAX 64U

static bool is(const rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char text[VALUE_MAX];
    size_t size = sizeof text;
    return cl_kafka()->rd_kafka_conf_get(conf, name, text, &size) == RD_KAFKA_CONF_OK && strcmp(text, value) == 0;
}

static bool is_set(const rd_kafka_conf_t *conf, const char *name)
{
    size_t size = 0;
    return cl_kafka()->rd_kafka_conf_get(conf, name, NULL, &size) == RD_KAFKA_CONF_OK && size > 1;
}

/* Librdkafka's own settings say whom to trust, or what to show: then its TLS is the application's. */
static bool own_tls(const rd_kafka_conf_t *conf)
{
    static const char *const NAMES[] = {"ssl.ca.location",      "ssl.ca.pem",       "ssl.certificate.location",
                                        "ssl.certificate.pem",  "ssl.key.location", "ssl.key.pem",
                                        "ssl.keystore.location"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (is_set(conf, NAMES[i])) {
            return true;
        }
    }
    return false;
}

/* Librdkafka speaks plainly to the pump, whose end of the pair knows no TCP options. */
static bool speak_plainly(rd_kafka_conf_t *conf, bool sasl)
{
    const kafka_api *kafka = cl_kafka();
    char errstr[VALUE_MAX];
    kafka->rd_kafka_conf_set_connect_cb(conf, cl_pump_connect);
    return kafka->rd_kafka_conf_set(conf, "security.protocol", sasl ? "sasl_plaintext" : "plaintext", errstr,
                                    sizeof errstr) == RD_KAFKA_CONF_OK &&
           kafka->rd_kafka_conf_set(conf, "socket.nagle.disable", "false", errstr, sizeof errstr) == RD_KAFKA_CONF_OK;
}

cl_code cl_transport_begin(rd_kafka_conf_t *conf, const cl_settings *settings, cl_pump **pump, cl_error *error)
{
    bool sasl = is(conf, "security.protocol", "sasl_ssl");
    const cl_tls_terms terms = {.peer_ids = settings->peer_ids,
                                .timeout_ms = settings->request_timeout_ms,
                                .verify_host = !is(conf, "ssl.endpoint.identification.algorithm", "none")};
    *pump = NULL;
    if (!settings->renew || !(sasl || is(conf, "security.protocol", "ssl")) || own_tls(conf)) {
        return *settings->peer_ids == '\0'
                   ? CL_OK
                   : cl_fail(error, CL_CONFIGURATION_INVALID,
                             "configuration-invalid: " CL_SETTING "tls.peer.ids needs " CL_SETTING
                             "identity.renew, security.protocol ssl or sasl_ssl, and neither a CA nor a certificate in "
                             "librdkafka's settings");
    }
    cl_identity *identity = cl_identity_share(settings, error);
    *pump = identity == NULL ? NULL : cl_pump_new(identity, &terms, error);
    if (*pump == NULL) {
        return CL_INTERNAL;
    }
    return speak_plainly(conf, sasl) ? CL_OK : cl_fail(error, CL_INTERNAL, "internal: librdkafka refuses plaintext");
}
