/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lines of a trace: bounded, whole, of a known kind. */
#include "trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "trace-fields.h"

struct trace_reader {
	FILE *f;
	char *buf;
	size_t size;
	uint64_t line;
	bool torn, ended, had_header;
};

static const char *const kinds[] = { "header", "tick", "decision", "end" };

struct trace_reader *trace_reader_new(FILE *f)
{
	struct trace_reader *r = calloc(1, sizeof(*r));

	if (r)
		r->f = f;
	return r;
}

void trace_reader_free(struct trace_reader *r)
{
	if (r)
		free(r->buf);
	free(r);
}

uint64_t trace_line(const struct trace_reader *r)
{
	return r->line;
}

bool trace_torn(const struct trace_reader *r)
{
	return r->torn;
}

static int grow(struct trace_reader *r)
{
	size_t n = r->size ? r->size * 2 : 16384;
	char *p = realloc(r->buf, n);

	if (!p)
		return -ENOMEM;
	r->buf = p;
	r->size = n;
	return 0;
}

/* The next line without its newline: 1, 0 at the end, or an error. *ret_whole:
 * it had a newline. */
static int next_line(struct trace_reader *r, size_t *ret_len, bool *ret_whole, struct trace_why *why)
{
	size_t n = 0;
	int c;

	while ((c = getc_unlocked(r->f)) != EOF && c != '\n') {
		if (n == TRACE_LINE_BYTES_MAX)
			return trace_fault(why, "the line is longer than %zu MiB",
				TRACE_LINE_BYTES_MAX / (1024 * 1024));
		if (n == r->size && grow(r) < 0)
			return -ENOMEM;
		r->buf[n++] = (char)c;
	}
	if (c == EOF && ferror(r->f)) {
		snprintf(why->text, sizeof(why->text), "cannot be read");
		return -EIO;
	}
	*ret_len = n;
	*ret_whole = c == '\n';
	return n > 0 || c == '\n';
}

/* Brackets outside of strings; keeps jansson's recursion short. */
static bool depth_within(const char *s, size_t len)
{
	unsigned depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		if (in_string) {
			if (s[i] == '\\')
				i++;
			else if (s[i] == '"')
				in_string = false;
		} else if (s[i] == '"') {
			in_string = true;
		} else if (s[i] == '{' || s[i] == '[') {
			if (++depth > TRACE_DEPTH_MAX)
				return false;
		} else if ((s[i] == '}' || s[i] == ']') && depth > 0) {
			depth--;
		}
	}
	return true;
}

static int kind_of(const struct trace_reader *r, const json_t *j, enum trace_kind *ret,
	struct trace_why *why)
{
	const char *word = json_string_value(json_object_get(j, "kind"));
	size_t k = 0;

	while (k < ELEMENTSOF(kinds) && (!word || strcmp(word, kinds[k]) != 0))
		k++;
	if (!r->had_header && k != TRACE_HEADER)
		return trace_fault(why, "this is not a trace of mthpd: it does not begin with a header");
	if (!word)
		return trace_fault(why, "kind is missing");
	if (k == ELEMENTSOF(kinds))
		return trace_fault(why, "unknown kind of line: %.40s", word);
	if (r->had_header && k == TRACE_HEADER)
		return trace_fault(why, "a second header: these are two traces");
	*ret = (enum trace_kind)k;
	return 0;
}

static int parse_line(struct trace_reader *r, size_t len, bool whole, json_t **ret,
	enum trace_kind *ret_kind, struct trace_why *why)
{
	json_error_t e;
	json_t *j;
	int k;

	if (!depth_within(r->buf, len))
		return trace_fault(why, "nested more than %d deep", TRACE_DEPTH_MAX);
	j = json_loadb(r->buf, len, JSON_REJECT_DUPLICATES, &e);
	if (!j && !whole && r->had_header) {
		r->torn = r->ended = true;
		return 0;
	}
	if (!j)
		return r->had_header || (len >= 7 && !memcmp(r->buf, "{\"kind\"", 7)) ?
			       trace_fault(why, "not JSON: %s (byte %d)", e.text, e.position) :
			       trace_fault(why, "this is not a trace of mthpd (not JSON: %s)", e.text);
	k = json_is_object(j) ? kind_of(r, j, ret_kind, why) :
				trace_fault(why, "not a JSON object");
	if (k < 0) {
		json_decref(j);
		return k;
	}
	r->had_header = true;
	*ret = j;
	return 1;
}

int trace_read(struct trace_reader *r, json_t **ret, enum trace_kind *ret_kind, struct trace_why *why)
{
	size_t len = 0;
	bool whole = false;
	int n;

	if (r->ended)
		return 0;
	why->line = ++r->line;
	n = next_line(r, &len, &whole, why);
	if (n > 0)
		n = parse_line(r, len, whole, ret, ret_kind, why);
	if (n == 0 && !r->had_header) {
		why->line = 0;
		n = trace_fault(why, "the file is empty");
	}
	r->ended |= n <= 0;
	return n;
}

char *trace_line_text(const json_t *record, size_t *ret_len)
{
	char *s = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(9));
	size_t n = s ? strlen(s) : 0;
	char *with = s ? realloc(s, n + 2) : NULL;

	if (!with) {
		free(s);
		return NULL;
	}
	with[n] = '\n';
	with[n + 1] = '\0';
	*ret_len = n + 1;
	return with;
}
