/* What tests share: a temporary folder, certificates made now, child processes, JSON and hexadecimal. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <cipherlane/cipherlane.h>
#include <jansson.h>
#include <sys/types.h>

/* A new folder below TMPDIR; its path is the caller's. Removed by remove_folder with all files in it. */
char *make_folder(void);
void remove_folder(char *folder);

/* FOLDER/NAME in one of eight buffers that take turns. */
const char *in_folder(const char *folder, const char *name);

/*
 * Makes a CA and what it signs: FOLDER/ca.pem, server.pem and server.key (for 127.0.0.1 and localhost), client.pem and
 * client.key, client2.pem and client2.key. Aborts when OpenSSL fails.
 */
void make_pki(const char *folder);

/* A configuration for the key service at `url` with the files of make_pki. */
cl_config *make_config(const char *folder, const char *url);

/* A client of it with one more setting (or NULL). Aborts when it cannot be made. */
cl_client *make_client(const char *folder, const char *url, const char *name, const char *value);

/* A child process with a pipe each way. */
typedef struct child {
    pid_t pid;
    int in;
    FILE *out;
} child;

child start_child(char *const argv[]);

/* Reads a line, parsed as JSON; NULL at the end. */
json_t *read_json(const child *process);

/* Writes a line and reads the answer. */
json_t *ask_child(const child *process, const char *line);

/* Closes its standard input, then waits; kills it after ten seconds. */
void stop_child(child *process);

/* Bytes of a hexadecimal JSON string, at least one byte allocated; null for JSON null or NULL. Free .data. */
cl_bytes from_hex(const json_t *text);

/* A file of spec/vectors, or abort. */
json_t *load_vectors(const char *kind);

#endif
