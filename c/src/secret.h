/*
 * Memory for data keys: 32-byte cells in pages that are locked into memory and left out of core dumps where the system
 * permits it. A freed cell is wiped. Thread-safe.
 */
#ifndef CL_SECRET_H
#define CL_SECRET_H

#include <stdint.h>

typedef struct cl_secrets cl_secrets;

/* NULL when there is no memory. */
cl_secrets *cl_secrets_new(void);

/* Wipes and unmaps everything; all cells are gone. */
void cl_secrets_free(cl_secrets *secrets);

/* A cell of 32 bytes, or NULL when there is no memory. */
uint8_t *cl_secret_new(cl_secrets *secrets);

/* Wipes the cell and gives it back; NULL is allowed. */
void cl_secret_free(cl_secrets *secrets, uint8_t *cell);

/* Wipes all cells without taking a lock or freeing anything: for a forked child, whose locks may be held by nobody. */
void cl_secrets_wipe(cl_secrets *secrets);

#endif
