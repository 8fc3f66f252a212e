/* Settings: one table, and everything that reads or checks them. */
#include "config.h"

#include "error.h"
#include "nearest.h"

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "cipherlane."
#define FILE_MAX 65536U

typedef struct setting {
    const char *name;
    size_t offset; /* in cl_settings */
    uint32_t low;  /* both 0: a text */
    uint32_t high;
    uint32_t preset;
} setting;

#define TEXT(name, field) {PREFIX name, offsetof(cl_settings, field), 0, 0, 0}
#define NUMBER(name, field, low, high, preset) {PREFIX name, offsetof(cl_settings, field), low, high, preset}

static const setting SETTINGS[] = {
    TEXT("keyservice.urls", urls),
    TEXT("keyservice.tls.ca", ca),
    TEXT("keyservice.tls.certificate", certificate),
    TEXT("keyservice.tls.key", key),
    NUMBER("keyservice.connect.timeout.ms", connect_timeout_ms, 1, 60000, 2000),
    NUMBER("keyservice.request.timeout.ms", request_timeout_ms, 1, 60000, 5000),
    NUMBER("keys.deadline.ms", deadline_ms, 1, 600000, 10000),
    NUMBER("keys.retry.backoff.ms", retry_backoff_ms, 1, 60000, 500),
    NUMBER("keys.cache.max", cache_max, 16, 1000000, 10000),
    NUMBER("max.plaintext.bytes", max_plaintext, 1, 1073741824, 67108864),
    TEXT("failure.action", failure_action),
};
#define COUNT (sizeof SETTINGS / sizeof SETTINGS[0])

/* Where a setting lies; the offsets of the table are those of fields of the right type. */
static char *text_at(cl_settings *settings, const setting *which)
{
    return (char *)settings + which->offset;
}

static void set_number(cl_settings *settings, const setting *which, uint32_t value)
{
    memcpy((char *)settings + which->offset, &value, sizeof value);
}

cl_config *cl_config_new(void)
{
    cl_config *config = calloc(1, sizeof *config);
    for (size_t i = 0; config != NULL && i < COUNT; i++) {
        if (SETTINGS[i].high > 0) {
            set_number(&config->settings, &SETTINGS[i], SETTINGS[i].preset);
        }
    }
    return config;
}

void cl_config_free(cl_config *config)
{
    free(config);
}

bool cl_config_ours(const char *name)
{
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

static const setting *find(const char *name, cl_error *error)
{
    const char *names[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        names[i] = SETTINGS[i].name;
        if (strcmp(SETTINGS[i].name, name) == 0) {
            return &SETTINGS[i];
        }
    }
    (void)cl_fail(error, CL_CONFIGURATION_INVALID,
                  "configuration-invalid: there is no setting '%.120s'; the nearest name is '%s'", name,
                  cl_nearest(name, names, COUNT));
    return NULL;
}

/* Decimal digits only, as the table allows. */
static bool parse_number(const char *text, const setting *which, uint32_t *value)
{
    size_t size = strspn(text, "0123456789");
    if (size == 0 || size > 10 || text[size] != '\0') {
        return false;
    }
    unsigned long long number = strtoull(text, NULL, 10);
    *value = (uint32_t)number;
    return number >= which->low && number <= which->high;
}

cl_code cl_config_set(cl_config *config, const char *name, const char *value, cl_error *error)
{
    uint32_t number = 0;
    const setting *which = find(name, error);
    if (which == NULL) {
        return CL_CONFIGURATION_INVALID;
    }
    if (which->high == 0) {
        size_t size = strnlen(value, CL_TEXT_MAX);
        if (size == 0 || size == CL_TEXT_MAX) {
            return cl_fail(error, CL_CONFIGURATION_INVALID, "configuration-invalid: %s takes 1 to %u characters", name,
                           CL_TEXT_MAX - 1);
        }
        memcpy(text_at(&config->settings, which), value, size + 1);
        return CL_OK;
    }
    if (!parse_number(value, which, &number)) {
        return cl_fail(error, CL_CONFIGURATION_INVALID, "configuration-invalid: %s takes a number from %u to %u", name,
                       which->low, which->high);
    }
    set_number(&config->settings, which, number);
    return CL_OK;
}

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t size = strlen(text);
    while (size > 0 && strchr(" \t\r", text[size - 1]) != NULL) {
        size--;
    }
    text[size] = '\0';
    return text;
}

static cl_code read_line(cl_config *config, char *line, const char *origin, unsigned number, cl_error *error)
{
    char *name = trim(line);
    if (*name == '\0' || *name == '#') {
        return CL_OK;
    }
    char *equals = strchr(name, '=');
    if (equals == NULL) {
        return cl_fail(error, CL_CONFIGURATION_INVALID, "configuration-invalid: %.200s line %u has no '='", origin,
                       number);
    }
    *equals = '\0';
    cl_error inner;
    if (cl_config_set(config, trim(name), trim(equals + 1), &inner) != CL_OK) {
        return cl_fail(error, CL_CONFIGURATION_INVALID, "%.300s (%.120s line %u)", inner.message, origin, number);
    }
    return CL_OK;
}

cl_code cl_config_read(cl_config *config, char *text, const char *origin, cl_error *error)
{
    unsigned number = 0;
    for (char *line = text; line != NULL;) {
        char *end = strchr(line, '\n');
        char *next = NULL;
        if (end != NULL) {
            *end = '\0';
            next = end + 1;
        }
        cl_code code = read_line(config, line, origin, ++number, error);
        if (code != CL_OK) {
            return code;
        }
        line = next;
    }
    return CL_OK;
}

cl_code cl_config_load(cl_config *config, const char *path, cl_error *error)
{
    char *text = malloc(FILE_MAX + 1);
    if (text == NULL) {
        return cl_no_memory(error);
    }
    FILE *file = fopen(path, "re");
    size_t size = file == NULL ? 0 : fread(text, 1, FILE_MAX + 1, file);
    bool whole = file != NULL && ferror(file) == 0 && size <= FILE_MAX;
    if (file != NULL) {
        (void)fclose(file);
    }
    cl_code code = CL_CONFIGURATION_INVALID;
    if (whole && memchr(text, '\0', size) == NULL) {
        text[size] = '\0';
        code = cl_config_read(config, text, path, error);
    } else {
        (void)cl_fail(error, code, "configuration-invalid: %.200s cannot be read, or is no text of at most 64 KiB",
                      path);
    }
    free(text);
    return code;
}

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
        char *url = trim(rest);
        if (settings->url_count == CL_URLS_MAX || !url_valid(url)) {
            return cl_fail(error, CL_CONFIGURATION_INVALID,
                           "configuration-invalid: " PREFIX
                           "keyservice.urls takes 1 to %u addresses https://host:port, comma-separated",
                           CL_URLS_MAX);
        }
        settings->url[settings->url_count++] = url;
        rest = comma == NULL ? NULL : comma + 1;
    }
    return CL_OK;
}

/* Whether OpenSSL can use the three files together. A passphrase is never asked for. */
static const char *unusable_file(const cl_settings *settings)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    char none[] = "";
    const char *bad = NULL;
    if (context == NULL) {
        return "(no memory)";
    }
    SSL_CTX_set_default_passwd_cb_userdata(context, none);
    if (SSL_CTX_load_verify_locations(context, settings->ca, NULL) != 1) {
        bad = PREFIX "keyservice.tls.ca";
    } else if (SSL_CTX_use_certificate_chain_file(context, settings->certificate) != 1) {
        bad = PREFIX "keyservice.tls.certificate";
    } else if (SSL_CTX_use_PrivateKey_file(context, settings->key, SSL_FILETYPE_PEM) != 1 ||
               SSL_CTX_check_private_key(context) != 1) {
        bad = PREFIX "keyservice.tls.key";
    }
    SSL_CTX_free(context);
    return bad;
}

cl_code cl_settings_check(cl_settings *settings, const cl_config *config, cl_error *error)
{
    *settings = config->settings;
    for (size_t i = 0; i < 4; i++) { /* the first four of the table are required */
        if (*text_at(settings, &SETTINGS[i]) == '\0') {
            return cl_fail(error, CL_CONFIGURATION_INVALID, "configuration-invalid: %s is required", SETTINGS[i].name);
        }
    }
    const char *action = settings->failure_action;
    if (*action != '\0' && strcmp(action, "fail") != 0) {
        return cl_fail(error, CL_CONFIGURATION_INVALID, "configuration-invalid: " PREFIX "failure.action takes 'fail'");
    }
    cl_code code = split_urls(settings, error);
    const char *bad = code == CL_OK ? unusable_file(settings) : NULL;
    if (bad != NULL) {
        return cl_fail(error, CL_CONFIGURATION_INVALID,
                       "configuration-invalid: %s: not a readable PEM file, or the key does not fit the certificate",
                       bad);
    }
    return code;
}
