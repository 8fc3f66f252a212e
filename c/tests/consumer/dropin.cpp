// The headers in C++, and the drop-in's names in place of librdkafka's.
#define CIPHERLANE_REPLACES_LIBRDKAFKA
#include <cipherlane/rdkafka.h>
#include <cstdio>

int main()
{
    char why[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    std::printf("%s\n", why);
    rd_kafka_conf_destroy(conf);
    return rk == nullptr ? 0 : 1;
}
