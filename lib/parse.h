/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parsers for the small text files of /sys, /proc and cgroup2: bounded buffers
 * in, plain structs out. Called by thp.c, memcg.c, host.c and the daemon; opens
 * files only in parse_read_at() and parse_read_attr_at(). Never allocates, never
 * logs, never trusts its input: every parser has a fuzz target (tests/fuzz)
 * seeded with files read from real kernels.
 *
 * Errors: -EINVAL for text that is not of the form, -ERANGE for a number that
 * does not fit; the result is untouched then, unless said otherwise.
 */
#ifndef MTHPD_PARSE_H
#define MTHPD_PARSE_H

#include <stddef.h>
#include <sys/types.h>

#include "value.h"

/* Reads @path relative to @dirfd to its end into @buf (NUL-terminated, at most
 * @size - 1 bytes; a longer file gives -EFBIG, and @buf is undefined on any
 * error). Never blocks. Returns the length or -errno: ENOENT and ENODEV mean the
 * file or its cgroup is gone, which is normal. */
ssize_t parse_read_at(int dirfd, const char *path, char *buf, size_t size);

/* The same in one read(2), for sysfs and cgroup files: kernfs shows an attribute
 * in one piece (fs/kernfs/file.c, a single-record seq_file). Not for /proc. */
ssize_t parse_read_attr_at(int dirfd, const char *path, char *buf, size_t size);

/* One unsigned decimal, blanks around it allowed; -EINVAL, -ERANGE (2^64 up). */
int parse_u64(const char *s, uint64_t *ret);

/* As parse_u64, and "max" or anything from 2^63 - 64 KiB up is VALUE_MAX
 * (mm/page_counter.c: PAGE_COUNTER_MAX rounded to pages). */
int parse_limit(const char *s, uint64_t *ret);

/* memory.pressure (kernel/sched/psi.c: psi_show). total_usec is VALUE_ABSENT
 * for a line that is missing or has no good total=; avg10 in 1/100 percent, 0
 * where it is not understood. -EINVAL if neither line is usable. */
struct psi_line {
	uint64_t total_usec;
	unsigned avg10_centi;
};
struct psi {
	struct psi_line some, full;
};
int parse_psi(const char *buf, struct psi *ret);

/* "key value" lines (memory.events, memory.stat, cpu.stat, vmstat; also
 * meminfo's "Key:  value kB", whose value is returned as printed). Fills the
 * uint64_t at @base + offset for each key of @keys; all of them are set to
 * VALUE_ABSENT first. Unknown keys are ignored, order is free, the last of a
 * duplicate wins, a value that is negative or not a number leaves its field
 * absent, a line over 255 bytes is skipped. Returns the number of anomalies:
 * duplicates, bad values of known keys, skipped lines. Linear in the text. */
struct flat_key {
	const char *name;
	size_t offset;
};
int parse_flat_keyed(const char *buf, const struct flat_key *keys, size_t n_keys, void *base);

/* Choice files ("always [madvise] never"): exactly one token in brackets.
 * Zero or two brackets, no token, more than CHOICE_MAX tokens or a token of
 * CHOICE_LEN bytes or more: -EINVAL ("unparseable": never written). */
#define CHOICE_MAX 8
#define CHOICE_LEN 20
struct choice {
	unsigned n;        /* 0 = absent or unparseable */
	unsigned selected; /* index into token[] */
	char token[CHOICE_MAX][CHOICE_LEN];
};
int parse_choice(const char *buf, struct choice *ret);
/* The selected token, or NULL when the choice is absent. */
const char *choice_value(const struct choice *c);
/* True when @token is one that the file lists. */
bool choice_lists(const struct choice *c, const char *token);

/* The path of the "0::" line of /proc/PID/cgroup, byte for byte after the
 * second colon, with the leading slash. -ENOENT when there is no such line (a
 * process of a v1-only host), -EINVAL when there is none and some line is not
 * ID:CONTROLLERS:/PATH, -ENAMETOOLONG. */
int parse_proc_cgroup(const char *buf, char *ret_path, size_t size);

/* Walks /proc/self/mountinfo. For each line calls @fn with the decoded mount
 * point (octal escapes resolved), file system type and super options; stops
 * when it returns non-zero and returns that. Skipped: malformed lines, a mount
 * point of PATH_MAX bytes or more, a type of 64, options of more than PATH_MAX. */
typedef int (*parse_mount_fn)(
	const char *mount_point, const char *fs_type, const char *super_options, void *userdata);
int parse_mountinfo(const char *buf, parse_mount_fn fn, void *userdata);

/* Sums /proc/swaps in KiB over all devices; both 0 when there is none (also
 * for an empty text). One bad line spoils the whole. */
int parse_swaps(const char *buf, uint64_t *ret_size_kb, uint64_t *ret_used_kb);

#endif
