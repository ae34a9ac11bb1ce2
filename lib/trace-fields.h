/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Structures as JSON objects, by tables of their members: one table serves
 * writing, reading and the checks of what was read. Called by the other
 * trace-*.c only. A number that is absent is left out, VALUE_MAX is "max";
 * real numbers are strings of 17 digits, so that they survive a wire that
 * rounds.
 */
#ifndef MTHPD_TRACE_FIELDS_H
#define MTHPD_TRACE_FIELDS_H

#include <jansson.h>
#include <stddef.h>

#include "trace.h"

enum trace_type {
	FIELD_VALUE,  /* uint64_t of value.h, absent = not in the object */
	FIELD_UINT,   /* unsigned, or an enum without negative values: 0..limit */
	FIELD_BOOL,   /* left out when false */
	FIELD_REAL,   /* finite double */
	FIELD_SIGNED, /* int64_t */
	FIELD_REASON, /* enum reason, as its word */
};

struct trace_field {
	const char *name;
	enum trace_type type;
	size_t offset;
	unsigned limit;
	bool required;
};

/* Adds the members to @object; false on ENOMEM. */
bool trace_fields_put(
	json_t *object, const struct trace_field *f, size_t n, const void *base);
/* Sets all members from @object (what is missing: absent, 0, false). 0 or
 * -EBADMSG with @why: "WHAT: KEY is negative". @base may be half-filled then. */
int trace_fields_get(const json_t *object, const char *what, const struct trace_field *f, size_t n,
	void *base, struct trace_why *why);

/* One member by itself. @required: missing or null is a fault, else the result
 * is VALUE_ABSENT or NULL. */
int trace_get_value(const json_t *object, const char *what, const char *key, bool required,
	uint64_t *ret, struct trace_why *why);
int trace_get_string(const json_t *object, const char *what, const char *key, bool required,
	const char **ret, struct trace_why *why);
int trace_get_bool(const json_t *object, const char *what, const char *key, bool *ret,
	struct trace_why *why);
/* An object or an array; NULL when missing or null and not required. */
int trace_get_container(const json_t *object, const char *what, const char *key, json_type type,
	bool required, json_t **ret, struct trace_why *why);

/* Fills @why (the line is the reader's to say) and returns -EBADMSG. */
int trace_fault(struct trace_why *why, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* False when @value (stolen) or @object could not be made. */
bool trace_put(json_t *object, const char *key, json_t *value);

#endif
