/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl-status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ctl-text.h"

static const json_t *get(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

static const char *word(const json_t *object, const char *key)
{
	return json_string_value(get(object, key));
}

static const char *word_or(const json_t *object, const char *key, const char *otherwise)
{
	const char *s = word(object, key);

	return s ? s : otherwise;
}

/* ---- head ---- */

static void print_head(FILE *f, const json_t *status)
{
	const json_t *degraded = get(status, "degraded");

	fputs("mthpd ", f);
	ctl_put_line(f, word_or(status, "version", "-"));
	fputs("   state: ", f);
	ctl_put_line(f, word_or(status, "state", "-"));
	fputs("   Linux ", f);
	ctl_put_line(f, word_or(get(status, "kernel"), "release", "-"));
	fputc('\n', f);
	if (word(status, "hold")) {
		fputs("Held, nothing is changed:\n", f);
		ctl_put_wrapped(f, 2, word(status, "hold"));
	}
	if (json_array_size(degraded) > 0)
		fputs("Degraded:\n", f);
	for (size_t i = 0; i < json_array_size(degraded); i++) {
		const char *why = json_string_value(json_array_get(degraded, i));
		char *text = NULL;

		if (asprintf(&text, "- %s", why ? why : "?") < 0)
			return;
		ctl_put_wrapped(f, 2, text);
		free(text);
	}
}

/* ---- sizes and other switches ---- */

/* Reasons that need no sentence: nothing has happened. */
static bool needs_prose(const char *reason)
{
	return reason && strcmp(reason, "start-values") != 0 && strcmp(reason, "none") != 0 &&
	       strcmp(reason, "not-managed") != 0;
}

/* One sentence per reason of @list, not one per row. */
static void print_reasons(FILE *f, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);
		const char *reason = word(o, "reason"), *text = word(o, "reason_text");
		bool said = false;

		for (size_t k = 0; k < i && reason && !said; k++)
			said = !strcmp(word_or(json_array_get(list, k), "reason", ""), reason);
		if (said || !needs_prose(reason) || !text)
			continue;
		fputs("  ", f);
		ctl_put_line(f, reason);
		fputs(":\n", f);
		ctl_put_wrapped(f, 4, text);
		if (word(o, "cgroup")) {
			char *name = ctl_quote(word(o, "cgroup"));

			fprintf(f, "    cause: %s\n", name ? name : "-");
			free(name);
		}
	}
}

static bool differs(const json_t *object)
{
	const json_t *wanted = get(object, "wanted"), *actual = get(object, "actual");

	return wanted && actual && !json_is_null(wanted) && !json_is_null(actual) &&
	       !json_equal(wanted, actual);
}

static void print_sizes(FILE *f, const json_t *status)
{
	static const char *const keys[] = {
		"baseline", "actual", "effective", "wanted", "shmem_effective", "reason"};
	struct ctl_table t = {.columns = 7, .elastic = 6, .right = 1};
	const json_t *sizes = get(status, "sizes");
	unsigned drift = 0;

	if (json_array_size(sizes) == 0)
		return;
	ctl_table_add(&t, "SIZE");
	ctl_table_add(&t, "BASELINE");
	ctl_table_add(&t, "ACTUAL");
	ctl_table_add(&t, "EFFECTIVE");
	ctl_table_add(&t, "WANTED");
	ctl_table_add(&t, "SHMEM");
	ctl_table_add(&t, "REASON");
	for (size_t i = 0; i < json_array_size(sizes); i++) {
		const json_t *size = json_array_get(sizes, i);
		char kb[CTL_HUMAN_LEN];

		ctl_human_kb(get(size, "size_kb"), kb);
		ctl_table_add(&t, kb);
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
			ctl_table_add(&t, word(size, keys[k]));
		drift += differs(size);
	}
	fputc('\n', f);
	ctl_table_print(f, &t);
	ctl_table_done(&t);
	print_reasons(f, sizes);
	if (drift > 0)
		fprintf(f, "  %u not as wanted: see mthpctl verify\n", drift);
}

static void add_switch(struct ctl_table *t, const char *name, const json_t *o)
{
	static const char *const keys[] = {"baseline", "actual", "wanted", "reason"};
	char buf[CTL_HUMAN_LEN];

	ctl_table_add(t, name);
	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
		ctl_table_add(t, ctl_scalar(get(o, keys[k]), buf));
}

/* The numbers of khugepaged that the loop leaves alone. */
static void print_untouched(FILE *f, json_t *khugepaged)
{
	char text[512] = "", buf[CTL_HUMAN_LEN];
	const char *key;
	json_t *value;
	size_t n = 0;

	json_object_foreach(khugepaged, key, value)
		if (json_is_integer(value) && n < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %s", n ? ", " : "left alone: ",
				key, ctl_scalar(value, buf));
	if (n)
		ctl_put_wrapped(f, 2, text);
}

/* The switches that the loop may turn have an object of values each. */
static void print_switches(FILE *f, const json_t *status)
{
	struct ctl_table t = {.columns = 5, .elastic = 4};
	json_t *khugepaged = json_object_get(status, "khugepaged"), *value;
	const char *key;

	ctl_table_add(&t, "KHUGEPAGED");
	ctl_table_add(&t, "BASELINE");
	ctl_table_add(&t, "ACTUAL");
	ctl_table_add(&t, "WANTED");
	ctl_table_add(&t, "REASON");
	json_object_foreach(khugepaged, key, value)
	{
		if (json_is_object(value))
			add_switch(&t, key, value);
	}
	if (json_is_object(get(status, "defrag")))
		add_switch(&t, "(faults) defrag", get(status, "defrag"));
	if (t.n_cells > t.columns) {
		fputc('\n', f);
		ctl_table_print(f, &t);
		print_untouched(f, khugepaged);
	}
	ctl_table_done(&t);
}

/* ---- groups ---- */

struct row {
	const json_t *group;
};

/* For sorting: what is not known is the least bad. */
static double share(const json_t *group, const char *key)
{
	const json_t *v = get(group, key);

	return json_is_number(v) ? json_number_value(v) : -1;
}

static double margin(const json_t *group)
{
	const json_t *v = get(group, "margin_bytes");

	return json_is_number(v) ? json_number_value(v) : INFINITY;
}

static int compare(double a, double b)
{
	return (a > b) - (a < b);
}

static int worse_first(const void *pa, const void *pb)
{
	const json_t *a = ((const struct row *)pa)->group, *b = ((const struct row *)pb)->group;
	int r = compare(share(b, "some"), share(a, "some"));

	if (r == 0)
		r = compare(share(b, "full"), share(a, "full"));
	if (r == 0)
		r = compare(margin(a), margin(b));
	if (r == 0)
		r = strcmp(word_or(a, "path", ""), word_or(b, "path", ""));
	return r;
}

static bool is_none(const json_t *kb)
{
	return json_is_number(kb) && json_number_value(kb) == 0; /* single pages only */
}

static void human_size(const json_t *kb, char human[CTL_HUMAN_LEN])
{
	ctl_human_kb(kb, human);
	if (is_none(kb))
		snprintf(human, CTL_HUMAN_LEN, "none");
}

/* "r2 64K", "r0 2M, wants none"; "-" where the group is not steered. */
static void size_text(const json_t *group, char *ret, size_t size)
{
	const json_t *rung = get(group, "rung"), *kb = get(group, "max_size_kb");
	const json_t *wanted = get(group, "max_size_wanted_kb");
	bool none = is_none(kb);
	char human[CTL_HUMAN_LEN], other[CTL_HUMAN_LEN], text[2 * CTL_HUMAN_LEN + sizeof(", wants ")];

	human_size(kb, human);
	if (json_is_number(wanted) && json_number_value(wanted) != json_number_value(kb)) {
		human_size(wanted, other);
		snprintf(text, sizeof(text), "%s, wants %s", human, other);
	} else {
		snprintf(text, sizeof(text), "%s", human);
	}
	/* With none a rung above the lowest would say that there are some. */
	if (json_is_integer(rung) && json_integer_value(rung) >= 0 && !(none && json_integer_value(rung) > 0))
		snprintf(
			ret, size, "r%" JSON_INTEGER_FORMAT " %s", json_integer_value(rung), text);
	else
		snprintf(ret, size, "%s", text);
}

/* Only a kernel with files for each group has more to tell. */
static bool has_own(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (json_is_object(get(rows[i].group, "own")))
			return true;
	return false;
}

static void add_own(struct ctl_table *t, const json_t *group)
{
	const json_t *own = get(group, "own");
	const char *gate = word_or(own, "gate", "-"), *wanted = word_or(own, "gate_wanted", gate);
	char used[CTL_HUMAN_LEN], text[32];

	ctl_human_share(get(own, "density"), used);
	ctl_table_add(t, used);
	/* What is so, with the wish beside it where that is another. */
	snprintf(text, sizeof(text), strcmp(gate, wanted) != 0 ? "%.8s, wants %.8s" : "%.8s", gate, wanted);
	ctl_table_add(t, json_is_object(own) ? text : NULL);
}

static void add_group(struct ctl_table *t, const json_t *group, bool own)
{
	char some[CTL_HUMAN_LEN], full[CTL_HUMAN_LEN], room[CTL_HUMAN_LEN], size[64];
	const char *path = word(group, "path");

	ctl_human_share(get(group, "some"), some);
	ctl_human_share(get(group, "full"), full);
	ctl_human_bytes(get(group, "margin_bytes"), room);
	size_text(group, size, sizeof(size));
	ctl_table_add(t, path && !*path ? "(root)" : path);
	ctl_table_add(t, some);
	ctl_table_add(t, full);
	ctl_table_add(t, room);
	ctl_table_add(t, size);
	if (own)
		add_own(t, group);
	ctl_table_add(t, word(group, "state"));
}

/* "3.1k"; false for none. */
static bool counted(const json_t *counters, const char *key, char *ret)
{
	const json_t *v = get(counters, key);

	ctl_human_count(v, ret);
	return json_is_integer(v) && json_integer_value(v) > 0;
}

/* What the kernel counted for the group since it was made; no line without events. */
static void print_own_counters(FILE *f, const json_t *group)
{
	const json_t *counters = get(get(group, "own"), "counters");
	char text[512] = "", count[CTL_HUMAN_LEN];
	size_t n = 0;

	for (size_t i = 0; i < CTL_REFUSALS; i++)
		if (counted(counters, ctl_refusals[i].key, count))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s %s",
				n ? "," : "large folios refused:", count, ctl_refusals[i].where);
	if (counted(counters, "split_avoided", count))
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%skept whole, as swap had no room: %s",
			n ? "; " : "", count);
	if (n)
		ctl_put_wrapped(f, 4, text);
}

static void print_sorted(FILE *f, const struct row *rows, size_t n)
{
	bool own = has_own(rows, n);
	struct ctl_table t = {.columns = own ? 8 : 6, .elastic = 0, .right = own ? 2 | 4 | 8 | 32 : 2 | 4 | 8};

	ctl_table_add(&t, "GROUP");
	ctl_table_add(&t, "SOME");
	ctl_table_add(&t, "FULL");
	ctl_table_add(&t, "MARGIN");
	ctl_table_add(&t, "SIZE");
	if (own) {
		ctl_table_add(&t, "USED");
		ctl_table_add(&t, "GATE");
	}
	ctl_table_add(&t, "STATE");
	for (size_t i = 0; i < n; i++)
		add_group(&t, rows[i].group, own);
	ctl_table_print_row(f, &t, 0);
	for (size_t i = 0; i < n; i++) {
		const char *text =
			word_or(rows[i].group, "reason_text", word(rows[i].group, "reason"));

		ctl_table_print_row(f, &t, i + 1);
		if (text)
			ctl_put_wrapped(f, 4, text);
		print_own_counters(f, rows[i].group);
	}
	ctl_table_done(&t);
}

static void print_groups(FILE *f, const json_t *status, size_t max_groups)
{
	const json_t *list = get(status, "cgroups"), *omitted = get(status, "cgroups_omitted");
	size_t n = json_array_size(list), shown = n < max_groups ? n : max_groups;
	struct row *rows = calloc(n + 1, sizeof(*rows));
	json_int_t more;

	if (!rows)
		return;
	for (size_t i = 0; i < n; i++)
		rows[i].group = json_array_get(list, i);
	qsort(rows, n, sizeof(*rows), worse_first);
	fputc('\n', f);
	if (n == 0)
		fputs("No memory cgroups.\n", f);
	else if (shown > 0)
		print_sorted(f, rows, shown);
	free(rows);
	more = (json_int_t)(n - shown);
	if (json_is_integer(omitted) && json_integer_value(omitted) > 0)
		more += json_integer_value(omitted);
	if (more > 0)
		fprintf(f, "and %" JSON_INTEGER_FORMAT " more (mthpctl status -n N, or --json)\n",
			more);
}

/* ---- foot ---- */

static void print_swap(FILE *f, const json_t *status)
{
	const json_t *swap = get(status, "swap");
	char used[CTL_HUMAN_LEN], size[CTL_HUMAN_LEN];

	if (!json_is_object(swap))
		return;
	ctl_human_kb(get(swap, "used_kb"), used);
	ctl_human_kb(get(swap, "size_kb"), size);
	fprintf(f, "Swap: %s of %s used, ", used, size);
	ctl_put_line(f, word_or(swap, "state", "-"));
	fputc('\n', f);
}

/* Mounts with a huge= option of their own ignore shmem_enabled. */
static void print_tmpfs(FILE *f, const json_t *status)
{
	const json_t *list = get(status, "tmpfs_own_huge"), *mount;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	fputs("Outside of mthpd's control (tmpfs with its own huge= option):\n", f);
	json_array_foreach(list, i, mount) {
		fputs("  ", f);
		ctl_put_line(f, word(mount, "mount"));
		fputs(" huge=", f);
		ctl_put_line(f, word(mount, "huge"));
		fputc('\n', f);
	}
}

static void print_counters(FILE *f, const json_t *status)
{
	static const struct {
		const char *key, *name;
	} counters[] = {
		{"decisions", "Decisions"},
		{"writes", "writes"},
		{"write_errors", "failed"},
		{"foreign_changes", "foreign changes"},
		{"cgroups_seen", "groups seen"},
		{"wakeups", "wake-ups"},
	};
	const json_t *o = get(status, "counters"), *cpu = get(o, "cpu_usec");
	char text[512], buf[CTL_HUMAN_LEN];
	size_t n = 0;

	if (!json_is_object(o))
		return;
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		const char *value = ctl_scalar(get(o, counters[i].key), buf);

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %.24s", i ? ", " : "",
			counters[i].name, value ? value : "-");
	}
	if (json_is_number(cpu))
		snprintf(text + n, sizeof(text) - n, ", CPU %.3g s", json_number_value(cpu) / 1e6);
	ctl_put_wrapped(f, 0, text);
}

void ctl_status_print(FILE *f, const json_t *status, size_t max_groups)
{
	print_head(f, status);
	print_sizes(f, status);
	print_switches(f, status);
	print_groups(f, status, max_groups);
	fputc('\n', f);
	print_swap(f, status);
	print_tmpfs(f, status);
	print_counters(f, status);
}
