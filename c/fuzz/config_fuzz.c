/* Configuration files: whatever is accepted is within its range. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cl_error error;
    cl_config *config = cl_config_new();
    char *text = calloc(1, size + 1);
    cl_settings *settings = calloc(1, sizeof *settings);
    memcpy(text, data, size);
    if (cl_config_read(config, text, "fuzz", &error) == CL_OK) {
        (void)cl_settings_check(settings, config, &error);
        const cl_settings *read = &config->settings;
        if (read->connect_timeout_ms < 1 || read->connect_timeout_ms > 60000 || read->cache_max < 16 ||
            read->max_plaintext < 1 || read->max_plaintext > 1073741824 || settings->url_count > CL_URLS_MAX) {
            abort();
        }
    }
    free(settings);
    free(text);
    cl_config_free(config);
    return 0;
}
