/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A group's own files in a trace: what stood there before mthpd, what stands there,
 * and in the state of the loop also what was wanted last and when it changed.
 */
#include "trace.h"

#include <errno.h>
#include <string.h>

#include "cleanup.h"
#include "trace-fields.h"

static bool put_values(json_t *j, const char *key, const struct own_values *v)
{
	json_t *values = json_object();
	bool ok = values != NULL;

	for (unsigned f = 0; ok && f < OWN_FILES; f++)
		if (*v->value[f])
			ok = trace_put(values, own_file_name[f], json_string(v->value[f]));
	if (ok)
		return trace_put(j, key, values);
	json_decref(values);
	return false;
}

static int get_values(const json_t *j, const char *key, struct own_values *v, struct trace_why *why)
{
	json_t *values;
	const char *text;

	if (trace_get_container(j, "own", key, JSON_OBJECT, true, &values, why) < 0)
		return -EBADMSG;
	memset(v, 0, sizeof(*v));
	for (unsigned f = 0; f < OWN_FILES; f++) {
		if (trace_get_string(values, "own", own_file_name[f], false, &text, why) < 0)
			return -EBADMSG;
		if (text && (strlen(text) >= OWN_VALUE_LEN || !own_value_valid(f, text)))
			return trace_fault(why, "own: %s cannot hold %.40s", own_file_name[f], text);
		if (text)
			memcpy(v->value[f], text, strlen(text) + 1);
	}
	return 0;
}

json_t *trace_own_json(const struct own *o)
{
	json_t *j = json_object();

	if (put_values(j, "base", &o->base) && put_values(j, "stands", &o->stands) &&
		(!own_differs(o) || put_values(j, "want", &o->want)))
		return j;
	json_decref(j);
	return NULL;
}

int trace_own_get(const json_t *j, struct own *o, struct trace_why *why)
{
	struct own got = *o;

	if (get_values(j, "base", &got.base, why) < 0 || get_values(j, "stands", &got.stands, why) < 0)
		return -EBADMSG;
	/* Left out where it is what stands. */
	got.want = got.stands;
	if (json_object_get(j, "want") && get_values(j, "want", &got.want, why) < 0)
		return -EBADMSG;
	*o = got;
	return 0;
}

json_t *trace_rate_json(const struct rate *r)
{
	json_t *j = json_array();
	bool ok = j != NULL;

	for (unsigned i = 0; ok && i < r->n; i++)
		ok = json_array_append_new(j, json_integer((json_int_t)r->times[i])) == 0;
	if (ok)
		return j;
	json_decref(j);
	return NULL;
}

int trace_rate_get(const json_t *object, const char *what, bool required, struct rate *r,
	struct trace_why *why)
{
	json_t *changes, *v;
	uint64_t last = 0;
	size_t i;

	if (trace_get_container(object, what, "changes_usec", JSON_ARRAY, required, &changes, why) < 0)
		return -EBADMSG;
	if (json_array_size(changes) > r->size)
		return trace_fault(why, "%s: more changes than the configuration allows in an hour", what);
	json_array_foreach(changes, i, v)
	{
		if (!json_is_integer(v) || json_integer_value(v) < 0 ||
			(uint64_t)json_integer_value(v) < last)
			return trace_fault(why, "%s: changes_usec are not times in their order", what);
		last = (uint64_t)json_integer_value(v);
		rate_note(r, last);
	}
	return 0;
}
