/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl-text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define GAP 2
#define CELL_MAX 20 /* of a column that is not elastic */

static bool printable(char c)
{
	return c >= 0x20 && c <= 0x7e;
}

char *ctl_quote(const char *name)
{
	/* one that looks quoted is quoted, so that both forms can be told apart */
	bool plain = strncmp(name, "$'", 2) != 0;
	size_t n = 0;
	char *out;

	for (const char *p = name; *p; p++)
		plain = plain && printable(*p);
	if (plain)
		return strdup(name);
	out = malloc(strlen(name) * 4 + 4);
	if (!out)
		return NULL;
	out[n++] = '$';
	out[n++] = '\'';
	for (const char *p = name; *p; p++) {
		if (!printable(*p)) {
			n += (size_t)snprintf(out + n, 5, "\\x%02x", (unsigned)(unsigned char)*p);
			continue;
		}
		if (*p == '\\' || *p == '\'')
			out[n++] = '\\';
		out[n++] = *p;
	}
	out[n++] = '\'';
	out[n] = '\0';
	return out;
}

static void put_char(FILE *f, char c)
{
	if (printable(c))
		fputc(c, f);
	else
		fprintf(f, "\\x%02x", (unsigned)(unsigned char)c);
}

void ctl_put_line(FILE *f, const char *text)
{
	for (; *text; text++)
		put_char(f, *text);
}

void ctl_put_text(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n' || *text == '\t')
			fputc(*text, f);
		else
			put_char(f, *text);
	}
}

static unsigned char_width(char c)
{
	return printable(c) ? 1 : 4;
}

static unsigned word_width(const char *word, size_t len)
{
	unsigned width = 0;

	for (size_t i = 0; i < len; i++)
		width += char_width(word[i]);
	return width;
}

static unsigned new_line(FILE *f, unsigned indent, bool first)
{
	fprintf(f, "%s%*s", first ? "" : "\n", (int)indent, "");
	return indent;
}

void ctl_put_wrapped(FILE *f, unsigned indent, const char *text)
{
	unsigned at = new_line(f, indent, true);

	for (;;) {
		size_t len;

		text += strspn(text, " \n\t");
		len = strcspn(text, " \n\t");
		if (len == 0)
			break;
		if (at > indent && at + 1 + word_width(text, len) > CTL_WIDTH) {
			at = new_line(f, indent, false);
		} else if (at > indent) {
			fputc(' ', f);
			at++;
		}
		for (size_t i = 0; i < len; i++) {
			if (at + char_width(text[i]) > CTL_WIDTH)
				at = new_line(f, indent, false);
			put_char(f, text[i]);
			at += char_width(text[i]);
		}
		text += len;
	}
	fputc('\n', f);
}

#define FOLD_INDENT 2u

void ctl_put_folded(FILE *f, const char *text)
{
	unsigned at = 0;

	while (*text) {
		size_t blanks = strspn(text, " \t"), len = strcspn(text + blanks, " \t\n");
		unsigned width = word_width(text + blanks, len);

		if (at > FOLD_INDENT && at + blanks + width > CTL_WIDTH) {
			at = new_line(f, FOLD_INDENT, false);
		} else {
			fprintf(f, "%*s", (int)blanks, "");
			at += (unsigned)blanks;
		}
		for (size_t i = 0; i < len; i++)
			put_char(f, text[blanks + i]);
		at += width;
		text += blanks + len;
		if (*text == '\n') {
			fputc('\n', f);
			at = 0;
			text++;
		}
	}
}

static void human(double v, const char *units, char *ret)
{
	while (v >= 1023.95 && units[1]) {
		v /= 1024;
		units++;
	}
	/* beyond the last unit nobody reads digits, and they must fit */
	if (v >= 1e9)
		snprintf(ret, CTL_HUMAN_LEN, ">1e9%c", *units);
	else if (v < 10000 && v == floor(v) && *units != 'B')
		snprintf(ret, CTL_HUMAN_LEN, "%.0f%c", v, *units);
	else
		snprintf(ret, CTL_HUMAN_LEN, *units == 'B' ? "%.0f%c" : "%.1f%c", v, *units);
}

static void no_number(char *ret)
{
	ret[0] = '-';
	ret[1] = '\0';
}

void ctl_human_bytes(const json_t *bytes, char *ret)
{
	no_number(ret);
	if (json_is_number(bytes) && json_number_value(bytes) >= 0)
		human(json_number_value(bytes), "BKMGTP", ret);
}

void ctl_human_kb(const json_t *kb, char *ret)
{
	no_number(ret);
	if (json_is_number(kb) && json_number_value(kb) >= 0)
		human(json_number_value(kb), "KMGTP", ret);
}

void ctl_human_count(const json_t *count, char *ret)
{
	static const char units[] = " kMGT";
	const char *unit = units;
	double v = json_number_value(count);

	no_number(ret);
	if (!json_is_number(count) || !(v >= 0))
		return;
	for (; v >= 999.5 && unit[1]; unit++)
		v /= 1000;
	if (v >= 999.5)
		snprintf(ret, CTL_HUMAN_LEN, ">999T");
	else if (unit == units)
		snprintf(ret, CTL_HUMAN_LEN, "%.0f", v);
	else
		snprintf(ret, CTL_HUMAN_LEN, "%.*f%c", v < 9.95, v, *unit);
}

const struct ctl_refusal ctl_refusals[CTL_REFUSALS] = {
	{"margin_anon", "at faults"},
	{"margin_swpin", "at swap-in"},
	{"margin_shmem", "of shmem"},
	{"margin_collapse", "at collapse"},
	{"size_limited", "above max_size"},
};

void ctl_human_share(const json_t *share, char *ret)
{
	double v = json_number_value(share);

	no_number(ret);
	if (json_is_number(share) && v >= 0 && v <= 1000)
		snprintf(ret, CTL_HUMAN_LEN, "%.1f%%", v * 100);
}

const char *ctl_scalar(const json_t *value, char *buf)
{
	if (json_is_string(value))
		return json_string_value(value);
	if (json_is_boolean(value))
		return json_is_true(value) ? "yes" : "no";
	if (json_is_integer(value)) {
		snprintf(buf, CTL_HUMAN_LEN, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return buf;
	}
	if (json_is_real(value)) {
		snprintf(buf, CTL_HUMAN_LEN, "%.6g", json_real_value(value));
		return buf;
	}
	return NULL;
}

/* ---- tables ---- */

void ctl_table_add(struct ctl_table *t, const char *cell)
{
	char **more = realloc(t->cells, (t->n_cells + 1) * sizeof(*more));
	char *copy = ctl_quote(cell ? cell : "-");

	if (more)
		t->cells = more;
	if (!more || !copy) {
		free(copy);
		t->failed = true;
		return;
	}
	t->cells[t->n_cells++] = copy;
}

static void column_widths(const struct ctl_table *t, size_t *widths)
{
	size_t sum = (t->columns - 1) * GAP, over;

	for (unsigned c = 0; c < t->columns; c++) {
		widths[c] = 0;
		for (size_t i = c; i < t->n_cells; i += t->columns) {
			if (strlen(t->cells[i]) > widths[c])
				widths[c] = strlen(t->cells[i]);
		}
		if (c != t->elastic && widths[c] > CELL_MAX)
			widths[c] = CELL_MAX;
		sum += widths[c];
	}
	over = sum > CTL_WIDTH ? sum - CTL_WIDTH : 0;
	/* at least room for "..." and a few letters */
	if (over > 0)
		widths[t->elastic] = widths[t->elastic] > over + 8 ? widths[t->elastic] - over : 8;
}

static void put_cell(FILE *f, const char *cell, size_t width, bool right, bool last)
{
	size_t len = strlen(cell);

	if (len > width) {
		fprintf(f, "...%s", cell + len - width + 3);
		len = width;
	} else {
		fprintf(f, "%*s%s", right ? (int)(width - len) : 0, "", cell);
	}
	if (!last)
		fprintf(f, "%*s", (int)(right ? GAP : width - len + GAP), "");
}

void ctl_table_print_row(FILE *f, const struct ctl_table *t, size_t row)
{
	size_t widths[CTL_COLUMNS_MAX];

	if (t->failed || (row + 1) * t->columns > t->n_cells)
		return;
	column_widths(t, widths);
	for (unsigned c = 0; c < t->columns; c++)
		put_cell(f, t->cells[row * t->columns + c], widths[c], t->right >> c & 1,
			c + 1 == t->columns);
	fputc('\n', f);
}

void ctl_table_print(FILE *f, const struct ctl_table *t)
{
	for (size_t row = 0; row < t->n_cells / t->columns; row++)
		ctl_table_print_row(f, t, row);
}

void ctl_table_done(struct ctl_table *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	t->cells = NULL;
	t->n_cells = 0;
}
