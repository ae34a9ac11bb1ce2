/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "cleanup.h"
#include "glob.h"

static int out_of_range(const struct config_field *f, struct config_why *why)
{
	config_because(why, "out of range; allowed is %s..%s", f->low, f->high);
	return -EINVAL;
}

static int set_bool(
	const struct config_field *f, const char *value, void *at, struct config_why *why)
{
	(void)f;
	if (config_parse_bool(value, at) == 0)
		return 0;
	config_because(why, "write yes or no");
	return -EINVAL;
}

/* The bounds are constants of the table below, which its test walks through. */
static uint64_t duration_bound(const char *s)
{
	uint64_t usec = 0;

	(void)config_parse_duration(s, &usec);
	return usec;
}

static double percent_bound(const char *s)
{
	double share = 0;

	(void)config_parse_percent(s, &share);
	return share;
}

static uint64_t unsigned_bound(const char *s)
{
	uint64_t v = 0;

	(void)config_parse_unsigned(s, &v);
	return v;
}

static int set_duration(
	const struct config_field *f, const char *value, void *at, struct config_why *why)
{
	uint64_t usec;
	int r = config_parse_duration(value, &usec);

	if (r == -EINVAL) {
		config_because(why, "not a duration; write a number and us, ms, s, min, h or d "
				    "(a number alone is seconds)");
		return r;
	}
	if (r < 0 || usec < duration_bound(f->low) || usec > duration_bound(f->high))
		return out_of_range(f, why);
	*(uint64_t *)at = usec;
	return 0;
}

static int set_percent(
	const struct config_field *f, const char *value, void *at, struct config_why *why)
{
	double share;
	int r = config_parse_percent(value, &share);

	if (r == -EINVAL) {
		config_because(why, "not a share of time; write a percentage such as 10%%, "
				    "or a threshold over its window such as 200ms/2s");
		return r;
	}
	if (r < 0 && strchr(value, '/')) {
		config_because(why, "the threshold is longer than its window; at most all of it "
				    "can be lost to stalls");
		return -EINVAL;
	}
	if (r < 0 || share < percent_bound(f->low) || share > percent_bound(f->high))
		return out_of_range(f, why);
	*(double *)at = share;
	return 0;
}

/* "10s..600s" into two neighbouring members; one value alone is both ends.
 * @set reads one end, @size is a member's. */
static int set_ends(const struct config_field *f, const char *value, void *at, size_t size,
	int (*set)(const struct config_field *, const char *, void *, struct config_why *),
	struct config_why *why)
{
	const char *dots = strstr(value, "..");
	int len = dots ? (int)(dots - value) : (int)strlen(value);
	char first[CONFIG_LINE_BYTES_MAX + 1];
	int r;

	snprintf(first, sizeof(first), "%.*s", len, value);
	r = set(f, first, at, why);
	if (r < 0)
		return r;
	return set(f, dots ? dots + 2 : first, (char *)at + size, why);
}

static int set_duration_range(
	const struct config_field *f, const char *value, void *at, struct config_why *why)
{
	uint64_t ends[2];
	int r = set_ends(f, value, ends, sizeof(ends[0]), set_duration, why);

	if (r < 0)
		return r;
	if (ends[0] > ends[1]) {
		config_because(why, "the range runs backwards; write the shorter duration first");
		return -EINVAL;
	}
	memcpy(at, ends, sizeof(ends));
	return 0;
}

static int set_percent_range(
	const struct config_field *f, const char *value, void *at, struct config_why *why)
{
	double ends[2];
	int r = set_ends(f, value, ends, sizeof(ends[0]), set_percent, why);

	if (r < 0)
		return r;
	if (ends[0] > ends[1]) {
		config_because(why, "the range runs backwards; write the smaller share first");
		return -EINVAL;
	}
	memcpy(at, ends, sizeof(ends));
	return 0;
}

static int set_bytes(
	const struct config_field *f, const char *value, void *at, struct config_why *why)
{
	int r = config_parse_bytes(value, at);

	if (r == -EINVAL)
		config_because(why, "not an amount of memory; write a number and K, M or G, or 0");
	return r == -ERANGE ? out_of_range(f, why) : r;
}

static int set_unsigned(
	const struct config_field *f, const char *value, void *at, struct config_why *why)
{
	uint64_t v;
	int r = config_parse_unsigned(value, &v);

	if (r == -EINVAL) {
		config_because(why, "not a whole number; allowed is %s..%s", f->low, f->high);
		return r;
	}
	if (r < 0 || v < unsigned_bound(f->low) || v > unsigned_bound(f->high))
		return out_of_range(f, why);
	*(unsigned *)at = (unsigned)v;
	return 0;
}

static int set_name(
	const struct config_field *f, const char *value, void *at, struct config_why *why)
{
	const char *nearest = NULL;
	unsigned distance, best = UINT32_MAX;
	char list[64] = "";
	size_t len = 0;

	for (unsigned i = 0; f->names[i]; i++) {
		if (strcmp(value, f->names[i]) == 0) {
			*(unsigned *)at = i;
			return 0;
		}
		if (config_text_near(value, f->names[i], &distance) && distance < best) {
			nearest = f->names[i];
			best = distance;
		}
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
			i == 0 ? "" : f->names[i + 1] ? ", " : " or ", f->names[i]);
		if (len >= sizeof(list))
			len = sizeof(list) - 1;
	}
	if (nearest)
		config_because(why, "did you mean %s? (it takes %s)", nearest, list);
	else
		config_because(why, "write %s", list);
	return -EINVAL;
}

static int size_of(const char *value, struct config_size *ret, struct config_why *why)
{
	/* One of a list, so it is named; not cut, which could split a character. */
	const char *named = strlen(value) <= 32 ? value : "this";
	int r = config_parse_size(value, ret);

	if (r == -EINVAL)
		config_because(
			why, "%s is no folio size; write 64K, 2M, pmd, pmd/2 or smallest", named);
	else if (r == -ERANGE)
		config_because(why,
			"%s is no folio size; those are the powers of two from 4K to 16G "
			"(4K, 8K, 16K, 32K and so on), and pmd/4096 to pmd",
			named);
	return r < 0 ? -EINVAL : 0;
}

static int set_size(
	const struct config_field *f, const char *value, void *at, struct config_why *why)
{
	(void)f;
	return size_of(value, at, why);
}

/* "all", or a list with blanks or commas between. A later list replaces this. */
static int set_sizes(
	const struct config_field *f, const char *value, void *at, struct config_why *why)
{
	struct config *c = at;
	struct config_size sizes[CONFIG_SIZES_MAX];
	char list[CONFIG_LINE_BYTES_MAX + 1];
	unsigned n = 0;
	char *rest = NULL;

	(void)f;
	snprintf(list, sizeof(list), "%s", value);
	if (strcmp(value, "all") == 0) {
		c->all_sizes = true;
		c->n_sizes = 0;
		return 0;
	}
	for (char *s = strtok_r(list, ", \t", &rest); s; s = strtok_r(NULL, ", \t", &rest)) {
		if (strcmp(s, "all") == 0) {
			config_because(why, "'all' stands alone; take it out or the other sizes");
			return -EINVAL;
		}
		if (n == CONFIG_SIZES_MAX) {
			config_because(why, "more than %u sizes; write all", CONFIG_SIZES_MAX);
			return -EINVAL;
		}
		if (size_of(s, &sizes[n++], why) < 0)
			return -EINVAL;
	}
	if (n == 0) {
		config_because(why, "names no size; write all, or sizes such as 16K 64K pmd");
		return -EINVAL;
	}
	memcpy(c->sizes, sizes, n * sizeof(sizes[0]));
	c->n_sizes = n;
	c->all_sizes = false;
	return 0;
}

static int set_ptes(
	const struct config_field *f, const char *value, void *at, struct config_why *why)
{
	uint64_t v;
	int r = config_parse_unsigned(value, &v);

	if (strcmp(value, "baseline") == 0) {
		*(uint64_t *)at = CONFIG_PTES_BASELINE;
		return 0;
	}
	if (r == -EINVAL) {
		config_because(why, "write baseline or a number of page table entries, %s..%s",
			f->low, f->high);
		return r;
	}
	if (r < 0 || v > unsigned_bound(f->high))
		return out_of_range(f, why);
	*(uint64_t *)at = v;
	return 0;
}

/* Metrics are for this machine alone: whoever wants them elsewhere puts a proxy
 * with authentication before the socket. */
static int set_listen(
	const struct config_field *f, const char *value, void *at, struct config_why *why)
{
	static const char loopback[] = "127.0.0.1:";
	char **listen = at, *copy;
	uint64_t port;

	(void)f;
	if (*value == '/') {
		if (strlen(value) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
			config_because(why, "too long for a socket's path; at most %zu bytes",
				sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
			return -EINVAL;
		}
	} else if (*value) {
		const char *digits = value + sizeof(loopback) - 1;

		if (strncmp(value, loopback, sizeof(loopback) - 1) != 0 ||
			config_parse_unsigned(digits, &port) < 0 || port < 1 || port > 65535) {
			config_because(why, "write the path of a unix socket, "
					    "or 127.0.0.1: and a port of 1..65535");
			return -EINVAL;
		}
	}
	copy = *value ? strdup(value) : NULL;
	if (*value && !copy)
		return -ENOMEM;
	free(*listen);
	*listen = copy;
	return 0;
}

/* A blank that is not a set of its own is refused because Match=a b would be one pattern
 * that matches nothing where its author meant two. */
static const char *pattern_fault(const char *value)
{
	const char *wrong = glob_check(value);

	if (wrong)
		return wrong;
	for (const char *s = value; *s; s++)
		if ((*s == ' ' || *s == '\t') && (s == value || s[-1] != '[' || s[1] != ']'))
			return "one pattern for each Match=; a blank in a name is written [ ]";
	return NULL;
}

static int add_match(
	const struct config_field *f, const char *value, void *at, struct config_why *why)
{
	struct config_policy *p = at;
	const char *wrong;

	(void)f;
	if (!*value) {
		config_policy_clear_match(p);
		return 0;
	}
	wrong = pattern_fault(value);
	if (wrong) {
		config_because(why, "%s", wrong);
		return -EINVAL;
	}
	if (p->n_match == CONFIG_MATCH_MAX) {
		config_because(why, "more than %u patterns; use wildcards or a second policy",
			CONFIG_MATCH_MAX);
		return -EINVAL;
	}
	p->match[p->n_match] = strdup(value);
	if (!p->match[p->n_match])
		return -ENOMEM;
	p->n_match++;
	return 0;
}

/* In the order of the enums in config.h. */
static const char *const max_mode_names[] = {"inherit", "madvise", "always", NULL};
static const char *const foreign_names[] = {"adopt", "reassert", NULL};
static const char *const log_level_names[] = {"err", "warning", "info", "debug", NULL};

_Static_assert(sizeof(enum config_max_mode) == sizeof(unsigned), "set_name() writes an unsigned");
_Static_assert(
	offsetof(struct config_controller, hold_max_usec) ==
			offsetof(struct config_controller, hold_min_usec) + sizeof(uint64_t) &&
		offsetof(struct config_controller, settle_max_usec) ==
			offsetof(struct config_controller, settle_min_usec) + sizeof(uint64_t) &&
		offsetof(struct config_controller, density_high) ==
			offsetof(struct config_controller, density_low) + sizeof(double),
	"a range is written into both ends");

#define MEMBER(type, member)                                                                       \
	.offset = offsetof(struct type, member), .size = sizeof(((struct type *)0)->member)
#define FIELD(...) (&(const struct config_field){__VA_ARGS__})
#define GLOBAL(parser, member, ...)                                                                \
	FIELD(.parse = parser, .home = HOME_CONFIG, MEMBER(config, member), __VA_ARGS__)
#define POLICY(parser, member, ...)                                                                \
	FIELD(.parse = parser, .home = HOME_POLICY, MEMBER(config_policy, member), __VA_ARGS__)
#define RANGE(a, b) .low = a, .high = b

static const struct config_field pressure_high = {.parse = set_percent,
	.home = HOME_CONTROLLER,
	MEMBER(config_controller, pressure_high),
	RANGE("0.1%", "100%")};
static const struct config_field pressure_low = {.parse = set_percent,
	.home = HOME_CONTROLLER,
	MEMBER(config_controller, pressure_low),
	RANGE("0%", "100%")};
static const struct config_field drop_gain = {.parse = set_percent,
	.home = HOME_CONTROLLER,
	MEMBER(config_controller, drop_gain),
	RANGE("0%", "90%")};
static const struct config_field hold = {.parse = set_duration_range,
	.home = HOME_CONTROLLER,
	.offset = offsetof(struct config_controller, hold_min_usec),
	.size = 2 * sizeof(uint64_t),
	RANGE("1s", "1d")};
static const struct config_field settle = {.parse = set_duration_range,
	.home = HOME_CONTROLLER,
	.offset = offsetof(struct config_controller, settle_min_usec),
	.size = 2 * sizeof(uint64_t),
	RANGE("100ms", "10min")};
static const struct config_field density = {.parse = set_percent_range,
	.home = HOME_CONTROLLER,
	.offset = offsetof(struct config_controller, density_low),
	.size = 2 * sizeof(double),
	RANGE("1%", "100%")};
static const struct config_field small_group = {.parse = set_bytes,
	.home = HOME_CONTROLLER,
	MEMBER(config_controller, small_group_bytes),
	RANGE("0", "1024G")};
static const struct config_field max_changes = {.parse = set_unsigned,
	.home = HOME_CONTROLLER,
	MEMBER(config_controller, max_changes_per_hour),
	RANGE("1", "3600")};

/* The only list of keys: reading, defaults, suggestions and the tests of the
 * shipped files and the man page all go by it. */
static const struct config_key_info keys[] = {
	{"Daemon", "Interval", "1s", GLOBAL(set_duration, interval_usec, RANGE("100ms", "60s"))},
	/* The kernel's own upper bound; what it does not accept below, it says. */
	{"Daemon", "PsiWindow", "2s", GLOBAL(set_duration, psi_window_usec, RANGE("100ms", "10s"))},
	{"Daemon", "AuditInterval", "60s", GLOBAL(set_duration, audit_usec, RANGE("1s", "1h"))},
	{"Daemon", "DryRun", "no", GLOBAL(set_bool, dry_run)},
	{"Daemon", "LogLevel", "info", GLOBAL(set_name, log_level, .names = log_level_names)},
	{"Limits", "MaxMode", "inherit", GLOBAL(set_name, max_mode, .names = max_mode_names)},
	{"Limits", "Sizes", "all", FIELD(.parse = set_sizes, .home = HOME_CONFIG)},
	{"Limits", "MaxPtesNone", "baseline", GLOBAL(set_ptes, max_ptes_none, RANGE("0", "8191"))},
	{"Limits", "Defrag", "yes", GLOBAL(set_bool, defrag)},
	{"Limits", "Shmem", "no", GLOBAL(set_bool, shmem)},
	{"Limits", "PerGroup", "yes", GLOBAL(set_bool, per_group)},
	{"Limits", "ForeignChanges", "adopt", GLOBAL(set_name, foreign, .names = foreign_names)},
	{"Limits", "RestoreOnExit", "yes", GLOBAL(set_bool, restore_on_exit)},
	{"Controller", "PressureHigh", "10%", &pressure_high},
	{"Controller", "PressureLow", "2%", &pressure_low},
	{"Controller", "DropGain", "15%", &drop_gain},
	{"Controller", "Hold", "10s..600s", &hold},
	{"Controller", "Settle", "2s..30s", &settle},
	{"Controller", "Density", "65%..85%", &density},
	{"Controller", "SmallGroup", "0", &small_group},
	{"Controller", "MaxChangesPerHour", "60", &max_changes},
	{"Metrics", "Listen", "", GLOBAL(set_listen, metrics_listen)},
	{"Policy", "Match", NULL, FIELD(.parse = add_match, .home = HOME_POLICY)},
	{"Policy", "Controlled", "yes", POLICY(set_bool, controlled)},
	{"Policy", "Weight", "100", POLICY(set_unsigned, weight, RANGE("1", "10000"))},
	{"Policy", "MinSize", "4K",
		POLICY(set_size, min_size,
			.has_offset = offsetof(struct config_policy, has_min_size))},
	{"Policy", "MaxSize", "pmd",
		POLICY(set_size, max_size,
			.has_offset = offsetof(struct config_policy, has_max_size))},
	{"Policy", "Protect", "no", POLICY(set_bool, protect)},
	{"Policy", "MaxPtesNone", "baseline", POLICY(set_ptes, max_ptes_none, RANGE("0", "8191"))},
	{"Policy", "PressureHigh", "", &pressure_high},
	{"Policy", "PressureLow", "", &pressure_low},
	{"Policy", "DropGain", "", &drop_gain},
	{"Policy", "Hold", "", &hold},
	{"Policy", "Settle", "", &settle},
	{"Policy", "Density", "", &density},
	{"Policy", "SmallGroup", "", &small_group},
	{"Policy", "MaxChangesPerHour", "", &max_changes},
};

const struct config_key_info *config_keys(size_t *ret_n)
{
	*ret_n = ELEMENTSOF(keys);
	return keys;
}

bool config_key_is_match(const struct config_key_info *key)
{
	return key->field->parse == add_match;
}

bool config_key_inherits(const struct config_key_info *key)
{
	return key->field->home == HOME_CONTROLLER && strcmp(key->section, "Policy") == 0;
}

int config_key_set(
	const struct config_key_info *key, const char *value, void *base, struct config_why *why)
{
	const struct config_field *f = key->field;
	const char *text = *value || !key->default_text ? value : key->default_text;
	int r;

	if (!*text && config_key_inherits(key))
		return 0;
	r = f->parse(f, text, (char *)base + f->offset, why);
	if (r == 0 && f->has_offset > 0)
		*(bool *)((char *)base + f->has_offset) = *value != '\0';
	return r;
}
