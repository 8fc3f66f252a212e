/* XAES-256-GCM over EVP. */
#include "cipher.h"

#include "bytes.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <string.h>
#include <sys/random.h>

/* A program may exit while our threads run: OpenSSL must not be taken away from under them. */
cl_code cl_algorithms_open(cl_algorithms *algorithms)
{
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    algorithms->gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    algorithms->block = EVP_CIPHER_fetch(NULL, "AES-256-ECB", NULL);
    algorithms->hkdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    bool complete = algorithms->gcm != NULL && algorithms->block != NULL && algorithms->hkdf != NULL;
    return complete ? CL_OK : CL_INTERNAL;
}

void cl_algorithms_close(cl_algorithms *algorithms)
{
    EVP_CIPHER_free(algorithms->gcm);
    EVP_CIPHER_free(algorithms->block);
    EVP_KDF_free(algorithms->hkdf);
}

/* OpenSSL's parameters are not const, but it does not write to inputs. */
static OSSL_PARAM octets(const char *name, const void *data, size_t size)
{
    return OSSL_PARAM_construct_octet_string(name, (void *)(uintptr_t)data, size);
}

cl_code cl_hkdf(const cl_algorithms *algorithms, const cl_hkdf_input *input, uint8_t *out, size_t size)
{
    char digest[] = "SHA256";
    OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                               octets(OSSL_KDF_PARAM_KEY, input->key.data, input->key.size),
                               octets(OSSL_KDF_PARAM_SALT, input->salt.data, input->salt.size),
                               octets(OSSL_KDF_PARAM_INFO, input->info.data, input->info.size),
                               OSSL_PARAM_construct_end()};
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(algorithms->hkdf);
    bool derived = context != NULL && EVP_KDF_derive(context, out, size, parameters) == 1;
    EVP_KDF_CTX_free(context);
    return derived ? CL_OK : CL_INTERNAL;
}

cl_code cl_key_id(const cl_algorithms *algorithms, const uint8_t key[CL_KEY_SIZE], cl_kid *kid)
{
    static const uint8_t INFO[20] = "cipherlane v1 key id";
    static const uint8_t NONE[1];
    const cl_hkdf_input input = {{key, CL_KEY_SIZE}, {NONE, 0}, {INFO, sizeof INFO}};
    return cl_hkdf(algorithms, &input, kid->bytes, CL_KID_SIZE);
}

/* K1 of CMAC: one shift to the left in GF(2^128). */
static void double_block(uint8_t block[CL_BLOCK_SIZE])
{
    uint8_t carry = 0;
    for (size_t i = CL_BLOCK_SIZE; i-- > 0;) {
        uint8_t next = block[i] >> 7U;
        block[i] = (uint8_t)((uint8_t)(block[i] << 1U) | carry);
        carry = next;
    }
    block[CL_BLOCK_SIZE - 1] ^= (uint8_t)(carry * 0x87U);
}

static bool encrypt_block(EVP_CIPHER_CTX *aes, const uint8_t in[CL_BLOCK_SIZE], uint8_t out[CL_BLOCK_SIZE])
{
    int written = 0;
    return EVP_EncryptUpdate(aes, out, &written, in, (int)CL_BLOCK_SIZE) == 1 && written == (int)CL_BLOCK_SIZE;
}

/* AES(block ⊕ K1): the CMAC of a message of exactly one block. */
static bool mac_block(EVP_CIPHER_CTX *aes, const uint8_t k1[CL_BLOCK_SIZE], const uint8_t block[CL_BLOCK_SIZE],
                      uint8_t out[CL_BLOCK_SIZE])
{
    uint8_t masked[CL_BLOCK_SIZE];
    for (size_t i = 0; i < CL_BLOCK_SIZE; i++) {
        masked[i] = block[i] ^ k1[i];
    }
    bool done = encrypt_block(aes, masked, out);
    OPENSSL_cleanse(masked, sizeof masked);
    return done;
}

cl_code cl_cmac_blocks(const cl_algorithms *algorithms, const uint8_t key[CL_KEY_SIZE], const cl_block *blocks,
                       size_t count, cl_block *out)
{
    static const uint8_t ZERO[CL_BLOCK_SIZE];
    uint8_t k1[CL_BLOCK_SIZE];
    EVP_CIPHER_CTX *aes = EVP_CIPHER_CTX_new();
    bool done = aes != NULL && EVP_EncryptInit_ex2(aes, algorithms->block, key, NULL, NULL) == 1 &&
                EVP_CIPHER_CTX_set_padding(aes, 0) == 1 && encrypt_block(aes, ZERO, k1);
    if (done) {
        double_block(k1);
        for (size_t i = 0; done && i < count; i++) {
            done = mac_block(aes, k1, blocks[i].bytes, out[i].bytes);
        }
        OPENSSL_cleanse(k1, sizeof k1);
    }
    EVP_CIPHER_CTX_free(aes);
    return done ? CL_OK : CL_INTERNAL;
}

/* The two halves of the key: CMAC of (0 counter 58 00 ‖ salt) for the counters 1 and 2. */
static cl_code derive(const cl_algorithms *algorithms, const uint8_t key[CL_KEY_SIZE], const uint8_t salt[CL_SALT_SIZE],
                      cl_block halves[2])
{
    cl_block blocks[2] = {{{0x00, 1, 0x58, 0x00}}, {{0x00, 2, 0x58, 0x00}}};
    memcpy(blocks[0].bytes + 4, salt, CL_SALT_SIZE);
    memcpy(blocks[1].bytes + 4, salt, CL_SALT_SIZE);
    return cl_cmac_blocks(algorithms, key, blocks, 2, halves);
}

/*
 * EVP_CipherInit_ex2 asks OpenSSL 3.0's provider by name how long an IV is, which is a quarter of what a short record costs. What is there for
 * TLS sets an IV together with the tag: all of it, if that many bytes are given. Other providers may mean something else by it.
 */
static bool allow_quick_iv(EVP_CIPHER_CTX *context)
{
    static const uint8_t FIXED[4];
    const OSSL_PARAM parameters[] = {octets(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, FIXED, sizeof FIXED),
                                     OSSL_PARAM_construct_end()};
    const OSSL_PROVIDER *provider = EVP_CIPHER_get0_provider(EVP_CIPHER_CTX_get0_cipher(context));
    return strcmp(OSSL_PROVIDER_get0_name(provider), "default") == 0 &&
           EVP_CIPHER_CTX_set_params(context, parameters) == 1;
}

EVP_CIPHER_CTX *cl_cipher_new(const cl_algorithms *algorithms, const uint8_t key[CL_KEY_SIZE],
                              const uint8_t salt[CL_SALT_SIZE], bool encrypt)
{
    cl_block derived[2];
    if (derive(algorithms, key, salt, derived) != CL_OK) {
        return NULL;
    }
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    bool keyed = context != NULL &&
                 EVP_CipherInit_ex2(context, algorithms->gcm, derived[0].bytes, NULL, encrypt ? 1 : 0, NULL) == 1;
    OPENSSL_cleanse(derived, sizeof derived);
    if (!keyed) {
        EVP_CIPHER_CTX_free(context);
        return NULL;
    }
    if (!encrypt && allow_quick_iv(context)) {
        EVP_CIPHER_CTX_set_app_data(context, context);
    }
    return context;
}

/* The key schedule in the context stays. */
static bool set_iv(EVP_CIPHER_CTX *context, const uint8_t iv[CL_IV_SIZE])
{
    return EVP_CipherInit_ex2(context, NULL, NULL, iv, -1, NULL) == 1;
}

/* Of a record to be decrypted. What does not take both at once takes them one by one. */
static bool set_iv_and_tag(EVP_CIPHER_CTX *context, const uint8_t iv[CL_IV_SIZE], const uint8_t tag[CL_TAG_SIZE])
{
    const OSSL_PARAM both[] = {octets(OSSL_CIPHER_PARAM_AEAD_TAG, tag, CL_TAG_SIZE),
                               octets(OSSL_CIPHER_PARAM_AEAD_TLS1_SET_IV_INV, iv, CL_IV_SIZE),
                               OSSL_PARAM_construct_end()};
    const OSSL_PARAM only_tag[] = {both[0], OSSL_PARAM_construct_end()};
    bool quick = EVP_CIPHER_CTX_get_app_data(context) != NULL;
    return (quick && EVP_CIPHER_CTX_set_params(context, both) == 1) ||
           (set_iv(context, iv) && EVP_CIPHER_CTX_set_params(context, only_tag) == 1);
}

static bool add_data(EVP_CIPHER_CTX *context, const cl_aead_input *input)
{
    int ignored = 0;
    for (size_t i = 0; i < 3; i++) {
        cl_bytes piece = input->aad[i];
        if (piece.size > 0 && EVP_CipherUpdate(context, NULL, &ignored, piece.data, (int)piece.size) != 1) {
            return false;
        }
    }
    return true;
}

/* Runs the cipher over the text; an empty text needs no call. */
static bool transform(EVP_CIPHER_CTX *context, cl_bytes text, uint8_t *out)
{
    int written = 0;
    return text.size == 0 ||
           (EVP_CipherUpdate(context, out, &written, text.data, (int)text.size) == 1 && (size_t)written == text.size);
}

cl_code cl_cipher_encrypt(EVP_CIPHER_CTX *context, const cl_aead_input *input, uint8_t *out)
{
    int ignored = 0;
    uint8_t *tag = out + input->text.size;
    OSSL_PARAM parameters[] = {octets(OSSL_CIPHER_PARAM_AEAD_TAG, tag, CL_TAG_SIZE), OSSL_PARAM_construct_end()};
    bool done =
        set_iv(context, input->iv) && add_data(context, input) && transform(context, input->text, out) &&
        EVP_CipherFinal_ex(context, tag, &ignored) == 1 &&
        EVP_CIPHER_CTX_get_params(context, parameters) == 1; /* what EVP_CIPHER_CTX_ctrl does, without its detours */
    return done ? CL_OK : CL_INTERNAL;
}

cl_code cl_cipher_decrypt(EVP_CIPHER_CTX *context, const cl_aead_input *input, const uint8_t tag[CL_TAG_SIZE],
                          uint8_t *out)
{
    int ignored = 0;
    uint8_t none[CL_TAG_SIZE];
    bool done =
        set_iv_and_tag(context, input->iv, tag) && add_data(context, input) && transform(context, input->text, out);
    bool authentic = done && EVP_CipherFinal_ex(context, none, &ignored) == 1;
    if (!authentic && input->text.size > 0) {
        OPENSSL_cleanse(out, input->text.size);
    }
    if (authentic) {
        return CL_OK;
    }
    return done ? CL_AUTHENTICATION_FAILED : CL_INTERNAL;
}

bool cl_random(uint8_t *out, size_t size)
{
    for (size_t filled = 0; filled < size;) {
        ssize_t got = getrandom(out + filled, size - filled, 0);
        if (got <= 0 && errno != EINTR) {
            return false;
        }
        filled += got > 0 ? (size_t)got : 0;
    }
    return true;
}
