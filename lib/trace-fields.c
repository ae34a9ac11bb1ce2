/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace-fields.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reason.h"

int trace_fault(struct trace_why *why, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why->text, sizeof(why->text), format, ap);
	va_end(ap);
	return -EBADMSG;
}

bool trace_put(json_t *object, const char *key, json_t *value)
{
	return object && value && json_object_set_new(object, key, value) == 0;
}

static json_t *value_json(uint64_t v)
{
	return v == VALUE_MAX ? json_string("max") : json_integer((json_int_t)v);
}

static json_t *real_json(double v)
{
	char buf[40];

	snprintf(buf, sizeof(buf), "%.17g", v);
	return json_string(buf);
}

static bool put_one(json_t *object, const struct trace_field *f, const void *at)
{
	uint64_t v;

	switch (f->type) {
	case FIELD_VALUE:
		v = *(const uint64_t *)at;
		return (v != VALUE_MAX && !value_known(v)) || trace_put(object, f->name, value_json(v));
	case FIELD_UINT:
		return trace_put(object, f->name, json_integer(*(const unsigned *)at));
	case FIELD_BOOL:
		return !*(const bool *)at || trace_put(object, f->name, json_true());
	case FIELD_REAL:
		return trace_put(object, f->name, real_json(*(const double *)at));
	case FIELD_SIGNED:
		return trace_put(object, f->name, json_integer(*(const int64_t *)at));
	case FIELD_REASON:
		return trace_put(object, f->name,
			json_string(reason_word(*(const enum reason *)at)));
	}
	return false;
}

bool trace_fields_put(json_t *object, const struct trace_field *f, size_t n, const void *base)
{
	for (size_t i = 0; i < n; i++)
		if (!put_one(object, &f[i], (const char *)base + f[i].offset))
			return false;
	return true;
}

/* ---- reading ----------------------------------------------------------- */

/* NULL when missing or null; then *ret says whether that is a fault. */
static const json_t *find(const json_t *object, const char *what, const char *key, bool required,
	int *ret, struct trace_why *why)
{
	const json_t *v = json_object_get(object, key);

	*ret = 0;
	if (v && !json_is_null(v))
		return v;
	if (required)
		*ret = trace_fault(why, "%s: %s is missing", what, key);
	return NULL;
}

static int get_integer(const json_t *v, const char *what, const char *key, uint64_t limit,
	uint64_t *ret, struct trace_why *why)
{
	if (json_is_real(v))
		return trace_fault(why, "%s: %s is not a whole number", what, key);
	if (!json_is_integer(v))
		return trace_fault(why, "%s: %s is not a number", what, key);
	if (json_integer_value(v) < 0)
		return trace_fault(why, "%s: %s is negative", what, key);
	*ret = (uint64_t)json_integer_value(v);
	if (*ret > limit)
		return trace_fault(why, "%s: %s is out of range", what, key);
	return 0;
}

int trace_get_value(const json_t *object, const char *what, const char *key, bool required,
	uint64_t *ret, struct trace_why *why)
{
	int r;
	const json_t *v = find(object, what, key, required, &r, why);

	if (!v) {
		*ret = VALUE_ABSENT;
		return r;
	}
	if (json_is_string(v) && !strcmp(json_string_value(v), "max")) {
		*ret = VALUE_MAX;
		return 0;
	}
	return get_integer(v, what, key, VALUE_LIMIT - 1, ret, why);
}

int trace_get_string(const json_t *object, const char *what, const char *key, bool required,
	const char **ret, struct trace_why *why)
{
	int r;
	const json_t *v = find(object, what, key, required, &r, why);

	*ret = json_string_value(v);
	if (v && !*ret)
		return trace_fault(why, "%s: %s is not a string", what, key);
	return r;
}

int trace_get_bool(const json_t *object, const char *what, const char *key, bool *ret,
	struct trace_why *why)
{
	int r;
	const json_t *v = find(object, what, key, false, &r, why);

	if (v && !json_is_boolean(v))
		return trace_fault(why, "%s: %s is neither true nor false", what, key);
	*ret = json_is_true(v);
	return 0;
}

int trace_get_container(const json_t *object, const char *what, const char *key, json_type type,
	bool required, json_t **ret, struct trace_why *why)
{
	int r;
	const json_t *v = find(object, what, key, required, &r, why);

	if (v && json_typeof(v) != type)
		return trace_fault(why, "%s: %s is not %s", what, key,
			type == JSON_ARRAY ? "an array" : "an object");
	*ret = (json_t *)v;
	return r;
}

static int get_real(const json_t *v, const char *what, const char *key, double *ret,
	struct trace_why *why)
{
	const char *s = json_string_value(v);
	char *end;

	if (!s)
		return trace_fault(why, "%s: %s is not a string with a number", what, key);
	*ret = strtod(s, &end);
	if (end == s || *end || !isfinite(*ret))
		return trace_fault(why, "%s: %s is not a finite number", what, key);
	return 0;
}

static int get_reason(const json_t *v, const char *what, const char *key, enum reason *ret,
	struct trace_why *why)
{
	const char *s = json_string_value(v);

	for (unsigned i = 0; s && i < REASON_MAX; i++)
		if (!strcmp(s, reason_word((enum reason)i))) {
			*ret = (enum reason)i;
			return 0;
		}
	return trace_fault(why, "%s: %s is not a reason that this version knows", what, key);
}

static int get_one(const json_t *object, const char *what, const struct trace_field *f, void *at,
	struct trace_why *why)
{
	const json_t *v;
	uint64_t n = 0;
	int r;

	if (f->type == FIELD_VALUE)
		return trace_get_value(object, what, f->name, f->required, at, why);
	if (f->type == FIELD_BOOL)
		return trace_get_bool(object, what, f->name, at, why);
	v = find(object, what, f->name, f->required, &r, why);
	if (f->type == FIELD_UINT) {
		if (v)
			r = get_integer(v, what, f->name, f->limit, &n, why);
		if (r == 0)
			*(unsigned *)at = (unsigned)n;
		return r;
	}
	if (f->type == FIELD_REAL) {
		*(double *)at = 0;
		return v ? get_real(v, what, f->name, at, why) : r;
	}
	if (f->type == FIELD_SIGNED) {
		*(int64_t *)at = json_integer_value(v);
		return !v || json_is_integer(v) ? r :
			trace_fault(why, "%s: %s is not a whole number", what, f->name);
	}
	*(enum reason *)at = REASON_NONE;
	return v ? get_reason(v, what, f->name, at, why) : r;
}

int trace_fields_get(const json_t *object, const char *what, const struct trace_field *f, size_t n,
	void *base, struct trace_why *why)
{
	if (!json_is_object(object))
		return trace_fault(why, "%s is not an object", what);
	for (size_t i = 0; i < n; i++) {
		int r = get_one(object, what, &f[i], (char *)base + f[i].offset, why);

		if (r < 0)
			return r;
	}
	return 0;
}
