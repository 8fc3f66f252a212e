/* dlsym over the object's own dependencies: another librdkafka in the process is not looked at. */
#include "loaded.h"

#include <dlfcn.h>
#include <string.h>

static kafka_api loaded;
static cn_add_on_destroy *add_on_destroy;

static bool resolve(void *object, void *into, const char *name)
{
    void *address = dlsym(object, name);
    memcpy(into, &address, sizeof address);
    return address != NULL;
}

const char *cn_kafka_load(const char *path)
{
    void *object = dlopen(path, RTLD_LAZY | RTLD_NOLOAD); /* never given back: its functions are in use */
    if (object == NULL) {
        return "confluent_kafka's extension is not loaded";
    }
    bool whole = resolve(object, (void *)&add_on_destroy, "rd_kafka_interceptor_add_on_destroy");
#define KAFKA_RESOLVE(name) whole = resolve(object, (void *)&loaded.name, #name) && whole;
    KAFKA_CALLED(KAFKA_RESOLVE)
#undef KAFKA_RESOLVE
    return whole ? NULL : "its librdkafka shows not all functions that are needed: it is older than 2.0, or linked in";
}

const kafka_api *cl_kafka(void)
{
    return &loaded;
}

cn_add_on_destroy *cn_kafka_add_on_destroy(void)
{
    return add_on_destroy;
}
