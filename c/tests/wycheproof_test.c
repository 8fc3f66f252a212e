/*
 * Wycheproof's AES-GCM, HKDF-SHA256 and AES-CMAC vectors, read from the Go module that `make` fetches into build/wycheproof (nothing is copied
 * here), and the accumulated vectors of XAES-256-GCM (C2SP). Covers CL-ENV-020 and CL-ENV-022.
 */
#include "check.h"
#include "cipher.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cl_algorithms algorithms;

static json_t *load(const char *name)
{
    char path[512];
    json_error_t error;
    const char *where = getenv("CL_WYCHEPROOF");
    (void)snprintf(path, sizeof path, "%s/testvectors_v1/%s_test.json", where == NULL ? "build/wycheproof" : where,
                   name);
    json_t *file = json_load_file(path, 0, &error);
    if (file == NULL) {
        (void)fprintf(stderr, "%s: %s; make wycheproof fetches it\n", path, error.text);
        exit(1);
    }
    return file;
}

static json_int_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static void release(cl_bytes bytes)
{
    free((void *)(uintptr_t)bytes.data);
}

/* Calls `run` for each test of the groups that `fits`; gives back how many there were. */
static size_t each(const char *name, bool (*fits)(const json_t *group),
                   void (*run)(const json_t *group, const json_t *test, bool valid))
{
    size_t count = 0;
    size_t i = 0;
    size_t j = 0;
    json_t *file = load(name);
    const json_t *group = NULL;
    const json_t *test = NULL;
    json_array_foreach(json_object_get(file, "testGroups"), i, group)
    {
        json_array_foreach(json_object_get(group, "tests"), j, test)
        {
            if (fits(group)) {
                run(group, test, strcmp(json_string_value(json_object_get(test, "result")), "valid") == 0);
                count++;
            }
        }
    }
    json_decref(file);
    return count;
}

static EVP_CIPHER_CTX *keyed(const uint8_t *key, bool encrypt)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    CHECK(EVP_CipherInit_ex2(context, algorithms.gcm, key, NULL, encrypt ? 1 : 0, NULL) == 1);
    return context;
}

static bool is_ours(const json_t *group)
{
    return number(group, "keySize") == 256 && number(group, "ivSize") == 96 && number(group, "tagSize") == 128;
}

static void gcm_one(const json_t *group, const json_t *test, bool valid)
{
    static uint8_t out[4096];
    (void)group;
    const cl_bytes key = from_hex(json_object_get(test, "key"));
    const cl_bytes iv = from_hex(json_object_get(test, "iv"));
    const cl_bytes aad = from_hex(json_object_get(test, "aad"));
    const cl_bytes msg = from_hex(json_object_get(test, "msg"));
    const cl_bytes ct = from_hex(json_object_get(test, "ct"));
    const cl_bytes tag = from_hex(json_object_get(test, "tag"));
    EVP_CIPHER_CTX *reading = keyed(key.data, false);
    const cl_aead_input sealed = {iv.data, {aad}, ct};
    cl_code code = cl_cipher_decrypt(reading, &sealed, tag.data, out);
    CHECK(code == (valid ? CL_OK : CL_AUTHENTICATION_FAILED));
    CHECK(!valid || memcmp(out, msg.data, msg.size) == 0);
    EVP_CIPHER_CTX *writing = keyed(key.data, true);
    const cl_aead_input plain = {iv.data, {aad}, msg};
    CHECK(cl_cipher_encrypt(writing, &plain, out) == CL_OK);
    CHECK((memcmp(out, ct.data, ct.size) == 0 && memcmp(out + ct.size, tag.data, tag.size) == 0) == valid);
    EVP_CIPHER_CTX_free(reading);
    EVP_CIPHER_CTX_free(writing);
    release(key), release(iv), release(aad), release(msg), release(ct), release(tag);
}

static void gcm(void)
{
    CHECK(each("aes_gcm", is_ours, gcm_one) >= 60);
}

static bool is_any(const json_t *group)
{
    (void)group;
    return true;
}

static void hkdf_one(const json_t *group, const json_t *test, bool valid)
{
    static uint8_t out[16384];
    (void)group;
    const cl_hkdf_input input = {from_hex(json_object_get(test, "ikm")), from_hex(json_object_get(test, "salt")),
                                 from_hex(json_object_get(test, "info"))};
    const cl_bytes wanted = from_hex(json_object_get(test, "okm"));
    size_t size = (size_t)number(test, "size");
    CHECK(size <= sizeof out);
    cl_code code = cl_hkdf(&algorithms, &input, out, size);
    CHECK(code == (valid ? CL_OK : CL_INTERNAL));
    CHECK(!valid || (wanted.size == size && memcmp(out, wanted.data, size) == 0));
    release(input.key), release(input.salt), release(input.info), release(wanted);
}

static void hkdf(void)
{
    CHECK(each("hkdf_sha256", is_any, hkdf_one) >= 80);
}

static bool is_mac(const json_t *group)
{
    return number(group, "keySize") == 256 && number(group, "tagSize") == 128;
}

/* Of messages of one block; the others are nothing that we could compute. */
static void cmac_one(const json_t *group, const json_t *test, bool valid)
{
    cl_block block;
    cl_block mac;
    (void)group;
    const cl_bytes key = from_hex(json_object_get(test, "key"));
    const cl_bytes msg = from_hex(json_object_get(test, "msg"));
    const cl_bytes tag = from_hex(json_object_get(test, "tag"));
    if (msg.size == sizeof block) {
        memcpy(block.bytes, msg.data, sizeof block);
        CHECK(cl_cmac_blocks(&algorithms, key.data, &block, 1, &mac) == CL_OK);
        CHECK((memcmp(mac.bytes, tag.data, sizeof mac) == 0) == valid);
    }
    release(key), release(msg), release(tag);
}

static void cmac(void)
{
    CHECK(each("aes_cmac", is_mac, cmac_one) >= 28);
}

/* A stream of SHAKE128, squeezed once: OpenSSL before 3.3 cannot go on. */
typedef struct stream {
    uint8_t *bytes;
    size_t at;
} stream;

static const uint8_t *take(stream *from, size_t size)
{
    const uint8_t *taken = from->bytes + from->at;
    from->at += size;
    return taken;
}

static void one_record(stream *from, EVP_MD_CTX *digest)
{
    uint8_t out[256 + CL_TAG_SIZE];
    uint8_t back[256];
    const uint8_t *key = take(from, CL_KEY_SIZE);
    const uint8_t *nonce = take(from, CL_NONCE_SIZE);
    size_t size = *take(from, 1);
    const uint8_t *text = take(from, size);
    size_t more = *take(from, 1);
    const cl_bytes aad = {take(from, more), more};
    EVP_CIPHER_CTX *writing = cl_cipher_new(&algorithms, key, nonce, true);
    EVP_CIPHER_CTX *reading = cl_cipher_new(&algorithms, key, nonce, false);
    const cl_aead_input plain = {nonce + CL_SALT_SIZE, {aad}, {text, size}};
    const cl_aead_input sealed = {nonce + CL_SALT_SIZE, {aad}, {out, size}};
    CHECK(cl_cipher_encrypt(writing, &plain, out) == CL_OK);
    CHECK(cl_cipher_decrypt(reading, &sealed, out + size, back) == CL_OK && memcmp(back, text, size) == 0);
    CHECK(EVP_DigestUpdate(digest, out, size + CL_TAG_SIZE) == 1);
    EVP_CIPHER_CTX_free(writing);
    EVP_CIPHER_CTX_free(reading);
}

static void accumulate(size_t records, const char *wanted)
{
    const size_t most = CL_KEY_SIZE + CL_NONCE_SIZE + 2 + 255 + 255;
    stream from = {malloc(records * most), 0};
    uint8_t sum[32];
    char text[65];
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    CHECK(EVP_DigestInit_ex(digest, EVP_shake128(), NULL) == 1);
    CHECK(EVP_DigestFinalXOF(digest, from.bytes, records * most) == 1);
    CHECK(EVP_DigestInit_ex(digest, EVP_shake128(), NULL) == 1);
    for (size_t i = 0; i < records; i++) {
        one_record(&from, digest);
    }
    CHECK(EVP_DigestFinalXOF(digest, sum, sizeof sum) == 1);
    for (size_t i = 0; i < sizeof sum; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", sum[i]);
    }
    if (!CHECK(strcmp(text, wanted) == 0)) {
        (void)fprintf(stderr, "  %s\n", text);
    }
    EVP_MD_CTX_free(digest);
    free(from.bytes);
}

/* A million takes some seconds and half a gigabyte: CL_XAES_MILLION=1, as in `make coverage`. */
static void accumulated(void)
{
    accumulate(10000, "e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939");
    if (getenv("CL_XAES_MILLION") != NULL) {
        accumulate(1000000, "2163ae1445985a30b60585ee67daa55674df06901b890593e824b8a7c885ab15");
    }
}

int main(void)
{
    if (cl_algorithms_open(&algorithms) != CL_OK) {
        return 1;
    }
    check_case("Wycheproof AES-GCM", gcm);
    check_case("Wycheproof HKDF-SHA256", hkdf);
    check_case("Wycheproof AES-CMAC", cmac);
    check_case("CL-ENV-022: XAES-256-GCM accumulated vectors", accumulated);
    cl_algorithms_close(&algorithms);
    return check_finish("wycheproof");
}
