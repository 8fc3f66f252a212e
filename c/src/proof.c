/* Tokens and JWTs in files. */
#include "proof.h"

#include "error.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <string.h>

#define BEARER_MAX 16384U /* bytes of a token or JWT, exclusive */

static cl_pem *no_proof(cl_pem *pem, cl_error *error, const char *setting, const char *why)
{
    cl_pem_drop(pem);
    (void)cl_fail(error, CL_KEY_SERVICE_UNAVAILABLE, "key-service-unavailable: no certificate: " CL_SETTING "%s: %s",
                  setting, why);
    return NULL;
}

/* Cuts white space off the end; false when what is left has characters that no token has. */
static bool tidy(cl_pem_text *text)
{
    while (text->size > 0 && isspace((unsigned char)text->data[text->size - 1]) != 0) {
        text->data[--text->size] = '\0';
    }
    for (size_t i = 0; i < text->size; i++) {
        if (text->data[i] <= ' ' || text->data[i] > '~') {
            return false;
        }
    }
    return text->size > 0;
}

static bool digest_of(const cl_pem_text *text, uint8_t digest[CL_DIGEST_SIZE])
{
    return EVP_Digest(text->data, text->size, digest, NULL, EVP_sha256(), NULL) == 1;
}

static bool is_used(const cl_pem_text *token, const cl_used_token *used)
{
    uint8_t digest[CL_DIGEST_SIZE];
    return used->known && digest_of(token, digest) && memcmp(digest, used->digest, sizeof digest) == 0;
}

static cl_pem *bearer_proof(const cl_settings *settings, const cl_used_token *used, cl_error *error)
{
    bool jwt = *settings->jwt_file != '\0';
    const char *setting = jwt ? "identity.jwt.file" : "identity.token.file";
    cl_pem_mark mark;
    cl_pem *pem = cl_pem_new();
    if (pem == NULL) {
        (void)cl_no_memory(error);
        return NULL;
    }
    if (!cl_pem_text_read(settings->ca, CL_PEM_MAX, &pem->text[CL_PEM_CA], &mark)) {
        return no_proof(pem, error, "keyservice.tls.ca", "the file cannot be read");
    }
    if (!cl_pem_text_read(jwt ? settings->jwt_file : settings->token_file, BEARER_MAX, &pem->bearer, &mark) ||
        !tidy(&pem->bearer)) {
        return no_proof(pem, error, setting, "the file cannot be read, or does not hold one token");
    }
    if (!jwt && is_used(&pem->bearer, used)) {
        return no_proof(pem, error, setting,
                        "this token was used; put a new one into the file (cipherlane token create)");
    }
    return pem;
}

cl_pem *cl_proof_read(const cl_settings *settings, const cl_used_token *used, cl_error *error)
{
    if (*settings->jwt_file != '\0' || *settings->token_file != '\0') {
        return bearer_proof(settings, used, error);
    }
    return cl_pem_read(settings, error);
}

void cl_proof_answered(const cl_settings *settings, const cl_pem *proof, cl_used_token *used)
{
    if (*settings->token_file != '\0' && proof->bearer.data != NULL) {
        used->known = digest_of(&proof->bearer, used->digest);
    }
}
