/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A configuration as text that makes the same configuration again. */
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ABSENT_WORD "baseline"

static const char *yes_no(bool b)
{
	return b ? "yes" : "no";
}

/* The shortest percentage that reads back as the same share; a share that was
 * written as a threshold over a window may have none. */
static void share_text(char buf[64], double share)
{
	double back;

	for (int digits = 1; digits <= 9; digits++) {
		snprintf(buf, 64, "%.*g%%", digits, share * 100);
		if (!strchr(buf, 'e') && config_parse_percent(buf, &back) == 0 && back == share)
			break;
	}
	if (strchr(buf, 'e'))
		snprintf(buf, 64, "%.9f%%", share * 100);
}

static void put_share(FILE *f, const char *key, double share)
{
	char buf[64];

	share_text(buf, share);
	fprintf(f, "%s=%s\n", key, buf);
}

static void put_share_range(FILE *f, const char *key, double low, double high)
{
	char first[64], second[64];

	share_text(first, low);
	share_text(second, high);
	fprintf(f, "%s=%s..%s\n", key, first, second);
}

static void put_size(FILE *f, const char *lead, const struct config_size *s)
{
	fputs(lead, f);
	switch (s->kind) {
	case SIZE_KB:
		fprintf(f, "%" PRIu64 "K", s->value);
		break;
	case SIZE_PMD:
		fputs("pmd", f);
		break;
	case SIZE_PMD_FRACTION:
		fprintf(f, "pmd/%" PRIu64, s->value);
		break;
	case SIZE_SMALLEST:
		fputs("smallest", f);
		break;
	}
}

static void put_ptes(FILE *f, uint64_t v)
{
	if (value_known(v))
		fprintf(f, "MaxPtesNone=%" PRIu64 "\n", v);
	else
		fputs("MaxPtesNone=" ABSENT_WORD "\n", f);
}

static void put_controller(FILE *f, const struct config_controller *c)
{
	put_share(f, "PressureHigh", c->pressure_high);
	put_share(f, "PressureLow", c->pressure_low);
	put_share(f, "DropGain", c->drop_gain);
	fprintf(f, "Hold=%" PRIu64 "us..%" PRIu64 "us\n", c->hold_min_usec, c->hold_max_usec);
	fprintf(f, "Settle=%" PRIu64 "us..%" PRIu64 "us\n", c->settle_min_usec, c->settle_max_usec);
	put_share_range(f, "Density", c->density_low, c->density_high);
	/* Whole bytes in K: a value that was written has no finer unit. */
	fprintf(f, "SmallGroup=%" PRIu64 "K\n", c->small_group_bytes / 1024);
	fprintf(f, "MaxChangesPerHour=%u\n", c->max_changes_per_hour);
}

static void put_daemon(FILE *f, const struct config *c)
{
	static const char *const levels[] = { "err", "warning", "info", "debug" };

	fprintf(f, "[Daemon]\nInterval=%" PRIu64 "us\nPsiWindow=%" PRIu64 "us\nAuditInterval=%" PRIu64
		   "us\nDryRun=%s\nLogLevel=%s\n",
		c->interval_usec, c->psi_window_usec, c->audit_usec, yes_no(c->dry_run),
		levels[c->log_level]);
}

static void put_limits(FILE *f, const struct config *c)
{
	static const char *const modes[] = { "inherit", "madvise", "always" };

	fprintf(f, "[Limits]\nMaxMode=%s\nSizes=", modes[c->max_mode]);
	if (c->all_sizes)
		fputs("all", f);
	for (unsigned i = 0; !c->all_sizes && i < c->n_sizes; i++)
		put_size(f, i ? " " : "", &c->sizes[i]);
	fputc('\n', f);
	put_ptes(f, c->max_ptes_none);
	fprintf(f, "Defrag=%s\nShmem=%s\nPerGroup=%s\nForeignChanges=%s\nRestoreOnExit=%s\n", yes_no(c->defrag),
		yes_no(c->shmem), yes_no(c->per_group), c->foreign == FOREIGN_REASSERT ? "reassert" : "adopt",
		yes_no(c->restore_on_exit));
}

/* Patterns may be any bytes, JSON may not: '?' stands for each one that is no
 * ASCII. Which policy a group has is written with each group. */
static void put_pattern(FILE *f, const char *pattern)
{
	fputs("Match=", f);
	for (const unsigned char *p = (const unsigned char *)pattern; *p; p++)
		fputc(*p < 0x80 ? *p : '?', f);
	fputc('\n', f);
}

static void put_policy(FILE *f, const struct config_policy *p)
{
	fprintf(f, "[Policy \"%s\"]\n", p->name);
	for (unsigned i = 0; i < p->n_match; i++)
		put_pattern(f, p->match[i]);
	fprintf(f, "Controlled=%s\nWeight=%u\nProtect=%s\n", yes_no(p->controlled), p->weight,
		yes_no(p->protect));
	if (p->has_min_size) {
		put_size(f, "MinSize=", &p->min_size);
		fputc('\n', f);
	}
	if (p->has_max_size) {
		put_size(f, "MaxSize=", &p->max_size);
		fputc('\n', f);
	}
	put_ptes(f, p->max_ptes_none);
	put_controller(f, &p->controller);
}

char *trace_config_text(const struct config *c)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	put_daemon(f, c);
	put_limits(f, c);
	fputs("[Controller]\n", f);
	put_controller(f, &c->controller);
	for (unsigned i = 0; i < c->n_policies; i++)
		put_policy(f, &c->policies[i]);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
