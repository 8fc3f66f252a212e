/* The settings of spec/configuration.md that C has. */
#ifndef CL_CONFIG_H
#define CL_CONFIG_H

#include <cipherlane/cipherlane.h>

#define CL_URLS_MAX 16U
#define CL_TEXT_MAX 4096U /* longest value of a setting, NUL included */

#define CL_SETTING "cipherlane." /* what all names start with */

/* What consuming does with a record that will never be readable (spec/kafka.md). */
typedef enum cl_action { CL_ACTION_FAIL, CL_ACTION_SKIP, CL_ACTION_DEAD_LETTER, CL_ACTION_MARK } cl_action;

typedef struct cl_settings {
    char urls[CL_TEXT_MAX]; /* NUL-separated after cl_settings_check, `url_count` of them */
    size_t url_count;
    const char *url[CL_URLS_MAX];
    char ca[CL_TEXT_MAX];
    char certificate[CL_TEXT_MAX];
    char key[CL_TEXT_MAX];
    char failure_action[CL_TEXT_MAX];
    char dead_letter_topic[CL_TEXT_MAX];
    char compression_topics[CL_TEXT_MAX];
    char record_key_topics[CL_TEXT_MAX];
    char identity_renew[CL_TEXT_MAX];
    char token_file[CL_TEXT_MAX];
    char jwt_file[CL_TEXT_MAX];
    char peer_ids[CL_TEXT_MAX];
    cl_action action; /* after cl_settings_check, like the next */
    bool renew;       /* the certificate comes from the key service */
    uint32_t connect_timeout_ms;
    uint32_t request_timeout_ms;
    uint32_t deadline_ms;
    uint32_t retry_backoff_ms;
    uint32_t cache_max;
    uint32_t max_plaintext;
    uint32_t compression_min;
} cl_settings;

struct cl_config {
    cl_settings settings;
};

/* Completes a copy of the configuration into *settings; refuses what cannot work [CL-CFG-002]. */
cl_code cl_settings_check(cl_settings *settings, const cl_config *config, cl_error *error);

/* The name of a required setting that is empty, or NULL. Certificate and key are not required beside a token or a JWT. */
const char *cl_setting_missing(const cl_settings *settings);

/* Makes *copy a copy of checked settings. */
void cl_settings_copy(cl_settings *copy, const cl_settings *settings);

/* The text without blanks around it. Changes the text. */
char *cl_trim(char *text);

/* Sets what a text of name=value lines says; `origin` names it in errors. Changes the text. */
cl_code cl_config_read(cl_config *config, char *text, const char *origin, cl_error *error);

/* Whether a name is one of ours: starts with "cipherlane.". */
bool cl_config_ours(const char *name);

#endif
