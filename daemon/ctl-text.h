/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Text for a terminal of 80 columns: names whose bytes may be hostile, numbers
 * with units, wrapped prose and tables. Called by the renderings of mthpctl.
 * Everything that these functions print is printable ASCII, whatever came in:
 * a group's name cannot move the cursor, colour the screen or end a line.
 */
#ifndef MTHPD_CTL_TEXT_H
#define MTHPD_CTL_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#define CTL_WIDTH 80

/* A name as it is, if it is printable ASCII; otherwise as $'...' of bash, with
 * \xHH for each other byte and \\ and \' for those two, which can be pasted
 * into a command line. To be freed; NULL on ENOMEM. */
char *ctl_quote(const char *name);

/* @text with \xHH for every byte that is not printable ASCII; ctl_put_text()
 * lets newlines and tabs pass, for text of several lines. */
void ctl_put_line(FILE *f, const char *text);
void ctl_put_text(FILE *f, const char *text);

/* The words of @text in lines of CTL_WIDTH columns that begin with @indent
 * blanks; a word that is too long for a line is cut into pieces. */
void ctl_put_wrapped(FILE *f, unsigned indent, const char *text);

/* ctl_put_text() for somebody who reads: lines are broken at blanks to keep
 * CTL_WIDTH and go on indented; a long word (a group's path) stays whole. */
void ctl_put_folded(FILE *f, const char *text);

/* "512", "31.2M", "4.0G" (units of 1024; B below 1K); "-" for no number. @ret
 * is of CTL_HUMAN_LEN. */
#define CTL_HUMAN_LEN 24
void ctl_human_bytes(const json_t *bytes, char *ret);
/* "64K", "2M", "1G"; "-" for no number. */
void ctl_human_kb(const json_t *kb, char *ret);
/* "512", "3.1k", "87M" (units of 1000, at most 5 characters); "-" for no number. */
void ctl_human_count(const json_t *count, char *ret);
/* "12.3%" of a share 0..1; "-" for no number. */
void ctl_human_share(const json_t *share, char *ret);

/* Counters of a group's own files (status, `own.counters`): where the kernel refused it
 * large folios. */
#define CTL_REFUSALS 5
extern const struct ctl_refusal {
	const char *key, *where;
} ctl_refusals[CTL_REFUSALS];

/* A table: columns as wide as their widest cell, two blanks between them. The
 * column @elastic is cut at its front to keep CTL_WIDTH, as the end of a path
 * tells more. Cells are quoted with ctl_quote(); NULL prints "-". */
#define CTL_COLUMNS_MAX 8
struct ctl_table {
	unsigned columns, elastic;
	unsigned right; /* bit per column: aligned to the right */
	char **cells;
	size_t n_cells;
	bool failed; /* a cell could not be kept: nothing is printed */
};
void ctl_table_add(struct ctl_table *t, const char *cell);
/* Prints row @row ("" cells print nothing at the line's end). */
void ctl_table_print_row(FILE *f, const struct ctl_table *t, size_t row);
void ctl_table_print(FILE *f, const struct ctl_table *t);
void ctl_table_done(struct ctl_table *t);

/* A scalar as text: strings as they are, numbers, yes/no; NULL for null, absent
 * or a container. @buf is of CTL_HUMAN_LEN and used for numbers. */
const char *ctl_scalar(const json_t *value, char *buf);

#endif
