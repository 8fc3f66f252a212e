/* The librdkafka whose functions the pump and the plug-in call: the one that a Python package has loaded under whatever name. */
#ifndef CIPHERLANE_NATIVE_LOADED_H
#define CIPHERLANE_NATIVE_LOADED_H

#include "api.h"

/* What the plug-in calls beside the functions of api.h. */
typedef __typeof__(rd_kafka_interceptor_add_on_destroy) cn_add_on_destroy;

/*
 * Finds the functions in a shared object that is loaded, named by its path, or in what it needs. NULL, or why they cannot be used. To be called
 * before anything else here; not by two threads at once (the interpreter's lock sees to that).
 */
const char *cn_kafka_load(const char *path);

cn_add_on_destroy *cn_kafka_add_on_destroy(void);

#endif
