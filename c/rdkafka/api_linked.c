/* The functions of the librdkafka that this library is linked with. */
#include "api.h"

static const kafka_api LINKED = {
#define KAFKA_ADDRESS(name) .name = (name),
    KAFKA_CALLED(KAFKA_ADDRESS)
#undef KAFKA_ADDRESS
};

const kafka_api *cl_kafka(void)
{
    return &LINKED;
}

bool cl_kafka_preloaded(void)
{
    return false;
}
