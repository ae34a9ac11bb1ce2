/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "parse.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "cleanup.h"

#define LINE_MAX_BYTES 255

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_blanks(const char *s, const char *end)
{
	while (s < end && is_blank(*s))
		s++;
	return s;
}

static const char *skip_word(const char *s, const char *end)
{
	while (s < end && !is_blank(*s))
		s++;
	return s;
}

/* The line that starts at *@pos as [returned, *ret_end), *@pos moved behind
 * its newline; NULL at the end of the text. */
static const char *next_line(const char **pos, const char **ret_end)
{
	const char *start = *pos, *end;

	if (!*start)
		return NULL;
	end = strchrnul(start, '\n');
	*pos = *end ? end + 1 : end;
	*ret_end = end;
	return start;
}

static bool span_is(const char *s, const char *end, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(end - s) == n && memcmp(s, word, n) == 0;
}

/* The digits at *@pos, moved behind the last one. */
static int scan_u64(const char **pos, const char *end, uint64_t *ret)
{
	const char *s = *pos;
	uint64_t v = 0;

	if (s == end || !is_digit(*s))
		return -EINVAL;
	for (; s < end && is_digit(*s); s++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return -ERANGE;
	}
	*pos = s;
	*ret = v;
	return 0;
}

/* Nonblocking: a fifo in a fake tree must not stop the caller. */
static int open_for_reading(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

static ssize_t read_some(int fd, char *buf, size_t size)
{
	ssize_t n;

	do {
		n = read(fd, buf, size);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t parse_read_at(int dirfd, const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = open_for_reading(dirfd, path);
	size_t len = 0;

	if (fd < 0)
		return fd;
	while (len < size) {
		ssize_t n = read_some(fd, buf + len, size - len);

		if (n < 0)
			return n;
		if (n == 0) {
			buf[len] = '\0';
			return (ssize_t)len;
		}
		len += (size_t)n;
	}
	return -EFBIG;
}

ssize_t parse_read_attr_at(int dirfd, const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = open_for_reading(dirfd, path);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read_some(fd, buf, size);
	if (n < 0)
		return n;
	if ((size_t)n == size)
		return -EFBIG;
	buf[n] = '\0';
	return n;
}

int parse_u64(const char *s, uint64_t *ret)
{
	const char *end = s + strlen(s);
	uint64_t v;
	int r;

	s = skip_blanks(s, end);
	r = scan_u64(&s, end, &v);
	if (r < 0)
		return r;
	if (skip_blanks(s, end) != end)
		return -EINVAL;
	*ret = v;
	return 0;
}

int parse_limit(const char *s, uint64_t *ret)
{
	const char *end = s + strlen(s), *word = skip_blanks(s, end);
	uint64_t v;
	int r;

	if (span_is(word, skip_word(word, end), "max") && skip_blanks(word + 3, end) == end) {
		*ret = VALUE_MAX;
		return 0;
	}
	r = parse_u64(s, &v);
	if (r < 0)
		return r;
	/* The largest base page is 64 KiB, so this is 2^63 - 1 rounded down to any. */
	*ret = v >= VALUE_LIMIT - 64 * 1024 ? VALUE_MAX : v;
	return 0;
}

/* "12.34" as 1234, 0 if it is anything else: only shown, never decided on. */
static unsigned scan_centi(const char *s, const char *end)
{
	uint64_t whole, frac;
	const char *dot;

	if (scan_u64(&s, end, &whole) < 0 || end - s != 3 || *s != '.')
		return 0;
	dot = ++s;
	if (scan_u64(&s, end, &frac) < 0 || s - dot != 2 || whole > 100)
		return 0;
	return (unsigned)(whole * 100 + frac);
}

/* What follows "some" or "full" on a line; untouched when total= is unusable. */
static bool parse_psi_line(const char *s, const char *end, struct psi_line *ret)
{
	struct psi_line line = { .total_usec = VALUE_ABSENT };

	for (s = skip_blanks(s, end); s < end; s = skip_blanks(s, end)) {
		const char *word_end = skip_word(s, end), *value;
		uint64_t v;

		if (strncmp(s, "avg10=", 6) == 0) {
			line.avg10_centi = scan_centi(s + 6, word_end);
		} else if (strncmp(s, "total=", 6) == 0) {
			value = s + 6;
			if (scan_u64(&value, word_end, &v) < 0 || value != word_end)
				return false;
			line.total_usec = v;
		}
		s = word_end;
	}
	if (!value_known(line.total_usec))
		return false;
	*ret = line;
	return true;
}

int parse_psi(const char *buf, struct psi *ret)
{
	struct psi psi = { { VALUE_ABSENT, 0 }, { VALUE_ABSENT, 0 } };
	const char *line, *end;
	bool usable = false;

	while ((line = next_line(&buf, &end))) {
		const char *word_end = skip_word(line, end);

		if (span_is(line, word_end, "some"))
			usable |= parse_psi_line(word_end, end, &psi.some);
		else if (span_is(line, word_end, "full"))
			usable |= parse_psi_line(word_end, end, &psi.full);
	}
	if (!usable)
		return -EINVAL;
	*ret = psi;
	return 0;
}

static uint64_t *key_field(void *base, const struct flat_key *key)
{
	return (uint64_t *)(void *)((char *)base + key->offset);
}

/* Index of the key that is [s, end), or n_keys. Starts at @hint: the kernel's
 * order is the table's order nearly always, so a hit costs one comparison, and
 * a miss one comparison of first bytes per key. */
static size_t find_key(
	const char *s, const char *end, const struct flat_key *keys, size_t n_keys, size_t hint)
{
	size_t len = (size_t)(end - s);

	for (size_t i = 0; i < n_keys; i++) {
		size_t k = hint + i < n_keys ? hint + i : hint + i - n_keys;
		const char *name = keys[k].name;

		if (name[0] == s[0] && strncmp(name, s, len) == 0 && name[len] == '\0')
			return k;
	}
	return n_keys;
}

/* A number below 2^63, alone or followed by meminfo's unit; VALUE_ABSENT for
 * anything else. Some kernels print a negative count as a huge unsigned one. */
static uint64_t flat_value(const char *s, const char *end)
{
	uint64_t v;

	s = skip_blanks(s, end);
	if (scan_u64(&s, end, &v) < 0 || !value_known(v))
		return VALUE_ABSENT;
	if (s < end && !is_blank(*s))
		return VALUE_ABSENT;
	s = skip_blanks(s, end);
	if (s == end)
		return v;
	return span_is(s, skip_word(s, end), "kB") && skip_blanks(s + 2, end) == end ? v
										     : VALUE_ABSENT;
}

int parse_flat_keyed(const char *buf, const struct flat_key *keys, size_t n_keys, void *base)
{
	const char *line, *end;
	size_t hint = 0;
	int anomalies = 0;

	for (size_t i = 0; i < n_keys; i++)
		*key_field(base, &keys[i]) = VALUE_ABSENT;
	while ((line = next_line(&buf, &end))) {
		const char *value = skip_word(line, end), *key_end = value;
		uint64_t *field;
		size_t k;

		if (end - line > LINE_MAX_BYTES) {
			anomalies++;
			continue;
		}
		if (key_end > line && key_end[-1] == ':')
			key_end--;
		if (key_end == line)
			continue;
		k = find_key(line, key_end, keys, n_keys, hint);
		if (k == n_keys)
			continue;
		hint = k + 1 < n_keys ? k + 1 : 0;
		field = key_field(base, &keys[k]);
		if (*field != VALUE_ABSENT)
			anomalies++;
		*field = flat_value(value, end);
		if (*field == VALUE_ABSENT)
			anomalies++;
	}
	return anomalies;
}

/* Adds one token; brackets mark the selected one and are not part of it. */
static int choice_add(struct choice *c, const char *s, const char *end, unsigned *n_selected)
{
	bool selected = false;

	if (*s == '[') {
		if (end - s < 3 || end[-1] != ']')
			return -EINVAL;
		selected = true;
		s++;
		end--;
	}
	if (c->n == CHOICE_MAX || end - s >= CHOICE_LEN)
		return -EINVAL;
	for (const char *p = s; p < end; p++) {
		if (*p <= ' ' || *p > '~' || *p == '[' || *p == ']')
			return -EINVAL;
	}
	memcpy(c->token[c->n], s, (size_t)(end - s));
	if (selected) {
		c->selected = c->n;
		++*n_selected;
	}
	c->n++;
	return 0;
}

int parse_choice(const char *buf, struct choice *ret)
{
	struct choice c = { 0 };
	const char *end = buf + strlen(buf), *s = skip_blanks(buf, end);
	unsigned n_selected = 0;

	while (s < end) {
		const char *word_end = skip_word(s, end);
		int r = choice_add(&c, s, word_end, &n_selected);

		if (r < 0)
			return r;
		s = skip_blanks(word_end, end);
	}
	if (n_selected != 1)
		return -EINVAL;
	*ret = c;
	return 0;
}

const char *choice_value(const struct choice *c)
{
	return c->n > 0 ? c->token[c->selected] : NULL;
}

bool choice_lists(const struct choice *c, const char *token)
{
	for (unsigned i = 0; i < c->n; i++) {
		if (strcmp(c->token[i], token) == 0)
			return true;
	}
	return false;
}

/* "ID:controllers:path": true for any hierarchy. */
static bool is_proc_cgroup_line(const char *line, const char *end)
{
	uint64_t id;
	const char *s = line, *colon;

	if (scan_u64(&s, end, &id) < 0 || s == end || *s != ':')
		return false;
	colon = memchr(s + 1, ':', (size_t)(end - s - 1));
	return colon && colon + 1 < end && colon[1] == '/';
}

int parse_proc_cgroup(const char *buf, char *ret_path, size_t size)
{
	const char *line, *end;
	bool malformed = false;

	while ((line = next_line(&buf, &end))) {
		size_t len;

		if (!is_proc_cgroup_line(line, end)) {
			malformed = true;
			continue;
		}
		if (strncmp(line, "0::", 3) != 0)
			continue;
		len = (size_t)(end - line - 3);
		if (len >= size)
			return -ENAMETOOLONG;
		memcpy(ret_path, line + 3, len);
		ret_path[len] = '\0';
		return 0;
	}
	return malformed ? -EINVAL : -ENOENT;
}

/* Copies [s, end) with \ooo resolved (seq_path and seq_escape write nothing
 * else). False when it does not fit or would hold a NUL. */
static bool unescape_octal(const char *s, const char *end, char *out, size_t size)
{
	size_t len = 0;

	while (s < end) {
		char c = *s++;

		if (c == '\\' && end - s >= 3 && s[0] >= '0' && s[0] <= '3' && s[1] >= '0' &&
			s[1] <= '7' && s[2] >= '0' && s[2] <= '7') {
			c = (char)((s[0] - '0') << 6 | (s[1] - '0') << 3 | (s[2] - '0'));
			s += 3;
		}
		if (c == '\0' || len + 1 >= size)
			return false;
		out[len++] = c;
	}
	out[len] = '\0';
	return true;
}

static bool copy_span(const char *s, const char *end, char *out, size_t size)
{
	size_t len = (size_t)(end - s);

	if (len >= size)
		return false;
	memcpy(out, s, len);
	out[len] = '\0';
	return true;
}

struct mount_line {
	char mount_point[PATH_MAX];
	char fs_type[64];
	char super_options[PATH_MAX + 1]; /* the kernel takes up to a page of them */
};

/* ID PARENT MAJ:MIN ROOT MOUNT-POINT OPTIONS [TAG...] - TYPE SOURCE SUPER-OPTIONS */
static bool parse_mount_line(const char *s, const char *end, struct mount_line *m)
{
	const char *word_end;

	for (unsigned field = 1;; field++) {
		s = skip_blanks(s, end);
		word_end = skip_word(s, end);
		if (s == word_end)
			return false;
		if (field == 5 &&
			(*s != '/' ||
				!unescape_octal(s, word_end, m->mount_point, sizeof(m->mount_point))))
			return false;
		if (field > 6 && span_is(s, word_end, "-"))
			break;
		s = word_end;
	}
	s = skip_blanks(word_end, end);
	word_end = skip_word(s, end);
	if (s == word_end || !copy_span(s, word_end, m->fs_type, sizeof(m->fs_type)))
		return false;
	/* An empty source is printed as nothing at all, so the options are the
	 * last word, whichever number it has. */
	s = skip_blanks(word_end, end);
	word_end = skip_word(s, end);
	while (skip_blanks(word_end, end) < end) {
		s = skip_blanks(word_end, end);
		word_end = skip_word(s, end);
	}
	return s < word_end && copy_span(s, word_end, m->super_options, sizeof(m->super_options));
}

int parse_mountinfo(const char *buf, parse_mount_fn fn, void *userdata)
{
	struct mount_line m;
	const char *line, *end;

	while ((line = next_line(&buf, &end))) {
		int r;

		if (!parse_mount_line(line, end, &m))
			continue;
		r = fn(m.mount_point, m.fs_type, m.super_options, userdata);
		if (r != 0)
			return r;
	}
	return 0;
}

/* FILENAME TYPE SIZE USED PRIORITY, blanks in the name escaped. */
static int parse_swap_line(const char *s, const char *end, uint64_t *ret_size, uint64_t *ret_used)
{
	uint64_t number[2];
	int r;

	for (unsigned field = 0; field < 4; field++) {
		const char *word_end;

		s = skip_blanks(s, end);
		word_end = skip_word(s, end);
		if (field >= 2) {
			r = scan_u64(&s, word_end, &number[field - 2]);
			if (r < 0)
				return r;
		}
		if (s == end || (field >= 2 && s != word_end))
			return -EINVAL;
		s = word_end;
	}
	*ret_size = number[0];
	*ret_used = number[1];
	return 0;
}

int parse_swaps(const char *buf, uint64_t *ret_size_kb, uint64_t *ret_used_kb)
{
	uint64_t size = 0, used = 0, line_size, line_used;
	const char *line, *end;
	int r;

	while ((line = next_line(&buf, &end))) {
		if (skip_blanks(line, end) == end ||
			span_is(line, skip_word(line, end), "Filename"))
			continue;
		r = parse_swap_line(line, end, &line_size, &line_used);
		if (r < 0)
			return r;
		if (__builtin_add_overflow(size, line_size, &size) ||
			__builtin_add_overflow(used, line_used, &used))
			return -ERANGE;
	}
	if (!value_known(size) || !value_known(used))
		return -ERANGE;
	*ret_size_kb = size;
	*ret_used_kb = used;
	return 0;
}
