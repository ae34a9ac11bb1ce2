/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the parts of the configuration share. config-load.c finds the files and
 * judges the whole, config-read.c reads one text (sections, lines, faults),
 * config-keys.c has the table of keys and sets a value, config-units.c parses
 * it, config-text.c helps to word messages, config.c is the model. Included by
 * these six and by nobody else.
 */
#ifndef MTHPD_CONFIG_INTERNAL_H
#define MTHPD_CONFIG_INTERNAL_H

#include "config.h"

/* Why a value was refused, as the end of a sentence "Key=value: ...". */
struct config_why {
	char text[192];
};
__attribute__((format(printf, 2, 3))) void config_because(
	struct config_why *why, const char *format, ...);

/* Which structure a field lives in. */
enum config_home { HOME_CONFIG, HOME_CONTROLLER, HOME_POLICY };

struct config_field {
	/* 0, -EINVAL with @why filled, or -ENOMEM. @at is base + offset. */
	int (*parse)(
		const struct config_field *f, const char *value, void *at, struct config_why *why);
	enum config_home home;
	size_t offset, size;	  /* of the member in its home */
	size_t has_offset;	  /* bool "written in a file", 0 = none */
	const char *low, *high;	  /* range, in the words of the configuration */
	const char *const *names; /* of an enum, NULL-terminated, in its order */
};

/* Sets the key to @value, or to its default when that is empty. @base is the
 * home of the field. Errors as for parse; the old value stands then. */
int config_key_set(
	const struct config_key_info *key, const char *value, void *base, struct config_why *why);
/* Whether the key adds up (Match=) and takes any bytes. */
bool config_key_is_match(const struct config_key_info *key);
/* Whether a policy that does not set the key takes it from [Controller]. */
bool config_key_inherits(const struct config_key_info *key);
/* Appends a policy with its defaults. NULL on ENOMEM; *c keeps its policies. */
struct config_policy *config_add_policy(
	struct config *c, const char *name, const char *file, unsigned line);
void config_policy_clear_match(struct config_policy *p);

/* Single values: the eight words for a boolean, in any case; a whole number in
 * decimal digits. Errors as config_parse_duration(). */
int config_parse_bool(const char *s, bool *ret);
int config_parse_unsigned(const char *s, uint64_t *ret);

/* Whether @s is UTF-8 without control characters other than tab. */
bool config_text_valid(const char *s);
/* @s for a message: itself when valid, else with every odd byte as \xNN. */
#define CONFIG_SHOWN_MAX ((size_t)4 * (CONFIG_LINE_BYTES_MAX + 1))
const char *config_text_show(char shown[CONFIG_SHOWN_MAX], const char *s);
/* Edit distance without regard to case, a swap of neighbours counting as one;
 * 1 when @typed is a beginning of @known of four letters or more. */
unsigned config_text_distance(const char *typed, const char *known);

/* Reading */

/* Where a key was last set; no file = not at all. @bad: to something refused,
 * so that nothing can be said about how it goes with other keys. */
struct config_origin {
	const char *file;
	unsigned line;
	bool bad;
};

enum config_section_kind { SECTION_NONE, SECTION_SKIPPED, SECTION_KEYS };

struct config_loader {
	struct config *c;
	config_fault_fn fn;
	void *userdata;
	unsigned n_faults;
	int error; /* -ENOMEM: stop */
	const struct config_key_info *keys;
	size_t n_keys;
	/* Rows of n_keys: the first for the plain sections, then one for each policy. */
	struct config_origin *origins;
	/* The text that is being read, and where. */
	const char *file, *text;
	size_t left;
	unsigned line;
	enum config_section_kind kind;
	const char *section; /* as in the table of keys */
	size_t row;	     /* of origins */
};

/* Reports a fault in l->file. */
__attribute__((format(printf, 3, 4))) void config_fault(
	struct config_loader *l, unsigned line, const char *format, ...);
struct config_origin *config_origin_of(
	struct config_loader *l, size_t row, const struct config_key_info *key);
/* By section (NULL = any, the first) and name. NULL = none. */
const struct config_key_info *config_find_key(
	const struct config_loader *l, const char *section, const char *name);
/* Reads one text as the file l->file, on top of what was read before. */
void config_read_text(struct config_loader *l, const char *text, size_t length);

#endif
