/* What tests share. */
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

char *make_folder(void)
{
    const char *base = getenv("TMPDIR");
    char *folder = NULL;
    if (asprintf(&folder, "%s/cipherlane-c-XXXXXX", base == NULL ? "/tmp" : base) < 0 || mkdtemp(folder) == NULL) {
        abort();
    }
    return folder;
}

const char *in_folder(const char *folder, const char *name)
{
    static _Thread_local char paths[8][512];
    static _Thread_local unsigned next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void remove_folder(char *folder)
{
    DIR *directory = opendir(folder);
    for (struct dirent *each = directory == NULL ? NULL : readdir(directory); each != NULL; each = readdir(directory)) {
        (void)unlink(in_folder(folder, each->d_name));
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
    (void)rmdir(folder);
    free(folder);
}

cl_config *make_config(const char *folder, const char *url)
{
    cl_config *config = cl_config_new();
    cl_error error = {0};
    if (config == NULL || cl_config_set(config, "cipherlane.keyservice.urls", url, &error) != CL_OK ||
        cl_config_set(config, "cipherlane.keyservice.connect.timeout.ms", "20000", &error) !=
            CL_OK || /* Valgrind is slow */
        cl_config_set(config, "cipherlane.keyservice.tls.ca", in_folder(folder, "ca.pem"), &error) != CL_OK ||
        cl_config_set(config, "cipherlane.keyservice.tls.certificate", in_folder(folder, "client.pem"), &error) !=
            CL_OK ||
        cl_config_set(config, "cipherlane.keyservice.tls.key", in_folder(folder, "client.key"), &error) != CL_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        abort();
    }
    return config;
}

cl_client *make_client(const char *folder, const char *url, const char *name, const char *value)
{
    cl_client *client = NULL;
    cl_error error = {0};
    cl_config *config = make_config(folder, url);
    if ((name != NULL && cl_config_set(config, name, value, &error) != CL_OK) ||
        cl_client_new(&client, config, &error) != CL_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        abort();
    }
    cl_config_free(config);
    return client;
}

child start_child(char *const argv[])
{
    int in[2];
    int out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
        abort();
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(in[0], STDIN_FILENO);
        (void)dup2(out[1], STDOUT_FILENO);
        (void)execvp(argv[0], argv);
        _exit(127);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    return (child){pid, in[1], fdopen(out[0], "r")};
}

json_t *read_json(const child *process)
{
    char *line = NULL;
    size_t capacity = 0;
    json_t *value = NULL;
    if (getline(&line, &capacity, process->out) > 0) {
        value = json_loads(line, JSON_DECODE_ANY, NULL);
    }
    free(line);
    return value;
}

json_t *ask_child(const child *process, const char *line)
{
    if (write(process->in, line, strlen(line)) < 0 || write(process->in, "\n", 1) < 0) {
        abort();
    }
    return read_json(process);
}

void stop_child(child *process)
{
    const struct timespec tick = {0, 10000000};
    (void)close(process->in);
    int waited = 0;
    while (waitpid(process->pid, NULL, WNOHANG) == 0) {
        if (++waited == 1000) {
            (void)kill(process->pid, SIGKILL);
        }
        (void)nanosleep(&tick, NULL);
    }
    (void)fclose(process->out);
}

static unsigned nibble(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10U;
}

cl_bytes from_hex(const json_t *text)
{
    if (text == NULL || json_is_null(text)) {
        return (cl_bytes){NULL, 0};
    }
    const char *digits = json_string_value(text);
    size_t size = json_string_length(text) / 2;
    uint8_t *bytes = malloc(size + 1);
    for (size_t i = 0; bytes != NULL && i < size; i++) {
        bytes[i] = (uint8_t)(nibble(digits[2 * i]) << 4U | nibble(digits[2 * i + 1]));
    }
    return (cl_bytes){bytes, size};
}

json_t *load_vectors(const char *kind)
{
    char path[512];
    json_error_t error;
    (void)snprintf(path, sizeof path, "%s/%s.json", VECTORS, kind);
    json_t *file = json_load_file(path, JSON_ALLOW_NUL, &error);
    if (file == NULL) {
        (void)fprintf(stderr, "%s: %s\n", path, error.text);
        abort();
    }
    return file;
}
