/* Filling a cl_error. */
#ifndef CL_ERROR_H
#define CL_ERROR_H

#include <cipherlane/cipherlane.h>

/* Sets code and message (printf) if `error` is not NULL, and returns the code, so that it can stand in a return. */
__attribute__((format(printf, 3, 4))) cl_code cl_fail(cl_error *error, cl_code code, const char *format, ...);

/* CL_INTERNAL for failed memory. */
cl_code cl_no_memory(cl_error *error);

/* The code of a name of spec/errors.md as the key service sends it, or CL_CODES for a name that is none. */
cl_code cl_code_of_name(const char *name);

#endif
