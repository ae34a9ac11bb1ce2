/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One file under transparent_hugepage: which paths are ours to touch at all,
 * what form their text has (a choice file or one number), how a value is read
 * and written, and which of two values is the riskier one. Called by the
 * baseline and by the actuator, the only two that write to the kernel. Keeps
 * no state, never decides what is wanted, never reaches outside the directory.
 */
#ifndef MTHPD_KNOB_H
#define MTHPD_KNOB_H

#include <stdbool.h>

#include "parse.h"
#include "thp.h"

#define KNOB_VALUE_LEN 32

enum knob_kind {
	KNOB_NONE,   /* not a path that mthpd may write */
	KNOB_CHOICE, /* "always [madvise] never" */
	KNOB_NUMBER, /* one unsigned decimal */
};

/* By name alone: enabled, shmem_enabled, defrag, shrink_underused,
 * khugepaged/<a tunable> and hugepages-<n>kB/{enabled,shmem_enabled}. */
enum knob_kind knob_kind(const char *path);

/* Could the file at @path hold @value? Tokens are [a-z_+], numbers as the
 * kernel prints them; whether this kernel lists the token is another question. */
bool knob_value_valid(const char *path, const char *value);

/* Reads the value of @path: the selected token of a choice file, or the number.
 * @known (may be NULL) is what the caller remembers of the file's tokens, n = 0
 * for nothing; it is replaced by what the file lists now. Errors: -ENOENT and
 * -ENODEV (gone), -EINVAL (the text is not understood), other -errno; both
 * results are untouched then.
 *
 * The one concession to fake trees: a choice file of sysfs always shows its
 * list (mm/huge_memory.c: enabled_show), a plain file shows what was written to
 * it last. So text that is a single bare word is the selection, but only if
 * @known already lists that word. */
int knob_read(int thp_fd, const char *path, struct choice *known, char ret_value[KNOB_VALUE_LEN]);

/* Can the file be steered by what it says: are its selected word and "never" words of the kernel
 * that this is written for? Numbers always can. @known: as knob_read() left it. */
bool knob_usable(const char *path, const struct choice *known);

/* Looks at @path and says what keeps it from being steered, in a sentence without its full stop
 * that names the file and quotes what stood there, cut and without control bytes: the text is not
 * understood, or says nothing usable, or cannot be read. "" where nothing does, or the file is not
 * there. @known: as for knob_read(), not changed. Returns @ret. */
#define KNOB_TROUBLE_LEN 256
const char *knob_trouble(
	int thp_fd, const char *path, const struct choice *known, char ret[KNOB_TROUBLE_LEN]);

/* -errno of a file that may not be written: EROFS, EACCES, EPERM. */
bool knob_denied(int error);

/* Adds a token to what the caller remembers; a full list or one that has it stays. */
void knob_known_add(struct choice *known, const char *token);

/* Writes @value with one write(2). Returns 0 or -errno; -EIO for a short write.
 * 0 as well when the kernel reports an error but @value stands all the same:
 * the mode is set before khugepaged is started, and starting it can fail
 * (mm/huge_memory.c: anon_enabled_store; the kernel logs that itself). Taken for
 * a failure, our own value would later pass for somebody else's. */
int knob_write(int thp_fd, const char *path, const char *value);

/* Does going from @from to @to let the kernel use more memory or do more work
 * for large folios? Tokens unknown here count as the riskiest. */
bool knob_raises(const char *path, const char *from, const char *to);

#endif
