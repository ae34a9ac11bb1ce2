/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The configuration model (mthpd.conf(5)) and its reader: libinih feeds lines,
 * one table of keys says where each value goes, how it is parsed and what
 * range it has. Called at start, at reload and by --check-config; a faulty
 * configuration is reported whole (every fault, with file and line) and never
 * half-applied. Never touches the kernel; knows no sizes of this machine:
 * relative names such as "pmd" are resolved by config_size_kb(). Rules by
 * kernel version are not built: what a kernel can do is detected elsewhere.
 *
 * As in systemd's files: names are case-sensitive, a later assignment wins,
 * Key= with nothing behind it goes back to the default, only Match= adds up
 * (Match= alone starts its list anew), and a section that appears again, in the
 * same file or in a later one, goes on where it ended: two [Policy "x"] are one
 * policy, whose keys are merged and whose place is that of the first. Unlike
 * there, nothing is skipped with a warning: what is not understood is a fault.
 */
#ifndef MTHPD_CONFIG_H
#define MTHPD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "value.h"

#define CONFIG_SIZES_MAX 24
#define CONFIG_MATCH_MAX 16	  /* Match= patterns of one policy */
#define CONFIG_POLICIES_MAX 256	  /* policies, over all files */
#define CONFIG_POLICY_NAME_MAX 64 /* bytes */
#define CONFIG_FILES_MAX 256	  /* the main file and its drop-ins */
#define CONFIG_FILE_BYTES_MAX ((size_t)256 * 1024)
/* libinih's line buffer (INI_MAX_LINE, 200 with its NUL): a longer line is a
 * fault. Blank margins and comments do not count. */
#define CONFIG_LINE_BYTES_MAX 199
#define CONFIG_PTES_MAX 8191 /* the largest PMD_NR - 1 of any machine (64K pages) */

/* A folio size as written: "64K", "2M", "pmd", "pmd/2", "smallest". */
enum config_size_kind { SIZE_KB, SIZE_PMD, SIZE_PMD_FRACTION, SIZE_SMALLEST };
struct config_size {
	enum config_size_kind kind;
	uint64_t
		value; /* KiB for SIZE_KB, divisor for SIZE_PMD (1) and SIZE_PMD_FRACTION, else 0 */
};
/* KiB on a machine with these sizes; 0 if the name cannot be resolved. */
uint64_t config_size_kb(const struct config_size *s, uint64_t pmd_kb, uint64_t smallest_kb);

enum config_max_mode { MAX_MODE_INHERIT, MAX_MODE_MADVISE, MAX_MODE_ALWAYS };
enum config_foreign { FOREIGN_ADOPT, FOREIGN_REASSERT };
enum config_log_level { LOG_LEVEL_ERR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* [Controller], and any key of it in a [Policy]. Shares are 0..1. */
struct config_controller {
	double pressure_high;			   /* PressureHigh=10%   0.1%..100% */
	double pressure_low;			   /* PressureLow=2%     0%..PressureHigh */
	double drop_gain;			   /* DropGain=15%       0%..90% */
	uint64_t hold_min_usec, hold_max_usec;	   /* Hold=10s..600s   1s..1d */
	uint64_t settle_min_usec, settle_max_usec; /* Settle=2s..30s   0.1s..10min */
	double density_low, density_high; /* Density=65%..85% 1%..100%; only with groups' own files */
	uint64_t small_group_bytes;	  /* SmallGroup=0     0..1T; only with groups' own files */
	unsigned max_changes_per_hour; /* MaxChangesPerHour=60 1..3600; a policy's: its group's own
					  changes */
};

/* The next hold after one of @hold_usec that failed: twice as long, within Hold=. */
static inline uint64_t config_hold_doubled(const struct config_controller *c, uint64_t hold_usec)
{
	return hold_usec * 2 > c->hold_max_usec ? c->hold_max_usec : hold_usec * 2;
}

#define CONFIG_PTES_BASELINE VALUE_ABSENT
struct config_policy {
	char *name;
	char *match[CONFIG_MATCH_MAX]; /* patterns, see glob.h */
	unsigned n_match;
	bool controlled; /* Controlled=yes */
	unsigned weight; /* 100, 1..10000 */
	bool protect;	 /* no */
	bool has_min_size,
		has_max_size; /* written in a file; without, the defaults bound nothing */
	struct config_size min_size, max_size; /* MinSize=4K MaxSize=pmd */
	uint64_t max_ptes_none;		       /* CONFIG_PTES_BASELINE or 0..CONFIG_PTES_MAX */
	struct config_controller controller;   /* [Controller] with this policy's keys on top */
	const char *file;		       /* where the section starts, for the first time */
	unsigned line;
};

struct config {
	/* [Daemon] */
	uint64_t interval_usec;	  /* Interval=1s        100ms..60s */
	uint64_t psi_window_usec; /* PsiWindow=2s       100ms..10s; older kernels refuse less than
				     500ms */
	uint64_t audit_usec;	  /* AuditInterval=60s  1s..1h */
	bool dry_run;
	enum config_log_level log_level;
	/* [Limits] */
	enum config_max_mode max_mode;
	bool all_sizes;
	struct config_size sizes[CONFIG_SIZES_MAX];
	unsigned n_sizes;
	uint64_t max_ptes_none; /* CONFIG_PTES_BASELINE or 0..PMD_NR-1 (checked against the machine
				   later) */
	bool defrag, shmem, per_group;
	enum config_foreign foreign;
	bool restore_on_exit;
	/* [Controller] */
	struct config_controller controller;
	/* [Metrics] */
	char *metrics_listen; /* NULL = off, a path that starts with '/', or 127.0.0.1:PORT */
	struct config_policy *policies;
	unsigned n_policies;
	/* owned copies of file names that policies point at */
	char **files;
	unsigned n_files;
};

/* Called once per fault: file by file and line by line, then what only the whole
 * shows (a policy without Match=, PressureLow above PressureHigh). @line 0 = the
 * file as a whole. The message is one line of valid UTF-8 without a final dot. */
typedef void (*config_fault_fn)(
	const char *file, unsigned line, const char *message, void *userdata);

/* Reads the configuration. With @explicit_file only that file and
 * explicit_file.d/[*].conf are read (a missing explicit file is a fault).
 * Otherwise @prefix/etc/mthpd/mthpd.conf (may be absent) and the drop-ins
 * mthpd.conf.d/[*].conf of @prefix/{usr/lib,run,etc}/mthpd, by file name over
 * all directories, etc over run over usr/lib for the same name, a link to
 * /dev/null masks. Names that start with a dot are left alone. @prefix "" is
 * the machine. @fn may be NULL. Returns 0 with *ret filled (config_free it),
 * -EINVAL after at least one fault was reported, or -ENOMEM; *ret is untouched
 * then. Never blocks on a FIFO, never reads more than the limits above. */
int config_load(const char *explicit_file, const char *prefix, config_fault_fn fn, void *userdata,
	struct config **ret);
/* The same for one text of @len bytes in memory (a trace carries its
 * configuration); @name stands for the file in faults. */
int config_load_text(const char *name, const char *text, size_t len, config_fault_fn fn,
	void *userdata, struct config **ret);
/* The built-in defaults. NULL on ENOMEM. */
struct config *config_new_default(void);
void config_free(struct config *c);

/* The policy for a group: of all policies with a pattern that matches @path,
 * the one with the most specific pattern (later in the files wins a tie);
 * NULL = defaults. @ret_pattern (may be NULL) gets the pattern. */
const struct config_policy *config_policy_for(
	const struct config *c, const char *path, const char **ret_pattern);

/* Every key in reading order, for conf/mthpd.conf's test and the man page's:
 * section, key, default as text ("" = off, or for a [Controller] key in a
 * policy: as in [Controller]; NULL = none, the key must be given). */
struct config_field; /* how a value is read: config-internal.h */
struct config_key_info {
	const char *section, *key, *default_text;
	const struct config_field *field;
};
const struct config_key_info *config_keys(size_t *ret_n);

/* Units. 0, -EINVAL (not of this form) or -ERANGE (a number too large).
 * "250ms" "1s" "1.5min" "1h 30min", or a bare number of seconds; us, ms, s, sec,
 * min, m, h, hr, d. */
int config_parse_duration(const char *s, uint64_t *ret_usec);
/* "10%" "0.5%", or PSI's own terms, a threshold over a window: "50ms/s"
 * "150ms/2s". -ERANGE above 100%, which is a threshold longer than its window. */
int config_parse_percent(const char *s, double *ret_share);
/* "64K" "64kB" "64KiB" "2M" "1G" "pmd" "pmd/4" "smallest"; a number needs its
 * unit. -ERANGE when it is not a power of two from 4K to 16G (pmd/1..pmd/4096). */
int config_parse_size(const char *s, struct config_size *ret);
/* An amount of memory: "16M" "512kB" "1G" "0"; a number needs its unit. -ERANGE
 * above 1024G. */
int config_parse_bytes(const char *s, uint64_t *ret_bytes);

/* Whether @typed is so near to @known that a typo may be meant; the smaller the
 * distance, the nearer. For the words of mthpctl too. */
bool config_text_near(const char *typed, const char *known, unsigned *ret_distance);

#endif
