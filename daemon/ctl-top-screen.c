/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "ctl-text.h"
#include "ctl-top.h"

/* Below these heights the sizes, then the line about trouble, are left out. */
#define HEIGHT_ALL 12
#define HEIGHT_TROUBLE 6
#define SIZE_COLUMN 9
#define SOME_BAR 8
#define FULL_BAR 6
/* Columns of a row: the bars with their shares and a blank, margin and size. */
#define SOME_COLUMNS (SOME_BAR + 6)
#define FULL_COLUMNS (FULL_BAR + 6)
#define OTHER_COLUMNS (6 + 1 + 5 + 1)
/* "used of its large folios, in percent", where the kernel says so. */
#define USED_COLUMNS 5
/* Large folios refused, and kept whole: counts of at most 5 characters. */
#define COUNT_COLUMNS 6
#define REASON_COLUMNS 18
#define NAME_COLUMNS_MIN 12
#define NAME_COLUMNS_MAX 40
/* Narrower than this: without the second bar; wider: the reason as a sentence. */
#define WIDTH_FULL 72
/* The counts are shown from here on; the bars give way to their shares below this. */
#define WIDTH_COUNTS 78
#define WIDTH_COUNTS_BARS 96
#define WIDTH_SENTENCE 110

struct screen {
	FILE *f;
	unsigned width, height, row; /* height 0: no end */
	bool own; /* some group has files of its own: how much of its large folios is used */
};

enum attribute { PLAIN, BOLD, REVERSE };

static const char *const sort_names[TOP_SORTS] = {"stall", "margin", "anon", "name"};

static const json_t *get(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

static const char *word(const json_t *object, const char *key)
{
	const char *s = json_string_value(get(object, key));

	return s ? s : "-";
}

static bool full(const struct screen *s)
{
	return s->height > 0 && s->row >= s->height;
}

/* One line, cut to the width; what a terminal would obey is escaped. */
static void put(struct screen *s, enum attribute a, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void put(struct screen *s, enum attribute a, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	unsigned n = 0;
	int r;

	va_start(ap, format);
	r = vasprintf(&text, format, ap);
	va_end(ap);
	if (r < 0) {
		text = NULL;
		return;
	}
	if (full(s))
		return;
	if (s->height > 0 && s->row > 0)
		fputs("\r\n", s->f);
	if (s->height > 0 && a != PLAIN)
		fputs(a == BOLD ? "\033[1m" : "\033[7m", s->f);
	for (const char *c = text; *c && n < s->width; c++, n++)
		fputc(*c >= 0x20 && *c <= 0x7e ? *c : '?', s->f);
	if (s->height == 0)
		fputc('\n', s->f);
	else if (a == REVERSE)
		fprintf(s->f, "%*s\033[0m", (int)(s->width - n), "");
	else
		fprintf(s->f, "\033[0m%s", n < s->width ? "\033[K" : "");
	s->row++;
}

/* ---- head ---- */

static void draw_title(struct screen *s, const json_t *status)
{
	const json_t *counters = get(status, "counters");
	json_int_t decisions = json_integer_value(get(counters, "decisions"));
	json_int_t writes = json_integer_value(get(counters, "writes"));

	put(s, REVERSE, "mthpd %s  %s  Linux %s  %" JSON_INTEGER_FORMAT " decision%s, %" JSON_INTEGER_FORMAT " write%s",
		word(status, "version"), word(status, "state"), word(get(status, "kernel"), "release"), decisions,
		decisions == 1 ? "" : "s", writes, writes == 1 ? "" : "s");
}

static void draw_trouble(struct screen *s, const json_t *status, const char *notice)
{
	const json_t *degraded = get(status, "degraded");
	const char *first = json_string_value(json_array_get(degraded, 0));
	size_t n = json_array_size(degraded);
	char more[32] = "";

	if (n > 1)
		snprintf(more, sizeof(more), "(1 of %zu) ", n);
	if (notice)
		put(s, BOLD, "%s", notice);
	else if (json_is_string(get(status, "hold")))
		put(s, BOLD, "Held: %s", word(status, "hold"));
	else if (first)
		put(s, BOLD, "Degraded: %s%s", more, first);
	else
		put(s, PLAIN, "%s", "");
}

static bool changed(const json_t *size)
{
	return strcmp(word(size, "baseline"), word(size, "actual")) != 0;
}

/* Two lines: the sizes, and the mode in force of each; the largest are kept
 * where there is no room for all. */
static void draw_sizes(struct screen *s, const json_t *status)
{
	const json_t *sizes = get(status, "sizes");
	char names[512] = "size ", modes[512] = "mode ", kb[CTL_HUMAN_LEN];
	size_t n = json_array_size(sizes), room = s->width > 5 ? (s->width - 5) / SIZE_COLUMN : 0, shown = 0;
	size_t at = strlen(names);

	if (room > (sizeof(names) - 6) / SIZE_COLUMN)
		room = (sizeof(names) - 6) / SIZE_COLUMN;
	for (size_t i = 0; i < n; i++)
		shown += json_is_string(get(json_array_get(sizes, i), "effective"));
	for (size_t i = 0; i < n; i++) {
		const json_t *size = json_array_get(sizes, i);

		if (!json_is_string(get(size, "effective")) || shown-- > room)
			continue;
		ctl_human_kb(get(size, "size_kb"), kb);
		snprintf(names + at, sizeof(names) - at, "%*.*s ", SIZE_COLUMN - 1, SIZE_COLUMN - 1, kb);
		snprintf(modes + at, sizeof(modes) - at, "%*.7s%c", SIZE_COLUMN - 1, word(size, "effective"),
			changed(size) ? '*' : ' ');
		at += SIZE_COLUMN;
	}
	/* Only an asterisk uses the last column. */
	names[strlen(names) - 1] = '\0';
	if (modes[strlen(modes) - 1] == ' ')
		modes[strlen(modes) - 1] = '\0';
	put(s, PLAIN, "%s", names);
	put(s, PLAIN, "%s", modes);
}

static void draw_machine(struct screen *s, const json_t *status)
{
	const json_t *swap = get(status, "swap"), *ptes = get(get(status, "khugepaged"), "max_ptes_none");
	char used[CTL_HUMAN_LEN], size[CTL_HUMAN_LEN], now[CTL_HUMAN_LEN], base[CTL_HUMAN_LEN];
	const char *actual = ctl_scalar(get(ptes, "actual"), now), *start = ctl_scalar(get(ptes, "baseline"), base);

	ctl_human_kb(get(swap, "used_kb"), used);
	ctl_human_kb(get(swap, "size_kb"), size);
	put(s, PLAIN, "swap %s of %s used, %s; max_ptes_none %s (%s at start); defrag %s", used, size,
		word(swap, "state"), actual ? actual : "-", start ? start : "-", word(get(status, "defrag"), "actual"));
}

/* ---- groups ---- */

static double number(const json_t *group, const char *key, double otherwise)
{
	const json_t *v = get(group, key);

	return json_is_number(v) ? json_number_value(v) : otherwise;
}

static int compare(double a, double b)
{
	return (a > b) - (a < b);
}

static int by_name(const json_t *a, const json_t *b)
{
	return strcmp(word(a, "path"), word(b, "path"));
}

/* What is not known is the least bad. */
static int by_margin(const json_t *a, const json_t *b)
{
	int r = compare(number(a, "margin_bytes", INFINITY), number(b, "margin_bytes", INFINITY));

	return r ? r : by_name(a, b);
}

static int by_stall(const json_t *a, const json_t *b)
{
	int r = compare(number(b, "some", -1), number(a, "some", -1));

	if (r == 0)
		r = compare(number(b, "full", -1), number(a, "full", -1));
	return r ? r : by_margin(a, b);
}

static int by_anon(const json_t *a, const json_t *b)
{
	int r = compare(number(b, "anon_bytes", -1), number(a, "anon_bytes", -1));

	return r ? r : by_name(a, b);
}

struct row {
	const json_t *group;
};

static int order(const void *pa, const void *pb, void *userdata)
{
	static int (*const orders[TOP_SORTS])(const json_t *a, const json_t *b) = {
		by_stall, by_margin, by_anon, by_name};

	return orders[*(const enum top_sort *)userdata](((const struct row *)pa)->group, ((const struct row *)pb)->group);
}

/* "####....  52%"; blanks where nothing is known. */
static void bar(const json_t *share, unsigned width, char *ret)
{
	double v = json_number_value(share);
	unsigned n;

	if (!json_is_number(share) || !(v >= 0)) {
		sprintf(ret, "%*s", (int)width + 5, "-");
		return;
	}
	v = v > 1 ? 1 : v;
	n = (unsigned)lround(v * width);
	/* A little is not nothing. */
	if (n == 0 && v >= 0.005)
		n = 1;
	for (unsigned i = 0; i < width; i++)
		ret[i] = i < n ? '#' : '.';
	sprintf(ret + width, " %3.0f%%", v * 100);
}

static void size_of(const json_t *group, char *ret)
{
	const json_t *kb = get(group, "max_size_kb");

	ctl_human_kb(kb, ret);
	if (json_is_number(kb) && json_number_value(kb) == 0)
		snprintf(ret, CTL_HUMAN_LEN, "none");
}

/* The end of a path tells more than its beginning, and whole names more than
 * parts of them. */
static void name_of(const json_t *group, size_t width, char *ret, size_t size)
{
	_cleanup_free_ char *name = ctl_quote(word(group, "path"));
	const char *tail, *slash;

	if (!name || !*name) {
		snprintf(ret, size, "(all)");
		return;
	}
	if (strlen(name) <= width) {
		snprintf(ret, size, "%s", name);
		return;
	}
	tail = name + strlen(name) - width + 3;
	slash = strchr(tail, '/');
	snprintf(ret, size, "...%s", slash && slash[1] ? slash : tail);
}

static bool hurts(const json_t *group)
{
	return !strcmp(word(group, "state"), "drop") || number(group, "some", 0) >= 0.1;
}

static bool has_full(const struct screen *s)
{
	return s->width >= WIDTH_FULL;
}

static bool has_counts(const struct screen *s)
{
	return s->own && s->width >= WIDTH_COUNTS;
}

/* Columns of a bar: a name tells more than two of them. */
static unsigned bar_columns(const struct screen *s, unsigned columns)
{
	return has_counts(s) && s->width < WIDTH_COUNTS_BARS ? 0 : columns;
}

static unsigned some_columns(const struct screen *s)
{
	return bar_columns(s, SOME_BAR) + SOME_COLUMNS - SOME_BAR;
}

static unsigned full_columns(const struct screen *s)
{
	return has_full(s) ? bar_columns(s, FULL_BAR) + FULL_COLUMNS - FULL_BAR : 0;
}

/* With the blank behind the name. */
static unsigned name_columns(const struct screen *s)
{
	unsigned others = some_columns(s) + full_columns(s) + OTHER_COLUMNS + REASON_COLUMNS;

	if (s->own)
		others += USED_COLUMNS;
	if (has_counts(s))
		others += 2 * COUNT_COLUMNS;
	if (s->width <= others + NAME_COLUMNS_MIN)
		return NAME_COLUMNS_MIN;
	return s->width - others > NAME_COLUMNS_MAX ? NAME_COLUMNS_MAX : s->width - others;
}

/* The reason of what the group asks for, unless it gets less than that. */
static const char *reason_of(const json_t *group)
{
	return json_is_true(get(group, "clamped")) ? "clamped" : word(group, "reason");
}

/* " 87%", "" where no group has it. */
static void used_of(const struct screen *s, const json_t *group, char *ret, size_t size)
{
	const json_t *density = get(get(group, "own"), "density");

	*ret = '\0';
	if (s->own && json_is_number(density))
		snprintf(ret, size, "%3.0f%% ", json_number_value(density) * 100);
	else if (s->own)
		snprintf(ret, size, "   - ");
}

/* " 3.1k     0 ", "" where they are not shown. */
static void counts_of(const struct screen *s, const json_t *group, char *ret, size_t size)
{
	const json_t *counters = get(get(group, "own"), "counters");
	json_t *sum = json_is_object(counters) ? json_real(0) : NULL;
	char refused[CTL_HUMAN_LEN], kept[CTL_HUMAN_LEN];

	*ret = '\0';
	for (size_t i = 0; i < CTL_REFUSALS; i++)
		json_real_set(sum, json_number_value(sum) + number(counters, ctl_refusals[i].key, 0));
	ctl_human_count(sum, refused);
	ctl_human_count(get(counters, "split_avoided"), kept);
	json_decref(sum);
	if (has_counts(s))
		snprintf(ret, size, "%*s %*s ", COUNT_COLUMNS - 1, refused, COUNT_COLUMNS - 1, kept);
}

static void draw_group(struct screen *s, const json_t *group)
{
	char some[32], all[32], used[16], counts[2 * CTL_HUMAN_LEN + 4];
	char room[CTL_HUMAN_LEN], size[CTL_HUMAN_LEN], name[NAME_COLUMNS_MAX + 4];
	unsigned columns = name_columns(s) - 1;
	bool sentence = s->width > WIDTH_SENTENCE && !json_is_true(get(group, "clamped"));

	bar(get(group, "some"), bar_columns(s, SOME_BAR), some);
	bar(get(group, "full"), bar_columns(s, FULL_BAR), all);
	ctl_human_bytes(get(group, "margin_bytes"), room);
	size_of(group, size);
	used_of(s, group, used, sizeof(used));
	counts_of(s, group, counts, sizeof(counts));
	name_of(group, columns, name, sizeof(name));
	put(s, hurts(group) ? BOLD : PLAIN, "%-*s %s %s%s%6.6s %5.5s %s%s%s%s%s", (int)columns, name, some,
		has_full(s) ? all : "", has_full(s) ? " " : "", room, size, used, counts, reason_of(group),
		sentence ? ": " : "", sentence ? word(group, "reason_text") : "");
}

static void draw_groups(struct screen *s, const struct row *groups, size_t n, size_t first, size_t rows)
{
	put(s, REVERSE, "%-*s %-*s %-*s%6s %5s %s%s%s", (int)name_columns(s) - 1, "GROUP", (int)some_columns(s) - 1, "SOME",
		(int)full_columns(s), has_full(s) ? "FULL" : "", "MARGIN", "SIZE", s->own ? "USED " : "",
		has_counts(s) ? "NOFIT  KEPT " : "", "REASON");
	for (size_t i = first; i < n && i < first + rows; i++)
		draw_group(s, groups[i].group);
	if (n == 0)
		put(s, PLAIN, "No memory cgroups.");
}

static void draw_foot(struct screen *s, const struct top_view *v, size_t n, size_t rows)
{
	size_t last = v->first + rows < n ? v->first + rows : n;

	while (s->row + 1 < s->height)
		put(s, PLAIN, "%s", "");
	put(s, REVERSE, "q quit  s sort: %s  j k scroll  %zu-%zu of %zu  * not as at start", sort_names[v->sort],
		n ? v->first + 1 : 0, last, n);
}

/* A sorted list that borrows from @status; NULL when there is none. */
static struct row *sorted_groups(const json_t *status, struct top_view *v, size_t *ret_n)
{
	const json_t *list = get(status, "cgroups");
	size_t n = json_array_size(list);
	struct row *groups = calloc(n + 1, sizeof(*groups));

	*ret_n = groups ? n : 0;
	for (size_t i = 0; i < *ret_n; i++)
		groups[i].group = json_array_get(list, i);
	if (groups)
		qsort_r(groups, n, sizeof(*groups), order, &v->sort);
	return groups;
}

size_t top_draw(FILE *f, const json_t *status, struct top_view *v, size_t *ret_groups)
{
	struct screen s = {.f = f, .width = v->width, .height = v->height};
	bool live = v->height > 0;
	size_t n, rows;
	struct row *groups = sorted_groups(status, v, &n);

	for (size_t i = 0; i < n && !s.own; i++)
		s.own = json_is_object(get(groups[i].group, "own"));

	if (live)
		fputs("\033[H", f);
	draw_title(&s, status);
	if (!live || v->height >= HEIGHT_TROUBLE)
		draw_trouble(&s, status, v->notice);
	if (!live || v->height >= HEIGHT_ALL) {
		draw_sizes(&s, status);
		draw_machine(&s, status);
		put(&s, PLAIN, "%s", "");
	}
	/* The header of the table and the last line. */
	rows = !live ? v->max_groups : v->height > s.row + 2 ? v->height - s.row - 2 : 0;
	rows = rows < v->max_groups ? rows : v->max_groups;
	if (v->first + rows > n)
		v->first = n > rows ? n - rows : 0;
	draw_groups(&s, groups, n, v->first, rows);
	if (live) {
		draw_foot(&s, v, n, rows);
		fputs("\033[J", f);
	} else if (n > rows) {
		fprintf(f, "and %zu more\n", n - rows);
	}
	free(groups);
	if (ret_groups)
		*ret_groups = n;
	return rows;
}
