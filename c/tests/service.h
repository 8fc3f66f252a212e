/* The hostile key service (hostile_service.py) as tests see it, and what they do with it. */
#ifndef SERVICE_H
#define SERVICE_H

#include "support.h"

#define CANARY_SIZE 18

extern char *folder;
extern child service;
extern char url[64];
extern const uint8_t CANARY[CANARY_SIZE];
extern uint8_t envelope_bytes[256]; /* what encrypt_canary wrote last */

/* Starts one with a certificate of `folder`, "server.pem" or "wrongname.pem". */
child start_service(const char *certificate, char out_url[64]);

/* What happens to requests for a topic from now on, as a JSON object. */
void behave(const char *topic, const char *what);

/* How many requests there were for a topic. */
long long requests(const char *topic);

void pause_ms(long milliseconds);
double seconds(void);

cl_code encrypt_canary(cl_client *client, const char *topic, cl_bytes *out, cl_error *error);

/* Encrypts and expects a code; on failure nothing is handed over and the message names the topic [CL-KAF-001]. */
void expect(cl_client *client, const char *topic, cl_code wanted);

/* Folder, certificates and service around the cases of one program. */
void begin_service(void);
void end_service(void);

#endif
