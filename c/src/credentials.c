/* Files that are looked at with each request, or an identity. */
#include "credentials.h"

#include "error.h"

#include <pthread.h>
#include <stdlib.h>

struct cl_credentials {
    const cl_settings *settings;
    cl_identity *identity;
    pthread_mutex_t mutex; /* guards what follows */
    cl_pem *files;         /* in force */
};

cl_credentials *cl_credentials_new(const cl_settings *settings, cl_error *error)
{
    cl_credentials *credentials = calloc(1, sizeof *credentials);
    if (credentials == NULL) {
        (void)cl_no_memory(error);
        return NULL;
    }
    credentials->settings = settings;
    (void)pthread_mutex_init(&credentials->mutex, NULL);
    if (settings->renew) {
        credentials->identity = cl_identity_share(settings, error);
    } else {
        credentials->files = cl_pem_read(settings, error);
    }
    if (credentials->identity == NULL && credentials->files == NULL) {
        cl_credentials_free(credentials);
        return NULL;
    }
    return credentials;
}

void cl_credentials_free(cl_credentials *credentials)
{
    if (credentials != NULL) {
        cl_identity_release(credentials->identity);
        cl_pem_drop(credentials->files);
        (void)pthread_mutex_destroy(&credentials->mutex);
        free(credentials);
    }
}

cl_identity *cl_credentials_identity(cl_credentials *credentials)
{
    return credentials->identity;
}

/* Files that cannot be used leave the old ones in force, and are looked at again with the next request [CL-KEY-016]. */
static cl_pem *take_files(cl_credentials *credentials)
{
    (void)pthread_mutex_lock(&credentials->mutex);
    bool changed = cl_pem_changed(credentials->files, credentials->settings);
    cl_pem *fresh = changed ? cl_pem_read(credentials->settings, NULL) : NULL;
    if (fresh != NULL) {
        cl_pem_drop(credentials->files);
        credentials->files = fresh;
    }
    cl_pem *taken = cl_pem_keep(credentials->files);
    (void)pthread_mutex_unlock(&credentials->mutex);
    return taken;
}

cl_code cl_credentials_take(cl_credentials *credentials, uint32_t timeout_ms, cl_pem **pem, cl_error *error)
{
    if (credentials->identity != NULL) {
        return cl_identity_take(credentials->identity, timeout_ms, pem, error);
    }
    *pem = take_files(credentials);
    return CL_OK;
}
