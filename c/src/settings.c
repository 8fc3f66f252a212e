/* Settings checked together, when a client is made [CL-CFG-002]; pem.c checks the files. */
#include "config.h"

#include "error.h"
#include "topics.h"

#include <stdlib.h>
#include <string.h>

/* https://host:port, nothing behind it [CL-KEY-002]. */
static bool url_valid(const char *url)
{
    static const char HTTPS[] = "https://";
    if (strncmp(url, HTTPS, sizeof HTTPS - 1) != 0) {
        return false;
    }
    const char *host = url + sizeof HTTPS - 1;
    size_t size = *host == '[' ? strspn(host + 1, "0123456789abcdefABCDEF:.") + 2
                               : strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
    bool bracket = *host != '[' || (strlen(host) > size && host[size - 1] == ']');
    if (size == 0 || !bracket || strlen(host) <= size || host[size] != ':') {
        return false;
    }
    const char *port = host + size + 1;
    size_t digits = strspn(port, "0123456789");
    unsigned long number = digits > 0 && digits <= 5 ? strtoul(port, NULL, 10) : 0;
    return port[digits] == '\0' && number >= 1 && number <= 65535;
}

static cl_code split_urls(cl_settings *settings, cl_error *error)
{
    char *rest = settings->urls;
    settings->url_count = 0;
    while (rest != NULL) {
        char *comma = strchr(rest, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        char *url = cl_trim(rest);
        if (settings->url_count == CL_URLS_MAX || !url_valid(url)) {
            return cl_fail(error, CL_CONFIGURATION_INVALID,
                           "configuration-invalid: " CL_SETTING
                           "keyservice.urls takes 1 to %u addresses https://host:port, comma-separated",
                           CL_URLS_MAX);
        }
        settings->url[settings->url_count++] = url;
        rest = comma == NULL ? NULL : comma + 1;
    }
    return CL_OK;
}

#define DEAD_LETTER "{topic}.dead-letter"

static cl_code choose_action(cl_settings *settings, cl_error *error)
{
    static const char *const NAMES[] = {"fail", "skip", "dead-letter", "mark"};
    const char *name = *settings->failure_action == '\0' ? NAMES[CL_ACTION_FAIL] : settings->failure_action;
    for (unsigned i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (strcmp(name, NAMES[i]) == 0) {
            settings->action = (cl_action)i;
            return CL_OK;
        }
    }
    return cl_fail(error, CL_CONFIGURATION_INVALID,
                   "configuration-invalid: " CL_SETTING "failure.action takes fail, skip, dead-letter or mark");
}

static cl_code check_topics(cl_settings *settings, cl_error *error)
{
    char example[CL_SCOPE_MAX + 1];
    if (!cl_topics_valid(settings->compression_topics) || !cl_topics_valid(settings->record_key_topics)) {
        return cl_fail(error, CL_CONFIGURATION_INVALID,
                       "configuration-invalid: " CL_SETTING "compression.topics and " CL_SETTING
                       "record.key.topics take topic names and globs, comma-separated");
    }
    if (*settings->dead_letter_topic == '\0') {
        memcpy(settings->dead_letter_topic, DEAD_LETTER, sizeof DEAD_LETTER);
    }
    if (!cl_dead_letter_topic(settings->dead_letter_topic, "t", example)) {
        return cl_fail(error, CL_CONFIGURATION_INVALID,
                       "configuration-invalid: " CL_SETTING
                       "dead.letter.topic takes a topic name in which {topic} may stand for the record's");
    }
    return CL_OK;
}

static cl_code refuse_identity(cl_error *error, const char *why)
{
    return cl_fail(error, CL_CONFIGURATION_INVALID, "configuration-invalid: " CL_SETTING "%s", why);
}

/* Where the certificate comes from (spec/identity.md, "Clients that renew their certificate"). */
static cl_code check_identity(cl_settings *settings, cl_error *error)
{
    bool token = *settings->token_file != '\0';
    bool jwt = *settings->jwt_file != '\0';
    bool no = strcmp(settings->identity_renew, "false") == 0;
    settings->renew = strcmp(settings->identity_renew, "true") == 0 || token || jwt;
    if (!cl_ids_valid(settings->peer_ids)) {
        return refuse_identity(error, "tls.peer.ids takes SPIFFE ids and patterns, comma-separated");
    }
    if (*settings->identity_renew != '\0' && !no && strcmp(settings->identity_renew, "true") != 0) {
        return refuse_identity(error, "identity.renew takes true or false");
    }
    if (no && settings->renew) {
        return refuse_identity(error, "identity.renew=false, and a token or a JWT to renew with");
    }
    if (token && jwt) {
        return refuse_identity(error, "identity.token.file and identity.jwt.file: take one of them");
    }
    if (token && (*settings->certificate != '\0' || *settings->key != '\0')) {
        return refuse_identity(
            error, "identity.token.file takes the place of keyservice.tls.certificate and keyservice.tls.key");
    }
    return CL_OK;
}

void cl_settings_copy(cl_settings *copy, const cl_settings *settings)
{
    *copy = *settings;
    for (size_t i = 0; i < settings->url_count; i++) {
        copy->url[i] = copy->urls + (settings->url[i] - settings->urls);
    }
}

cl_code cl_settings_check(cl_settings *settings, const cl_config *config, cl_error *error)
{
    *settings = config->settings;
    const char *missing = cl_setting_missing(settings);
    if (missing != NULL) {
        return cl_fail(error, CL_CONFIGURATION_INVALID, "configuration-invalid: %s is required", missing);
    }
    cl_code code = choose_action(settings, error);
    code = code == CL_OK ? check_topics(settings, error) : code;
    code = code == CL_OK ? check_identity(settings, error) : code;
    return code == CL_OK ? split_urls(settings, error) : code;
}
