/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "trace.h"

const struct decision *history_add(struct history *h, const struct decision *d)
{
	struct decision *slot = &h->ring[h->n % HISTORY_MAX];

	*slot = *d;
	slot->number = ++h->n;
	return slot;
}

const struct decision *history_get(const struct history *h, uint64_t back)
{
	if (back >= h->n || back >= HISTORY_MAX)
		return NULL;
	return &h->ring[(h->n - 1 - back) % HISTORY_MAX];
}

void history_set_group(struct decision *d, const char *path)
{
	size_t n = strlen(path);

	if (n < sizeof(d->group)) {
		memcpy(d->group, path, n + 1);
		return;
	}
	memcpy(d->group, "...", 3);
	memcpy(d->group + 3, path + n - (sizeof(d->group) - 4), sizeof(d->group) - 3);
}

json_t *json_from_bytes(const char *s)
{
	json_t *j = trace_bytes_json(s);

	return j ? j : json_null();
}

json_t *json_from_value(uint64_t v)
{
	return value_known(v) ? json_integer((json_int_t)v) : json_null();
}

json_t *json_from_share(double v)
{
	return v >= 0 ? json_real(v) : json_null();
}

json_t *decision_to_json(const struct decision *d)
{
	return json_pack("{s:I, s:I, s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:i}",
		"number", (json_int_t)d->number, "realtime_usec", (json_int_t)d->realtime_usec,
		"knob", d->knob, "old", d->old_value, "new", d->new_value,
		"reason", reason_word(d->reason), "reason_text", reason_text(d->reason),
		"cgroup", *d->group ? json_from_bytes(d->group) : json_null(), "outcome", d->outcome,
		"some", json_from_share(d->some), "full", json_from_share(d->full),
		"margin_bytes", json_from_value(d->margin_bytes),
		"refault_anon_per_sec", json_from_value(d->refault_per_sec), "others", (int)d->others);
}

static void append(char *buf, size_t size, const char *format, ...)
{
	size_t n = strlen(buf);
	va_list ap;

	va_start(ap, format);
	vsnprintf(buf + n, size - n, format, ap);
	va_end(ap);
}

/* " (some 71 %, ...)": what is known. */
static void put_numbers(const struct decision *d, char *buf, size_t size)
{
	*buf = '\0';
	if (d->some >= 0)
		append(buf, size, ", some %.0f %%, full %.0f %%", d->some * 100, d->full < 0 ? 0 : d->full * 100);
	if (value_known(d->refault_per_sec))
		append(buf, size, ", %" PRIu64 " refaults/s", d->refault_per_sec);
	if (value_known(d->margin_bytes))
		append(buf, size, ", margin %.1f MiB", (double)d->margin_bytes / 1048576);
	if (!*buf)
		return;
	memcpy(buf, " (", 2);
	append(buf, size, ")");
}

void decision_to_text(const struct decision *d, char *buf, size_t size)
{
	char numbers[160];

	put_numbers(d, numbers, sizeof(numbers));
	snprintf(buf, size, "%s: %s -> %s, %s%s%s%s%s%s", d->knob, d->old_value, d->new_value,
		reason_word(d->reason), *d->group ? ", " : "", d->group, numbers,
		!strcmp(d->outcome, "written") ? "" : " ", !strcmp(d->outcome, "written") ? "" :
		!strcmp(d->outcome, "dry-run") ? "[dry run: not written]" :
		!strcmp(d->outcome, "read-only") ? "[read-only: would write]" : "[refused]");
}
