/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names that say nothing: each component of a path becomes a keyed hash of
 * itself. The key is drawn anew for each file and kept nowhere, so that names
 * cannot be guessed and tried.
 */
#include "trace.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "trace-fields.h"

static uint64_t rotate(uint64_t v, int n)
{
	return v << n | v >> (64 - n);
}

static void sip_rounds(uint64_t v[4], int n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static uint64_t little_word(const unsigned char *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return le64toh(w);
}

uint64_t trace_siphash(const unsigned char key[16], const void *data, size_t len)
{
	uint64_t k0 = little_word(key), k1 = little_word(key + 8);
	uint64_t v[4] = { k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
		k1 ^ 0x7465646279746573 };
	const unsigned char *p = data;
	uint64_t last = (uint64_t)len << 56, w;

	for (size_t left = len; left >= 8; left -= 8, p += 8) {
		w = little_word(p);
		v[3] ^= w;
		sip_rounds(v, 2);
		v[0] ^= w;
	}
	for (size_t i = 0; i < len % 8; i++)
		last |= (uint64_t)p[i] << (8 * i);
	v[3] ^= last;
	sip_rounds(v, 2);
	v[0] ^= last;
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- names ------------------------------------------------------------- */

static const char *const suffixes[] = { ".service", ".scope", ".slice", ".socket", ".mount", ".swap" };

static void put_hash(FILE *f, const unsigned char *salt, const char *name, size_t len)
{
	const char *suffix = "";

	for (size_t i = 0; i < ELEMENTSOF(suffixes); i++) {
		size_t n = strlen(suffixes[i]);

		if (len > n && !memcmp(name + len - n, suffixes[i], n))
			suffix = suffixes[i];
	}
	/* 40 bits: shorter to read, and two names of ten thousand meet in 1 file of 20,000. */
	fprintf(f, "g%010" PRIx64 "%s", trace_siphash(salt, name, len) >> 24, suffix);
}

/* Each piece between the bytes of @cut. */
static char *hash_pieces(const unsigned char *salt, const char *path, const char *cut)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	while (f && *path) {
		size_t n = strcspn(path, cut);

		if (n > 0)
			put_hash(f, salt, path, n);
		path += n;
		if (*path)
			fputc(*path++, f);
	}
	if (f && fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static bool replace(json_t *object, const char *key, const unsigned char *salt, const char *cut)
{
	const char *old = json_string_value(json_object_get(object, key));
	_cleanup_free_ char *hashed = old ? hash_pieces(salt, old, cut) : NULL;

	return !old || (hashed && trace_put(object, key, json_string(hashed)));
}

/* [Policy "name"] and Match= lines of a configuration. A pattern is replaced as
 * a whole, with a slash in front that no path has: it matches nothing. */
static char *hash_config(const unsigned char *salt, const char *config)
{
	static const char policy[] = "[Policy \"", match[] = "Match=";
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	while (f && *config) {
		size_t n = strcspn(config, "\n"), from = sizeof(policy) - 1;

		if (!strncmp(config, policy, from) && n > from + 2) {
			fputs(policy, f);
			put_hash(f, salt, config + from, n - from - 2);
			fputs("\"]", f);
		} else if (!strncmp(config, match, sizeof(match) - 1)) {
			fputs(match, f);
			put_hash(f, salt, config, n);
		} else {
			fwrite(config, 1, n, f);
		}
		config += n;
		if (*config)
			fputc(*config++, f);
	}
	if (f && fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static bool hash_groups(json_t *groups, const unsigned char *salt)
{
	json_t *g;
	size_t i;

	json_array_foreach(groups, i, g)
		if (!replace(g, "path", salt, "/") || !replace(g, "policy", salt, ""))
			return false;
	return true;
}

bool trace_anonymize(json_t *record, const unsigned char salt[TRACE_SALT_BYTES])
{
	const char *config = json_string_value(json_object_get(record, "config"));
	json_t *state = json_object_get(record, "state");

	if (config) {
		_cleanup_free_ char *hashed = hash_config(salt, config);

		if (!hashed || !trace_put(record, "config", json_string(hashed)))
			return false;
	}
	if (json_object_get(record, "format") && !trace_put(record, "anonymized", json_true()))
		return false;
	return replace(record, "cgroup", salt, "/") && hash_groups(json_object_get(record, "groups"), salt) &&
	       hash_groups(json_object_get(state, "groups"), salt);
}
