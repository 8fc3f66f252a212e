/*
 * The functions of the librdkafka that the process has loaded, under whatever name and scope (Python wheels load theirs
 * privately as librdkafka-HASH.so). RTLD_NEXT does not see those; the list of loaded objects does.
 */
#include "api.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kafka_api loaded;
static void *librdkafka; /* the handle of the object that has them */
static unsigned found;   /* how many different ones there are */

_Noreturn static void give_up(const char *why)
{
    (void)fprintf(stderr, "cipherlane: %s; stopping, so that nothing is sent unencrypted\n", why);
    abort();
}

/* Notes a loaded librdkafka. Its C++ face finds the same functions through its dependencies, and counts once. */
static int inspect(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash == NULL ? info->dlpi_name : slash + 1;
    if (strstr(name, "rdkafka") == NULL || strstr(name, "cipherlane") != NULL) {
        return 0;
    }
    void *handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) {
        return 0;
    }
    const void *here = dlsym(handle, "rd_kafka_produce");
    const void *there = librdkafka == NULL ? NULL : dlsym(librdkafka, "rd_kafka_produce");
    if (here != NULL && here != there) {
        librdkafka = handle;
        found++;
    }
    return 0;
}

static void resolve(void *into, const char *name)
{
    void *address = dlsym(librdkafka, name);
    if (address == NULL) {
        (void)fprintf(stderr, "cipherlane: this librdkafka has no %s\n", name);
        give_up("librdkafka is too old");
    }
    memcpy(into, &address, sizeof address);
}

static void load(void)
{
    (void)dl_iterate_phdr(inspect, NULL);
    if (found != 1) {
        give_up(found == 0 ? "no librdkafka is loaded in this process" : "more than one librdkafka is loaded");
    }
#define KAFKA_RESOLVE(name) resolve((void *)&loaded.name, #name);
    KAFKA_CALLED(KAFKA_RESOLVE)
#undef KAFKA_RESOLVE
}

const kafka_api *cl_kafka(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load);
    return &loaded;
}

bool cl_kafka_preloaded(void)
{
    return true;
}
