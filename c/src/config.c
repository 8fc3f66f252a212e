/* Settings: one table, and what reads them. settings.c checks them together. */
#include "config.h"

#include "error.h"
#include "nearest.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX 65536U

typedef struct setting {
    const char *name;
    size_t offset; /* in cl_settings */
    uint32_t low;
    uint32_t high; /* 0: a text */
    uint32_t preset;
} setting;

#define TEXT(name, field) {CL_SETTING name, offsetof(cl_settings, field), 0, 0, 0}
#define NUMBER(name, field, low, high, preset) {CL_SETTING name, offsetof(cl_settings, field), low, high, preset}

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
    TEXT("dead.letter.topic", dead_letter_topic),
    TEXT("compression.topics", compression_topics),
    NUMBER("compression.min.bytes", compression_min, 0, 1073741824, 1024),
    TEXT("record.key.topics", record_key_topics),
    TEXT("identity.renew", identity_renew),
    TEXT("identity.token.file", token_file),
    TEXT("identity.jwt.file", jwt_file),
    TEXT("tls.peer.ids", peer_ids),
};
#define COUNT (sizeof SETTINGS / sizeof SETTINGS[0])
#define REQUIRED 4U   /* the first of them */
#define WITH_TOKEN 2U /* of these, with a token or a JWT */

/* The offsets of the table are those of fields of the right type. */
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
    return strncmp(name, CL_SETTING, strlen(CL_SETTING)) == 0;
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
        memcpy((char *)&config->settings + which->offset, value, size + 1);
        return CL_OK;
    }
    if (!parse_number(value, which, &number)) {
        return cl_fail(error, CL_CONFIGURATION_INVALID, "configuration-invalid: %s takes a number from %u to %u", name,
                       which->low, which->high);
    }
    set_number(&config->settings, which, number);
    return CL_OK;
}

const char *cl_setting_missing(const cl_settings *settings)
{
    bool token = *settings->token_file != '\0' || *settings->jwt_file != '\0';
    for (size_t i = 0; i < (token ? WITH_TOKEN : REQUIRED); i++) {
        if (*((const char *)settings + SETTINGS[i].offset) == '\0') {
            return SETTINGS[i].name;
        }
    }
    return NULL;
}

char *cl_trim(char *text)
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
    char *name = cl_trim(line);
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
    if (cl_config_set(config, cl_trim(name), cl_trim(equals + 1), &inner) != CL_OK) {
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
