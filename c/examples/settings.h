/* What the examples and the load program do with a configuration: one setting, or the name=value lines of a file. A mistake ends the program. */
#ifndef EXAMPLE_SETTINGS_H
#define EXAMPLE_SETTINGS_H

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char errstr[512];
    if (rd_kafka_conf_set(conf, name, value, errstr, sizeof errstr) != RD_KAFKA_CONF_OK) {
        (void)fprintf(stderr, "%s\n", errstr);
        exit(2);
    }
}

static inline void set_from_file(rd_kafka_conf_t *conf, const char *path)
{
    char line[1024];
    FILE *file = path == NULL ? NULL : fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *equals = strchr(line, '=');
        if (equals != NULL) {
            *equals = '\0';
            set(conf, line, equals + 1);
        }
    }
    if (file == NULL || fclose(file) != 0) {
        perror(path == NULL ? "settings" : path);
        exit(2);
    }
}

#endif
