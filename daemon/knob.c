/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "knob.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"

/* Every choice file lists at most CHOICE_MAX short tokens; 4096 = PAGE_SIZE,
 * the most that a sysfs attribute can show on the common page size. */
#define KNOB_TEXT_MAX 4097
/* So much of a text is shown to people: the longest choice file has 60 bytes. */
#define QUOTE_LEN 72

/* khugepaged works harder, or huge pages stay whole longer, the larger the
 * number is, except where smaller means less rest or less splitting. */
static const struct number_knob {
	const char *path;
	bool less_is_riskier;
} numbers[] = {
	{"shrink_underused", true},
	{"khugepaged/defrag", false},
	{"khugepaged/max_ptes_none", false},
	{"khugepaged/max_ptes_swap", false},
	{"khugepaged/max_ptes_shared", false},
	{"khugepaged/pages_to_scan", false},
	{"khugepaged/scan_sleep_millisecs", true},
	{"khugepaged/alloc_sleep_millisecs", true},
};

/* All choice files in one list, from the least risky token to the most. */
static const char *const strength[] = {"deny", "never", "advise", "defer", "madvise",
	"defer+madvise", "within_size", "inherit", "always", "force"};

static const struct number_knob *find_number(const char *path)
{
	for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
		if (!strcmp(path, numbers[i].path))
			return &numbers[i];
	return NULL;
}

/* "hugepages-<n>kB/", n as the kernel prints it. Returns what follows, or NULL. */
static const char *skip_size_directory(const char *path)
{
	static const char prefix[] = "hugepages-", suffix[] = "kB/";
	size_t digits;

	if (strncmp(path, prefix, strlen(prefix)))
		return NULL;
	path += strlen(prefix);
	digits = strspn(path, "0123456789");
	/* 2^40 KiB and more is no folio */
	if (!digits || digits > 12 || path[0] == '0')
		return NULL;
	path += digits;
	return strncmp(path, suffix, strlen(suffix)) ? NULL : path + strlen(suffix);
}

enum knob_kind knob_kind(const char *path)
{
	const char *file = skip_size_directory(path);

	if (!file && !strcmp(path, "defrag"))
		return KNOB_CHOICE;
	if (!file)
		file = path;
	if (!strcmp(file, "enabled") || !strcmp(file, "shmem_enabled"))
		return KNOB_CHOICE;
	return find_number(path) ? KNOB_NUMBER : KNOB_NONE;
}

static bool is_token(const char *s, size_t len)
{
	return len > 0 && len < CHOICE_LEN && strspn(s, "abcdefghijklmnopqrstuvwxyz_+") >= len;
}

bool knob_value_valid(const char *path, const char *value)
{
	size_t len = strlen(value);
	uint64_t n;

	switch (knob_kind(path)) {
	case KNOB_CHOICE:
		return is_token(value, len);
	case KNOB_NUMBER:
		return strspn(value, "0123456789") == len && (value[0] != '0' || len == 1) &&
		       parse_u64(value, &n) == 0;
	default:
		return false;
	}
}

void knob_known_add(struct choice *known, const char *token)
{
	if (known->n == CHOICE_MAX || !is_token(token, strlen(token)) || choice_lists(known, token))
		return;
	snprintf(known->token[known->n++], CHOICE_LEN, "%s", token);
}

/* See knob_read(): the text of a plain file that stands in for a choice file. */
static int select_bare_word(const char *text, struct choice *known)
{
	size_t len;

	text += strspn(text, " \t\n");
	len = strcspn(text, " \t\n");
	if (!is_token(text, len) || text[len + strspn(text + len, " \t\n")])
		return -EINVAL;
	for (unsigned i = 0; i < known->n; i++) {
		if (strlen(known->token[i]) == len && !strncmp(known->token[i], text, len)) {
			known->selected = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int read_choice(const char *text, struct choice *known, char *ret_value)
{
	struct choice now;
	int r = parse_choice(text, &now);

	if (r < 0 && known) {
		now = *known;
		r = select_bare_word(text, &now);
	}
	if (r < 0)
		return -EINVAL;
	snprintf(ret_value, KNOB_VALUE_LEN, "%s", now.token[now.selected]);
	if (known)
		*known = now;
	return 0;
}

int knob_read(int thp_fd, const char *path, struct choice *known, char ret_value[KNOB_VALUE_LEN])
{
	enum knob_kind kind = knob_kind(path);
	char text[KNOB_TEXT_MAX];
	uint64_t n;
	ssize_t len;

	if (kind == KNOB_NONE)
		return -EINVAL;
	len = parse_read_at(thp_fd, path, text, sizeof(text));
	if (len < 0)
		return len == -EFBIG ? -EINVAL : (int)len;
	/* a NUL byte would hide what follows it */
	if (strlen(text) != (size_t)len)
		return -EINVAL;
	if (kind == KNOB_CHOICE)
		return read_choice(text, known, ret_value);
	if (parse_u64(text, &n) < 0)
		return -EINVAL;
	snprintf(ret_value, KNOB_VALUE_LEN, "%" PRIu64, n);
	return 0;
}

static size_t rank_of(const char *token)
{
	size_t i = 0;

	while (i < ELEMENTSOF(strength) && strcmp(token, strength[i]))
		i++;
	return i;
}

bool knob_usable(const char *path, const struct choice *known)
{
	return knob_kind(path) == KNOB_NUMBER ||
	       (choice_lists(known, "never") && rank_of(choice_value(known)) < ELEMENTSOF(strength));
}

/* The beginning of the text of a file that is not understood, for people. */
static void quote(int thp_fd, const char *path, char ret[QUOTE_LEN])
{
	char text[KNOB_TEXT_MAX];
	ssize_t len = parse_read_at(thp_fd, path, text, sizeof(text));
	size_t n = 0;

	if (len < 0) {
		snprintf(ret, QUOTE_LEN, "too much");
		return;
	}
	while (len > 0 && strchr(" \n", text[len - 1]))
		len--;
	ret[n++] = '"';
	for (ssize_t i = 0; i < len && n < QUOTE_LEN - 5; i++)
		ret[n++] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	snprintf(ret + n, QUOTE_LEN - n, "%s\"", (size_t)len > n - 1 ? "..." : "");
}

const char *knob_trouble(
	int thp_fd, const char *path, const struct choice *known, char ret[KNOB_TROUBLE_LEN])
{
	struct choice now = known ? *known : (struct choice){0};
	char value[KNOB_VALUE_LEN], quoted[QUOTE_LEN];
	int r = knob_read(thp_fd, path, &now, value);

	ret[0] = '\0';
	if (r == -ENOENT || r == -ENODEV || (r == 0 && knob_usable(path, &now)))
		return ret;
	quote(thp_fd, path, quoted);
	if (r == -EINVAL)
		snprintf(ret, KNOB_TROUBLE_LEN, "%s is not understood (it holds %s): it is left alone", path,
			quoted);
	else if (r < 0)
		snprintf(ret, KNOB_TROUBLE_LEN, "%s cannot be read (%s): it is left alone", path, strerror(-r));
	else if (!choice_lists(&now, "never"))
		snprintf(ret, KNOB_TROUBLE_LEN, "%s does not list \"never\" (it holds %s): it is left alone",
			path, quoted);
	else
		snprintf(ret, KNOB_TROUBLE_LEN,
			"%s holds a word that mthpd does not know (%s): it is left alone", path, quoted);
	return ret;
}

bool knob_denied(int error)
{
	return error == -EROFS || error == -EACCES || error == -EPERM;
}

int knob_write(int thp_fd, const char *path, const char *value)
{
	char now[KNOB_VALUE_LEN];
	size_t len = strlen(value);
	_cleanup_close_ int fd = -1;
	ssize_t n;
	int r;

	if (!knob_value_valid(path, value))
		return -EINVAL;
	/* O_TRUNC means nothing to sysfs; a plain file would keep its old tail. */
	fd = openat(thp_fd, path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	n = write(fd, value, len);
	r = n < 0 ? -errno : -EIO;
	if (n >= 0 && (size_t)n == len)
		return 0;
	return knob_read(thp_fd, path, NULL, now) == 0 && !strcmp(now, value) ? 0 : r;
}

bool knob_raises(const char *path, const char *from, const char *to)
{
	const struct number_knob *number = find_number(path);
	uint64_t a, b;

	if (!number)
		return rank_of(to) > rank_of(from);
	if (parse_u64(from, &a) < 0 || parse_u64(to, &b) < 0)
		return true;
	return number->less_is_riskier ? b < a : b > a;
}
