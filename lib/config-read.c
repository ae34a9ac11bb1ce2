/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config-internal.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void config_fault(struct config_loader *l, unsigned line, const char *format, ...)
{
	char message[2 * CONFIG_SHOWN_MAX + 256];
	va_list ap;

	l->n_faults++;
	if (!l->fn)
		return;
	va_start(ap, format);
	vsnprintf(message, sizeof(message), format, ap);
	va_end(ap);
	l->fn(l->file, line, message, l->userdata);
}

struct config_origin *config_origin_of(
	struct config_loader *l, size_t row, const struct config_key_info *key)
{
	return &l->origins[row * l->n_keys + (size_t)(key - l->keys)];
}

const struct config_key_info *config_find_key(
	const struct config_loader *l, const char *section, const char *name)
{
	for (size_t i = 0; i < l->n_keys; i++)
		if ((!section || strcmp(l->keys[i].section, section) == 0) &&
			strcmp(l->keys[i].key, name) == 0)
			return &l->keys[i];
	return NULL;
}

/* Sections */

static void unknown_section(struct config_loader *l, const char *name)
{
	char shown[CONFIG_SHOWN_MAX], word[CONFIG_LINE_BYTES_MAX + 1];
	const char *nearest = NULL;
	unsigned distance, best = UINT32_MAX;
	bool argument = strpbrk(name, " \t\"") != NULL;

	config_text_show(shown, name);
	if (strncasecmp(name, "kernel", strlen("kernel")) == 0) {
		config_fault(l, l->line,
			"unknown section [%s]; rules by kernel version are not built: "
			"what a kernel can do is detected",
			shown);
		return;
	}
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, " \t\""), name);
	for (size_t i = 0; i < l->n_keys; i++)
		if (config_text_near(argument ? word : name, l->keys[i].section, &distance) &&
			distance < best) {
			nearest = l->keys[i].section;
			best = distance;
		}
	if (!nearest)
		config_fault(l, l->line,
			"unknown section [%s]; there are [Daemon], [Limits], [Controller], "
			"[Metrics] and [Policy \"NAME\"]",
			shown);
	else if (strcmp(nearest, "Policy") == 0)
		config_fault(
			l, l->line, "unknown section [%s]; did you mean [Policy \"NAME\"]?", shown);
	else
		config_fault(
			l, l->line, "unknown section [%s]; did you mean [%s]?", shown, nearest);
}

/* The row of a policy's origins, made when the policy is new; 0 after a fault. */
static size_t policy_row(struct config_loader *l, const char *name)
{
	struct config_origin *grown;
	size_t row;

	for (unsigned i = 0; i < l->c->n_policies; i++)
		if (strcmp(l->c->policies[i].name, name) == 0)
			return i + 1;
	if (l->c->n_policies == CONFIG_POLICIES_MAX) {
		config_fault(l, l->line,
			"more than %u policies; let one policy match more groups, by "
			"wildcards or several Match= lines",
			CONFIG_POLICIES_MAX);
		return 0;
	}
	row = l->c->n_policies + 1;
	grown = reallocarray(l->origins, (row + 1) * l->n_keys, sizeof(*grown));
	if (grown) {
		l->origins = grown;
		memset(grown + row * l->n_keys, 0, l->n_keys * sizeof(*grown));
	}
	if (!grown || !config_add_policy(l->c, name, l->file, l->line)) {
		l->error = -ENOMEM;
		return 0;
	}
	return row;
}

/* What follows the word Policy in a section's brackets. */
static void begin_policy(struct config_loader *l, char *rest)
{
	char *name = rest + strspn(rest, " \t"), *end;
	size_t length = strlen(name);

	if (length < 2 || *name != '"' || name[length - 1] != '"') {
		config_fault(
			l, l->line, "a policy's section needs a name in quotes: [Policy \"NAME\"]");
		return;
	}
	end = name + length - 1;
	*end = '\0';
	name++;
	if (name == end || end - name > CONFIG_POLICY_NAME_MAX)
		config_fault(l, l->line, "a policy's name has 1 to %u bytes; this one has %zu",
			CONFIG_POLICY_NAME_MAX, (size_t)(end - name));
	else if (strpbrk(name, "\"[]") || !config_text_valid(name))
		config_fault(
			l, l->line, "a policy's name is valid UTF-8 without quotes or brackets");
	else
		l->row = policy_row(l, name);
	if (l->row > 0) {
		l->kind = SECTION_KEYS;
		l->section = "Policy";
	}
}

/* Sections are read here, not by libinih: that one says nothing of a section
 * without keys, cuts names at 49 bytes and overlooks what follows the ']'. */
static void begin_section(struct config_loader *l, char *line)
{
	char *end = line + strlen(line) - 1;
	const struct config_key_info *key = NULL;

	l->kind = SECTION_SKIPPED;
	l->row = 0;
	if (*end != ']') {
		config_fault(l, l->line, "%s",
			strchr(line, ']') ? "text after the ']' of a section"
					  : "a section without its closing ']'");
		return;
	}
	*end = '\0';
	line++;
	if (strncmp(line, "Policy", 6) == 0 && (!line[6] || strchr(" \t\"", line[6]))) {
		begin_policy(l, line + 6);
		return;
	}
	for (size_t i = 0; i < l->n_keys && !key; i++)
		if (strcmp(l->keys[i].section, line) == 0)
			key = &l->keys[i];
	if (!key) {
		unknown_section(l, line);
		return;
	}
	l->kind = SECTION_KEYS;
	l->section = key->section;
}

/* Lines */

/* What is wrong with a line that is neither blank nor a comment, NULL if
 * nothing. Catches all that libinih would read in another way than the reader
 * of the file expects: a colon as '=', a comment behind a value, a cut line. */
static const char *line_fault(const char *s, size_t size_max)
{
	size_t length = strlen(s), to_separator = strcspn(s, "=:");

	for (size_t i = 0; i < length; i++)
		if (((unsigned char)s[i] < 0x20 && s[i] != '\t') || s[i] == 0x7f)
			return "a control character in the line; remove it";
	if (length > size_max)
		return "a line of more than 199 bytes; shorten it (in a pattern, * stands for any "
		       "part "
		       "of a name)";
	if (s[length - 1] == '\\')
		return "a backslash at the end does not continue a line here; write it as one line";
	for (size_t i = 1; i < length; i++)
		if ((s[i] == '#' || s[i] == ';') && (s[i - 1] == ' ' || s[i - 1] == '\t'))
			return "a comment behind a value would be taken for a part of it; give it "
			       "a "
			       "line of its own";
	if (*s == '[')
		return NULL;
	if (s[to_separator] == ':')
		return "write '=' between key and value, not ':'";
	if (s[to_separator] != '=')
		return "neither [Section] nor Key=value";
	if (to_separator == 0)
		return "no key before the '='";
	return NULL;
}

_Static_assert(CONFIG_LINE_BYTES_MAX == 199, "line_fault() names the number");

/* libinih's reader: one line per call, so that l->line is right whenever the
 * handler is called (Debian's build hands no line numbers over). Indentation
 * goes, because libinih would take an indented line for a continuation. What
 * was dealt with here arrives there as a blank line. */
static char *next_line(char *out, int out_size, void *userdata)
{
	struct config_loader *l = userdata;
	const char *start = l->text, *newline;
	char line[CONFIG_LINE_BYTES_MAX + 2];
	const char *wrong;
	size_t length, size_max = (size_t)out_size - 1;

	if (l->left == 0 || l->error < 0)
		return NULL;
	newline = memchr(start, '\n', l->left);
	length = newline ? (size_t)(newline - start) : l->left;
	l->text += length + (newline ? 1 : 0);
	l->left -= length + (newline ? 1 : 0);
	l->line++;
	*out = '\0';
	if (memchr(start, '\0', length)) {
		config_fault(l, l->line,
			"a NUL byte: this is no text file; the rest of it was not read");
		l->left = 0;
		return out;
	}
	if (l->line == 1 && length >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0) {
		start += 3;
		length -= 3;
	}
	for (; length > 0 && strchr(" \t\r", *start); length--)
		start++;
	while (length > 0 && strchr(" \t\r", start[length - 1]))
		length--;
	if (length == 0 || *start == '#' || *start == ';')
		return out;
	if (size_max > CONFIG_LINE_BYTES_MAX)
		size_max = CONFIG_LINE_BYTES_MAX;
	/* One byte more than fits, so that a longer line is seen as such. */
	if (length > sizeof(line) - 1)
		length = sizeof(line) - 1;
	memcpy(line, start, length);
	line[length] = '\0';
	wrong = line_fault(line, size_max);
	if (wrong)
		config_fault(l, l->line, "%s", wrong);
	else if (*line == '[')
		begin_section(l, line);
	else
		memcpy(out, line, length + 1);
	return out;
}

/* Keys */

static void unknown_key(struct config_loader *l, const char *name)
{
	const struct config_key_info *nearest = NULL, *elsewhere = config_find_key(l, NULL, name);
	char shown[CONFIG_SHOWN_MAX], list[256] = "";
	unsigned distance, best = UINT32_MAX;

	config_text_show(shown, name);
	for (size_t i = 0; i < l->n_keys; i++) {
		const struct config_key_info *k = &l->keys[i];
		size_t used = strlen(list);

		if (strcmp(k->section, l->section) != 0)
			continue;
		snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "", k->key);
		if (config_text_near(name, k->key, &distance) && distance < best) {
			nearest = k;
			best = distance;
		}
	}
	if (elsewhere)
		config_fault(l, l->line, "unknown key '%s' in [%s]; it belongs in [%s]", shown,
			l->section, elsewhere->section);
	else if (nearest)
		config_fault(l, l->line, "unknown key '%s' in [%s]; did you mean %s?", shown,
			l->section, nearest->key);
	else
		config_fault(l, l->line, "unknown key '%s' in [%s], which takes %s", shown,
			l->section, list);
}

/* Why a value cannot be looked at at all. */
static const char *value_fault(const struct config_key_info *key, const char *value)
{
	size_t length = strlen(value);

	if (!config_key_is_match(key) && !config_text_valid(value))
		return "invalid UTF-8";
	if (length >= 2 && strchr("\"'", *value) && value[length - 1] == *value)
		return "quotes are not taken off; write the value without them";
	return NULL;
}

static void *base_of(struct config_loader *l, const struct config_key_info *key)
{
	struct config_policy *p = l->row > 0 ? &l->c->policies[l->row - 1] : NULL;

	switch (key->field->home) {
	case HOME_POLICY:
		return p;
	case HOME_CONTROLLER:
		return p ? &p->controller : &l->c->controller;
	case HOME_CONFIG:
	default:
		return l->c;
	}
}

/* libinih's handler. */
static int on_key(void *userdata, const char *ini_section, const char *name, const char *value)
{
	struct config_loader *l = userdata;
	const struct config_key_info *key;
	const char *wrong;
	struct config_why why = {""};
	struct config_origin *origin;
	char shown[CONFIG_SHOWN_MAX];
	int r;

	(void)ini_section;
	if (l->kind == SECTION_SKIPPED)
		return 1;
	if (l->kind == SECTION_NONE) {
		key = config_find_key(l, NULL, name);
		config_fault(l, l->line, "'%s' stands before any section; put a line [%s] above it",
			config_text_show(shown, name), key ? key->section : "Daemon");
		return 1;
	}
	key = config_find_key(l, l->section, name);
	if (!key) {
		unknown_key(l, name);
		return 1;
	}
	wrong = value_fault(key, value);
	if (wrong)
		config_because(&why, "%s", wrong);
	r = wrong ? -EINVAL : config_key_set(key, value, base_of(l, key), &why);
	origin = config_origin_of(l, l->row, key);
	if (r == -ENOMEM) {
		l->error = r;
	} else if (r < 0) {
		config_fault(
			l, l->line, "%s=%s: %s", name, config_text_show(shown, value), why.text);
		*origin = (struct config_origin){l->file, l->line, true};
	} else if (!*value && config_key_inherits(key)) {
		*origin = (struct config_origin){NULL, 0, false};
	} else {
		*origin = (struct config_origin){l->file, l->line, false};
	}
	return 1;
}

void config_read_text(struct config_loader *l, const char *text, size_t length)
{
	int r;

	l->text = text;
	l->left = length;
	l->line = 0;
	l->kind = SECTION_NONE;
	l->row = 0;
	r = ini_parse_stream(next_line, l, on_key, l);
	if (r == -2)
		l->error = -ENOMEM;
	else if (r > 0)
		config_fault(l, (unsigned)r, "this line cannot be read");
}
